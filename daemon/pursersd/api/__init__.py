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

State = Literal["waiting", "working", "idle", "detached"]
Delivery = Literal["push", "poll"]
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


class LeaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that is this conversation's."""

    board: str
    ticket: str
    kind: Literal["work", "review"]
    state: Literal["kept", "paused"]
    """`paused`: nobody is at work, so it is left to lapse."""
    left_s: float
    """Seconds until it lapses if it is not renewed."""


class SeatRow(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation as `pursersctl ps` shows it."""

    seat: str | None
    """Agent name, once Central has confirmed the join; None before."""
    board: str | None
    role: str | None
    host: str
    """Kind of host, such as `claude-code`: PURSERS_HOST, the client's name, or the process name."""
    host_pid: int | None
    shim_pid: int
    conversation: str
    state: State
    delivery: Delivery | None
    """How events reach the current or last wait; None before the first."""
    since_s: float
    """Seconds in this state."""
    age_s: float
    """Seconds since the conversation began."""
    last_tool: str | None
    link_epoch: int
    shared_by: int
    """How many live conversations use this seat, itself included; 0 while it has no seat."""
    central: str | None
    """URL of its Central, without user information."""
    cwd: str
    shim_version: str
    poll_reason: str | None = None
    """Why delivery is `poll`."""
    boards: list[str] = []
    """Every board of the current or last wait; `board` is the first."""
    leases: list[LeaseRow] = []
    """What it holds, as far as the daemon knows."""
    problem: str | None = None
    """What is wrong with its settings, so that its calls fail."""
    cut_reason: str | None = None
    """Why the daemon cut the link of a detached conversation; None when it was lost otherwise."""
    wakes: int = 0
    """How often a wait of its answered with something for the model."""
    lag: int | None = None
    """Journal entries that its last wait is behind the newest one that the daemon knows of; None before the first wait."""


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


class EndedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation that has ended, as `pursersctl ps --ended` shows it."""

    seat: str | None
    board: str | None
    role: str | None
    host: str
    host_pid: int | None
    shim_pid: int
    conversation: str
    reason: str
    """Why it ended."""
    ago_s: float
    """Seconds since then."""
    age_s: float
    """Seconds that it had lived with this daemon."""
    last_tool: str | None
    cwd: str


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `ended`: what this daemon remembers, the newest first."""

    ended: list[EndedRow]
    schema: int = SCHEMA


class ReapRow(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is there for nobody."""

    kind: Literal["shim", "conversation"]
    """A shim's process and its conversation, or only a conversation that the daemon holds."""
    why: str
    seat: str | None
    board: str | None
    host: str
    host_pid: int | None
    shim_pid: int
    conversation: str


class Reap(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `reap`."""

    found: list[ReapRow]
    ending: bool
    """Whether they are being ended, or only listed."""
    schema: int = SCHEMA


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One resolved value of a conversation, and where it came from."""

    name: str
    value: str | None
    """None when there is none. Of the token: its key id and short fingerprint, or the fingerprint alone."""
    origin: Literal["variable", "file", "door", "automatic", "default"]
    origin_name: str | None
    """The variable (of a file: the one that names it), or the key id of the stored door."""


class SeatStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One seat that a conversation has taken."""

    board: str
    agent_name: str
    agent_id: str
    principal_id: str
    role: str
    claim_ttl_s: int
    generation: str | None
    """Generation of the board that its calls insist on; None for a board without."""
    shared_by: int
    """How many conversations use this seat, this one included."""
    declared: bool
    """Whether Central was told what this conversation's settings declare; False when an older one on the seat wants else."""


class ConversationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `conversation`: one of them in detail."""

    row: SeatRow
    """The same as in `ps`."""
    settings: list[Setting]
    doors: str | None
    """Folder of the stored doors that it looks at."""
    stats: str | None = None
    """File that its calls are counted in."""
    seats: list[SeatStatus]
    """The one of its home board first; empty before its first join."""
    problems: list[str]
    """Why it cannot work with Central, each with what to do; empty when it can."""
    notes: list[str]
    """What of its settings is ignored, each with what is used instead."""
    schema: int = SCHEMA


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
    if home is not None:
        return home + "/log/pursersd.log"
    import platformdirs  # here, because most control commands do not need it

    return platformdirs.user_log_dir("pursersd", appauthor=False) + "/pursersd.log"


def state_folder(home: str | None) -> str:
    """Where that daemon keeps its epoch and its names. Creates nothing."""
    if home is not None:
        return home + "/state"
    import platformdirs

    return platformdirs.user_state_dir("pursersd", appauthor=False)


def local_folder(home: str | None) -> str:
    """Where that daemon keeps the local board. Creates nothing."""
    return state_folder(home) + "/local"
