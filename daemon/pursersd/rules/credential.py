"""Which bearer token a conversation uses (bridge.md §6.1, §6.3)."""

import hashlib
import re
from collections.abc import Callable

from pursersd.rules.door_choice import NO_DOOR, Choice
from pursersd.rules.environment import Origin, Reader
from pursersd.secret import Secret, same_text

ReadFile = Callable[[str], str]
"""Gives the text of a file or raises OSError."""

_BEARER = re.compile(r"[!-~]+")


def resolve_token(found: Reader, read_file: ReadFile, stored: Choice = NO_DOOR) -> Secret | None:
    """The token of an environment, or None and a problem.

    A file wins over a variable, and both must agree; the stored door counts when neither is set.
    """
    chosen = _choose(found, read_file, stored)
    if chosen is None:
        return None
    origin, token = chosen
    variable = origin.name if origin.kind != "door" else "the stored door"
    if token and not _BEARER.fullmatch(token):
        found.problem(
            f"{variable} must hold one token of visible ASCII characters, without spaces",
            "Give it the bare token that Central's operator issued.",
        )
        return None
    if not _matches_connector(found, token):
        return None
    if not token:
        found.problem(
            "ONBOARD_CENTRAL_TOKEN is not set",
            "Set it, or ONBOARD_CENTRAL_TOKEN_FILE, in the environment of this MCP server in the host's configuration, "
            "or store a door with: pursersctl join",
        )
        return None
    found.origins["token"] = origin
    return Secret(token)


def _choose(found: Reader, read_file: ReadFile, stored: Choice) -> tuple[Origin, str] | None:
    """What decides and the token it gives (empty if there is none), or None and a problem."""
    direct, path = found.value("ONBOARD_CENTRAL_TOKEN"), found.value("ONBOARD_CENTRAL_TOKEN_FILE")
    variable = Origin("variable", "ONBOARD_CENTRAL_TOKEN")
    if not path:
        if direct or stored.door is None:
            return None if stored.failed and not direct else (variable, direct)
        return Origin("door", stored.door.kid), stored.door.token.reveal()
    filed = _token_file(found, path, read_file)
    if filed is None:
        return None
    if direct and found.value("PURSERS_ALLOW_ENV_TOKEN") == "1":
        return variable, direct
    if direct and not same_text(direct, filed):
        found.problem(
            "split identity: ONBOARD_CENTRAL_TOKEN and ONBOARD_CENTRAL_TOKEN_FILE differ",
            "Unset one of them, or set PURSERS_ALLOW_ENV_TOKEN=1 to use ONBOARD_CENTRAL_TOKEN.",
        )
        return None
    return Origin("file", "ONBOARD_CENTRAL_TOKEN_FILE"), filed


def _token_file(found: Reader, path: str, read_file: ReadFile) -> str | None:
    home = found.environ.get("HOME")
    if home and (path == "~" or path.startswith("~/")):
        path = home.rstrip("/") + path[1:]
    try:
        token = read_file(path).strip()
    except (OSError, ValueError) as error:
        why = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
        found.problem(
            f"ONBOARD_CENTRAL_TOKEN_FILE is not readable{why}",
            "Set it to the path of a text file that exists and that you may read.",
        )
        return None
    if not token:
        found.problem("ONBOARD_CENTRAL_TOKEN_FILE is empty", "Write the bare token into that file.")
        return None
    return token


def _matches_connector(found: Reader, token: str) -> bool:
    """Whether the token is the one that the host's own board connector uses, where that is required."""
    if found.value("PURSERS_REQUIRE_TOKEN_MATCH") != "1":
        return True
    expected = found.value("PURSERS_BOARD_CONNECTOR_TOKEN_SHA256").lower()
    connector = found.environ.get("PURSERS_BOARD_CONNECTOR_TOKEN", "")
    if not expected and not connector:
        found.problem(
            "connector token not visible to the bridge process; see Codex env forwarding",
            "Forward PURSERS_BOARD_CONNECTOR_TOKEN_SHA256 to this MCP server, or unset PURSERS_REQUIRE_TOKEN_MATCH.",
        )
        return False
    actual = hashlib.sha256(token.encode()).hexdigest() if expected else token
    if not token or not same_text(actual, expected or connector):
        found.problem(
            "split identity: wait bridge and board connector tokens differ",
            "Give both the same token, or unset PURSERS_REQUIRE_TOKEN_MATCH.",
        )
        return False
    return True
