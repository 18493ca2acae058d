"""What pursersctl makes of files and prints as JSON: no answers of the daemon. docs/json.md describes it like those."""

from typing import Literal

import msgspec

from pursersd.api import SCHEMA, Delivery


class DoorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One stored door, without its URL and its token."""

    board: str
    role: str
    kid: str
    """Key id of the token."""
    exp: int
    """When the token expires, in seconds since 1970."""
    joined_at: str
    seat_names_used: list[str]


class DoorList(msgspec.Struct, frozen=True, kw_only=True):
    """What `pursersctl doors` prints."""

    push_mode: Delivery
    """How waits with this environment get their events (PURSERS_WAIT_MODE)."""
    folder: str
    doors: list[DoorRow]
    schema: int = SCHEMA


class CallStats(msgspec.Struct, frozen=True, kw_only=True):
    """Calls to Central."""

    calls: int
    request_bytes: int
    response_bytes: int


class ReturnStats(msgspec.Struct, frozen=True, kw_only=True):
    """Results that the model got: of waits, by how they ended, and digests."""

    returns: int
    cues: int
    timeouts: int
    errors: int
    digests: int
    response_bytes: int


class SeatStats(msgspec.Struct, frozen=True, kw_only=True):
    """One seat in `pursersctl stats`. Days are UTC days."""

    seat: str
    board: str
    today: CallStats
    week: CallStats
    """The last seven days, today included."""
    tools: dict[str, int]
    """Calls of today by the tool's name."""
    hour: ReturnStats
    """The last hour."""
    day: ReturnStats
    """The last 24 hours."""
    last_return_s: float | None
    """Seconds since its last result; None when none is known."""
    fallback: str | None
    """Why it got its events by polling although it wants push; None when push worked the last time."""
    fallback_s: float | None


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """What `pursersctl stats` tells."""

    file: str
    seats: list[SeatStats]
    unwritten: bool
    """Whether it contains what the daemon has counted and not written to the file yet."""
    other_files: list[str]
    """Further files that the daemon counts in."""
    schema: int = SCHEMA


class ServiceFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the service."""

    path: str
    state: Literal["as rendered", "differs", "missing"]


class ServiceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What `pursersctl service status` tells."""

    manager: Literal["systemd", "launchd"]
    name: str
    """Of the units without their endings, or of the job."""
    installed: bool
    files: list[ServiceFile]
    changes: list[str]
    """Files of the user that change what is installed."""
    enabled: bool | None
    """Whether it begins with the login; None if the manager cannot be asked."""
    activity: Literal["running", "listening", "failed", "inactive", "unknown"]
    """`listening`: systemd has the socket and starts the daemon when somebody connects."""
    pid: int | None
    program: str | None
    """What it starts."""
    lingers: bool | None
    """Whether it outlives the last logout; None where that is no question."""
    problems: list[str]
    """Each with what to do."""
    schema: int = SCHEMA
