"""The settings of one conversation, resolved from the environment of its shim and the stored doors (bridge.md §6).

Each value on its own: its variable, else the stored door, else the default; docs/configuration.md has the table. Pure but
for reading the token file and the doors. Nothing here is fatal: what prevents work with Central stands in `problems`, what
was ignored in `notes`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlunsplit

from pursersd.errors import DoorsError
from pursersd.rules.capabilities import capabilities
from pursersd.rules.credential import ReadFile, resolve_token
from pursersd.rules.door import Door, check_url, usable
from pursersd.rules.door_choice import LoadDoors, choose, no_doors
from pursersd.rules.environment import DEFAULT, Origin, Reader
from pursersd.rules.hosts import HostProfile, profile
from pursersd.rules.instance import expected_instance
from pursersd.rules.seat_name import is_safe
from pursersd.secret import Secret

DEFAULT_URL = "http://127.0.0.1:8766/mcp"
DEFAULT_BOARD = "pursers"
DEFAULT_NAME = "pursers-wait-bridge"
DEFAULT_RESURFACE_S = 600.0
DEFAULT_SCAN_INTERVAL_S = 30.0
ROLES = ("worker", "reviewer", "orchestrator", "coordinator")

WaitMode = Literal["push", "poll"]

_NAME = re.compile(r"[A-Za-z0-9._-]{1,80}")
_INSTANCE = re.compile(r"[A-Za-z0-9._-]{1,32}")
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
    agent_name: str | None
    """None for a seat through a stored door that was given no name: one is chosen when a seat is first needed."""
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
    door: Door | None = None
    """The stored door that filled in what was left open."""
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False)
    """Where the values came from, by field; see `origin`."""

    @property
    def is_door_mode(self) -> bool:
        """Whether the credential is that of a stored door: then a seat is taken with more care (bridge.md §6.3, §10)."""
        return self.origin("token").kind == "door"

    def origin(self, setting: str) -> Origin:
        """Where the value of this field came from."""
        return self.origins.get(setting, DEFAULT)


def resolve(environ: Mapping[str, str], read_file: ReadFile, load_doors: LoadDoors = no_doors) -> Settings:
    """The settings for an environment. `read_file` gives the text of a file or raises OSError.

    It gets the path as it was written, except that `~` is replaced if the environment has HOME. `load_doors` gives the
    stored doors or raises DoorsError; it is called when any of URL, token, board and role is missing.
    """
    found = Reader(environ)
    role = _role(found)
    stored = choose(found, load_doors, role=role)
    token = resolve_token(found, read_file, stored)
    if role is None and stored.door is not None:
        role = _from_door(found, "role", stored.door, stored.door.role)
    host = _host(found)
    return Settings(
        url=_url(found, stored.door),
        token=token,
        board=_board(found, stored.door),
        role=role,
        agent_name=_agent_name(found),
        host=host,
        wait_mode=_wait_mode(found),
        capabilities=capabilities(found, host),
        instance_id=expected_instance(found),
        boards_filter=_boards_filter(found),
        resurface_s=found.positive("resurface_s", "PURSERS_BACKLOG_RESURFACE_INTERVAL_S") or DEFAULT_RESURFACE_S,
        scan_interval_s=found.positive("scan_interval_s", "PURSERS_BACKLOG_SCAN_INTERVAL_S") or DEFAULT_SCAN_INTERVAL_S,
        idle_limit_s=found.positive("idle_limit_s", "PURSERS_KEEPALIVE_IDLE_LIMIT_S"),
        problems=tuple(found.problems),
        notes=tuple(found.notes),
        door=stored.door,
        origins=MappingProxyType(found.origins),
    )


def with_door(settings: Settings, door: Door) -> Settings:
    """The settings with what a newer door for the same board and role says: its token, and its URL unless one was given."""
    origins = {name: Origin("door", door.kid) if o.kind == "door" else o for name, o in settings.origins.items()}
    url = settings.url
    if settings.origin("url").kind == "door" and door.url != url:
        try:
            check_url(door.url, allow_remote=True)
        except DoorsError as error:
            return replace(settings, problems=(f"{error}. Join with the right door: pursersctl join --rotate",))
        url = door.url
    return replace(settings, url=url, token=door.token, door=door, origins=MappingProxyType(origins))


def without_door(settings: Settings) -> Settings:
    """The settings after their door was forgotten: there is no credential any more."""
    return replace(
        settings,
        token=None,
        problems=(
            f"the stored door for board {settings.board} and role {settings.role} was forgotten. Store one again with: "
            "pursersctl join",
        ),
    )


def _from_door(found: Reader, setting: str, door: Door, value: str) -> str:
    found.origins[setting] = Origin("door", door.kid)
    return value


def _host(found: Reader) -> HostProfile:
    host, note = profile(found.environ.get("PURSERS_HOST"), found.environ.get("PURSERS_HOST_TIMEOUT_S"))
    if note is not None:
        found.notes.append(note)
    if found.value("PURSERS_HOST"):
        found.came("host", "PURSERS_HOST")
    if found.value("PURSERS_HOST_TIMEOUT_S") and "PURSERS_HOST_TIMEOUT_S" not in (note or ""):
        found.came("timeout_s", "PURSERS_HOST_TIMEOUT_S")
    return host


def _boards_filter(found: Reader) -> str | None:
    wanted = found.value("PURSERS_BOARDS") or None
    if wanted is not None:
        found.came("boards_filter", "PURSERS_BOARDS")
    return wanted


def _role(found: Reader) -> str | None:
    role = found.value("PURSERS_ROLE").lower() or None
    if role is not None and role not in ROLES:
        found.problem(
            "PURSERS_ROLE must be worker, reviewer, orchestrator, or coordinator",
            "Set it to one of these, or unset it to let Central decide.",
        )
        return None
    if role is not None:
        found.came("role", "PURSERS_ROLE")
    return role


def _url(found: Reader, door: Door | None) -> str:
    name, advice = "ONBOARD_CENTRAL_URL", f"Set it to Central's address, such as {DEFAULT_URL}."
    url = found.value(name)
    if url:
        found.came("url", name)
    elif door is not None:
        name, advice = "door URL", "Join with the right door: pursersctl join --rotate"
        url = _from_door(found, "url", door, door.url)
    else:
        url = DEFAULT_URL
    parts = usable(url)
    if parts is None:
        found.problem(f"{name} must be an http or https URL", advice)
        return ""
    if "@" in parts.netloc:
        found.problem(f"{name} must not include user information", advice)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return url


def _board(found: Reader, door: Door | None) -> str:
    name, advice = "ONBOARD_BOARD_ID", "Set it to the name of an existing board."
    board = found.value(name)
    if board:
        found.came("board", name)
    elif door is not None:
        name, advice = "the board of a door", "Join with the right door: pursersctl join"
        board = _from_door(found, "board", door, door.board)
    if not board or _NAME.fullmatch(board):
        return board or DEFAULT_BOARD
    found.problem(f"{name} must contain 1-80 {_NAME_RULE}", advice)
    return DEFAULT_BOARD


def _agent_name(found: Reader) -> str | None:
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
    elif found.origins.get("token", DEFAULT).kind != "door":
        return _named(found, name)
    elif "ONBOARD_AGENT_NAME" not in found.environ:
        if instance:
            found.notes.append("ONBOARD_AGENT_INSTANCE counts only with ONBOARD_AGENT_NAME; using a name of our own")
        return None
    elif is_safe(name):
        return _named(found, name)
    else:
        found.problem(
            "seat name must be a safe 1-80 character identifier",
            "Set ONBOARD_AGENT_NAME to a name that begins with a letter or a digit, or unset it.",
        )
    return DEFAULT_NAME


def _named(found: Reader, name: str) -> str:
    given = [name for name in ("ONBOARD_AGENT_NAME", "ONBOARD_AGENT_INSTANCE") if found.environ.get(name)]
    if given:
        found.came("agent_name", *given)
    return name


def _wait_mode(found: Reader) -> WaitMode:
    mode = found.value("PURSERS_WAIT_MODE").lower()
    if mode in ("push", "poll"):
        found.came("wait_mode", "PURSERS_WAIT_MODE")
    if mode == "poll":
        return "poll"
    if mode not in ("", "push"):
        found.notes.append("PURSERS_WAIT_MODE must be push or poll; using push")
    return "push"
