"""What pursersctl and the daemon say to one another: requests and status structs, defined once.

A control link begins with `hello` of role "control" (pursers_shim.wire); after `welcome` each line is a Request and each
answer a Reply with the same id. docs/json.md describes the structs field by field.
"""

from typing import Literal

import msgspec

from pursersd.api.config import Config as Config
from pursersd.api.config import ConfigChange as ConfigChange
from pursersd.api.config import ConfigRow as ConfigRow
from pursersd.api.config import Reloaded as Reloaded
from pursersd.api.conversations import POLL_WANTED as POLL_WANTED
from pursersd.api.conversations import ConversationStatus as ConversationStatus
from pursersd.api.conversations import Delivery as Delivery
from pursersd.api.conversations import Ended as Ended
from pursersd.api.conversations import EndedRow as EndedRow
from pursersd.api.conversations import LeaseRow as LeaseRow
from pursersd.api.conversations import Reap as Reap
from pursersd.api.conversations import ReapRow as ReapRow
from pursersd.api.conversations import SeatRow as SeatRow
from pursersd.api.conversations import SeatStatus as SeatStatus
from pursersd.api.conversations import Setting as Setting
from pursersd.api.conversations import State as State
from pursersd.api.doors import JOIN_VARIABLES as JOIN_VARIABLES
from pursersd.api.doors import DoorsNoted as DoorsNoted
from pursersd.api.doors import Join as Join
from pursersd.api.doors import Joined as Joined
from pursersd.api.local import LocalBoard as LocalBoard
from pursersd.api.local import LocalDoor as LocalDoor
from pursersd.api.local import LocalDown as LocalDown
from pursersd.api.local import LocalGone as LocalGone
from pursersd.api.local import LocalState as LocalState
from pursersd.api.local import LocalStatus as LocalStatus
from pursersd.api.local import LocalTicket as LocalTicket
from pursersd.api.local import LocalTicketMade as LocalTicketMade
from pursersd.api.local import LocalUp as LocalUp
from pursersd.api.measures import LatencyRow as LatencyRow
from pursersd.api.measures import Metrics as Metrics
from pursersd.api.schema import SCHEMA as SCHEMA

CentralState = Literal["connecting", "ready", "unreachable", "refused"]
StartedBy = Literal["auto", "user", "service"]
"""Who started a daemon: a shim or a command that needed one, somebody with `pursersctl start`, the service manager."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """One question of pursersctl. `params` belongs to the verb."""

    id: int
    verb: str
    params: dict[str, object] = {}

    def __repr__(self) -> str:
        return f"<Request {self.id} {self.verb}>"  # params may hold a credential


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was not carried out."""

    code: str
    text: str


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to the Request with the same id: a result or an error."""

    id: int
    result: msgspec.Raw = msgspec.Raw()
    """The JSON of the verb's struct, empty when there is an error. (msgspec decodes no union that contains a Raw.)"""
    error: Failure | None = None


def answer(request: int, result: msgspec.Struct) -> Reply:
    """The Reply that brings a result."""
    return Reply(id=request, result=msgspec.Raw(msgspec.json.encode(result)))


def refusal(request: int, code: str, text: str) -> Reply:
    """The Reply that says why there is none."""
    return Reply(id=request, error=Failure(code=code, text=text))


class Warning(msgspec.Struct, frozen=True, kw_only=True):
    """Something the operator should know: a stable code, since when, what it means and what to do."""

    code: str
    since_s: float
    text: str
    action: str


class Ps(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `ps`."""

    seats: list[SeatRow]
    version: str = ""
    """Of the daemon, to compare with that of each shim."""
    schema: int = SCHEMA
    warnings: list[Warning] = []
    """The same as in `status`."""


class DaemonStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon itself."""

    pid: int
    version: str
    epoch: int
    state: Literal["ready", "draining"]
    uptime_s: float
    home: str | None
    """Folder of a private instance (PURSERSD_HOME), None for the user's one daemon."""
    socket: str
    log: str | None
    started_by: StartedBy
    rss_bytes: int
    descriptors: int = 0
    """File descriptors in use."""
    descriptor_limit: int = 0
    """File descriptors that it may have."""
    log_lines_lost: int = 0
    """Lines that could not be written to the log, as long as that is so."""
    suspensions: int = 0
    """How often time passed without the daemon: the machine slept, or somebody stopped it."""
    longest_stall_s: float = 0.0
    """The longest time since the start that one thing kept the daemon busy and everybody else waiting."""


class CentralStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One pool: a Central and a credential."""

    url: str
    credential: str
    """Key id of the token, or its short fingerprint; never the token."""
    state: CentralState
    detail: str | None
    """What is wrong: why it is not ready, or why it gives no stream."""
    call_connections: int
    """Calls in progress at this moment."""
    streams: int
    """Open subscription streams."""
    boards: list[str]
    seats_listening: int
    waits: int
    """Waits that have caught up and block, one for each of their boards."""
    requests: int
    """Tool calls sent since the pool was opened."""
    cues: int
    """Cues received since the pool was opened."""
    reconnects: int
    trouble_s: float | None = None
    """Seconds that Central has not served us; None while it does."""
    expires_s: float | None = None
    """Seconds until the credential expires; negative afterwards; None when it does not say."""
    clock_ahead_s: float = 0.0
    """Seconds by which this machine's clock is ahead of Central's; nothing depends on it."""
    clock_wrong_s: float = 0.0
    """Seconds since that was first seen to be more than a minute; 0 while it is not."""
    replaced_s: float | None = None
    """Seconds since another Central was found at this address; None if it has been the same."""


class LossyWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A place where something can be lost, and how often that may have been since this daemon began (RB-LSE-001)."""

    name: str
    counter: str
    """What `count` counts."""
    count: int
    last_s: float | None
    """Seconds since it opened last; None if it never did."""
    text: str
    """What may be lost, and what brings it back."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `status`."""

    daemon: DaemonStatus
    centrals: list[CentralStatus]
    conversations: int
    warnings: list[Warning]
    schema: int = SCHEMA
    lossy_windows: list[LossyWindow] = []
    latency: list[LatencyRow] = []
    local: LocalStatus | None = None
    """The local board; None when there is none."""


class Stopping(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `stop`: the daemon has begun to leave. It is gone when its lock is free."""

    pid: int
    conversations: int


class StatsFile(msgspec.Struct, frozen=True, kw_only=True):
    """One bridge-stats.json that the daemon counts for, and what it has not written there yet."""

    path: str
    writes: int
    """How often it was written; a higher number than before means that the file has changed."""
    unwritten: msgspec.Raw
    """What is to be added: the maps of the file, with the same fields."""
    pushed: dict[str, str]
    """Seats, by their key in the file, that came back by push meanwhile, and when: their `push_unavailable` is over."""
    trouble: str | None = None
    """Why the file could not be written; None when it could."""
    trouble_s: float | None = None


class StatsFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `stats`."""

    files: list[StatsFile]
    schema: int = SCHEMA


def log_file(home: str | None) -> str:
    """Where the daemon of the private instance `home`, or the user's one daemon, writes its log. Creates nothing."""
    whole, own = shared_state_folder(home), state_folder(home)
    name = "pursersd.log" if own == whole else f"pursersd-{own.rpartition('-')[2]}.log"
    if home is not None:
        return f"{home}/log/{name}"
    import platformdirs  # here, because most control commands do not need it

    return f"{platformdirs.user_log_dir('pursersd', appauthor=False)}/{name}"


def state_folder(home: str | None) -> str:
    """Where that daemon keeps its epoch and its names: of a folder that machines share, the part of this one.

    Creates nothing.
    """
    from pursersd.machine import own_part

    return own_part(shared_state_folder(home))


def shared_state_folder(home: str | None) -> str:
    """The state folder of all machines that share that home, or the user's own."""
    if home is not None:
        return home + "/state"
    import platformdirs

    return platformdirs.user_state_dir("pursersd", appauthor=False)


def local_folder(home: str | None) -> str:
    """Where that daemon keeps the local board. Creates nothing."""
    return state_folder(home) + "/local"
