"""The settings of one conversation, resolved from the environment of its shim (bridge.md §6).

Pure but for reading the token file. Nothing here is fatal: what prevents work with Central stands in `problems`, what
was ignored in `notes`. Stored doors are not consulted here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from pursersd.rules.capabilities import capabilities
from pursersd.rules.credential import ReadFile, resolve_token
from pursersd.rules.environment import Reader
from pursersd.rules.hosts import HostProfile, profile
from pursersd.secret import Secret

__all__ = ["DEFAULT_BOARD", "DEFAULT_NAME", "DEFAULT_URL", "ROLES", "Settings", "resolve"]

DEFAULT_URL = "http://127.0.0.1:8766/mcp"
DEFAULT_BOARD = "pursers"
DEFAULT_NAME = "pursers-wait-bridge"
DEFAULT_RESURFACE_S = 600.0
DEFAULT_SCAN_INTERVAL_S = 30.0
ROLES = ("worker", "reviewer", "orchestrator", "coordinator")

WaitMode = Literal["push", "poll"]

_NAME = re.compile(r"[A-Za-z0-9._-]{1,80}")
_INSTANCE = re.compile(r"[A-Za-z0-9._-]{1,32}")
_CENTRAL_INSTANCE = re.compile(r"CI-[0-9a-f]{64}")
_NAME_RULE = "letters, digits, dots, underscores, or hyphens"


@dataclass(frozen=True, slots=True)
class Settings:
    """What one conversation was told to be. With `problems` it may not work with Central."""

    url: str
    """Without user information; empty if what was given is no URL."""
    token: Secret | None
    board: str
    role: str | None
    """The declared role; None leaves it to Central."""
    agent_name: str
    host: HostProfile
    wait_mode: WaitMode
    capabilities: dict[str, object] | None
    """What a join declares for dispatch; None makes an undeclared seat."""
    instance_id: str | None
    boards_filter: str | None
    resurface_s: float
    scan_interval_s: float
    idle_limit_s: float | None
    """None means three times the TTL of the lease."""
    problems: tuple[str, ...] = ()
    """Why there can be no work with Central, each with what to do about it."""
    notes: tuple[str, ...] = ()
    """Values that were ignored, each with what is used instead."""


def resolve(environ: Mapping[str, str], read_file: ReadFile) -> Settings:
    """The settings for an environment. `read_file` gives the text of a file or raises OSError.

    It gets the path as it was written, except that `~` is replaced if the environment has HOME.
    """
    found = Reader(environ)
    host, host_note = profile(environ.get("PURSERS_HOST"), environ.get("PURSERS_HOST_TIMEOUT_S"))
    if host_note is not None:
        found.notes.append(host_note)
    role = _role(found)
    token = resolve_token(found, read_file)
    return Settings(
        url=_url(found),
        token=token,
        board=_board(found),
        role=role,
        agent_name=_agent_name(found),
        host=host,
        wait_mode=_wait_mode(found),
        capabilities=capabilities(found, host),
        instance_id=_instance_id(found),
        boards_filter=found.value("PURSERS_BOARDS") or None,
        resurface_s=found.positive("PURSERS_BACKLOG_RESURFACE_INTERVAL_S") or DEFAULT_RESURFACE_S,
        scan_interval_s=found.positive("PURSERS_BACKLOG_SCAN_INTERVAL_S") or DEFAULT_SCAN_INTERVAL_S,
        idle_limit_s=found.positive("PURSERS_KEEPALIVE_IDLE_LIMIT_S"),
        problems=tuple(found.problems),
        notes=tuple(found.notes),
    )


def _role(found: Reader) -> str | None:
    role = found.value("PURSERS_ROLE").lower() or None
    if role is not None and role not in ROLES:
        found.problem(
            "PURSERS_ROLE must be worker, reviewer, orchestrator, or coordinator",
            "Set it to one of these, or unset it to let Central decide.",
        )
        return None
    return role


def _url(found: Reader) -> str:
    url = found.value("ONBOARD_CENTRAL_URL") or DEFAULT_URL
    advice = f"Set it to Central's address, such as {DEFAULT_URL}."
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        found.problem("ONBOARD_CENTRAL_URL must be an http or https URL", advice)
        return ""
    if "@" in parts.netloc:
        found.problem("ONBOARD_CENTRAL_URL must not include user information", advice)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return url


def _board(found: Reader) -> str:
    board = found.value("ONBOARD_BOARD_ID") or DEFAULT_BOARD
    if _NAME.fullmatch(board):
        return board
    found.problem(f"ONBOARD_BOARD_ID must contain 1-80 {_NAME_RULE}", "Set it to the name of an existing board.")
    return DEFAULT_BOARD


def _agent_name(found: Reader) -> str:
    # Not trimmed, as in the bridge: a name is used letter for letter.
    base = found.environ.get("ONBOARD_AGENT_NAME", DEFAULT_NAME)
    instance = found.environ.get("ONBOARD_AGENT_INSTANCE", "")
    name = f"{base}-{instance}" if instance else base
    if not _NAME.fullmatch(base):
        found.problem(f"ONBOARD_AGENT_NAME must contain 1-80 {_NAME_RULE}", "Set it to such a name, or unset it.")
    elif instance and not _INSTANCE.fullmatch(instance):
        found.problem(f"ONBOARD_AGENT_INSTANCE must contain 1-32 {_NAME_RULE}", "Set it to such a name, or unset it.")
    elif len(name) > 80:
        found.problem(
            "resolved agent name must not exceed 80 characters",
            "Shorten ONBOARD_AGENT_NAME or ONBOARD_AGENT_INSTANCE.",
        )
    else:
        return name
    return DEFAULT_NAME


def _wait_mode(found: Reader) -> WaitMode:
    mode = found.value("PURSERS_WAIT_MODE").lower()
    if mode == "poll":
        return "poll"
    if mode not in ("", "push"):
        found.notes.append("PURSERS_WAIT_MODE must be push or poll; using push")
    return "push"


def _instance_id(found: Reader) -> str | None:
    instance_id = found.value("ONBOARD_CENTRAL_INSTANCE_ID") or None
    if instance_id is not None and not _CENTRAL_INSTANCE.fullmatch(instance_id):
        found.problem(
            "ONBOARD_CENTRAL_INSTANCE_ID must be CI- and 64 lower-case hex digits",
            "Set it to the instance_id that Central shows under /healthz, or unset it.",
        )
        return None
    return instance_id
