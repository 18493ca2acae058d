"""What pursersctl gets to see of conversations: those that are there, those that have ended, those that nobody is behind."""

from typing import Literal

import msgspec

from pursersd.api.schema import SCHEMA

State = Literal["waiting", "working", "idle", "detached"]
Delivery = Literal["push", "poll"]

POLL_WANTED = "PURSERS_WAIT_MODE=poll"
"""The reason of a conversation that is polled because it was set up so."""


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
    """Why delivery is `poll`: POLL_WANTED, or what stands in the way of push."""
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
