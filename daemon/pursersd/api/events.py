"""What `pursersctl events` gets: a Snapshot, then each change since. Each comes as the result of a Reply to the one request.

`at` is a clock time, for people and for other logs; nothing depends on it.
"""

from typing import Literal

import msgspec

from pursersd.api import SCHEMA, CentralState, CentralStatus, SeatRow, State, Warning


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="snapshot"):
    """Everything as it is when the events begin. A new one means: forget what was before."""

    at: str
    version: str
    """Of the daemon."""
    epoch: int
    """Of the daemon: a higher one is a new daemon."""
    seats: list[SeatRow]
    centrals: list[CentralStatus]
    warnings: list[Warning]
    schema: int = SCHEMA


class Came(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="came"):
    """A conversation began."""

    at: str
    row: SeatRow


class Went(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="went"):
    """A conversation has ended."""

    at: str
    conversation: str
    seat: str | None
    board: str | None
    host: str
    reason: str


class StateChanged(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="state"):
    """A conversation does something else."""

    at: str
    conversation: str
    seat: str | None
    board: str | None
    state: State
    before: State
    before_s: float
    """How long it was in that state."""
    tool: str | None
    """The tool called last."""


class Woke(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="wake"):
    """A wait answers with something for its model."""

    at: str
    conversation: str
    seat: str | None
    board: str | None
    tool: str
    events: int
    """How many events it brings; of a question wait 1."""
    reason: str | None
    """Why it answers: what its result says; of a question wait the kind of the event, or why no answer will come."""
    waited_s: float
    """Seconds since the wait was called."""
    wake_s: float | None
    """Seconds since Central's cue; None when no cue ended it."""


class LeaseChanged(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="lease"):
    """A lease of a conversation was taken up, paused, or is over."""

    at: str
    conversation: str
    seat: str | None
    board: str
    ticket: str
    kind: Literal["work", "review"]
    change: Literal["kept", "paused", "over"]
    left_s: float | None
    """Seconds until it lapses if it is not renewed; None when it is over."""


class WarningChanged(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="warning"):
    """A warning begins or is over."""

    at: str
    change: Literal["begun", "over"]
    warning: Warning


class CentralChanged(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="central"):
    """A Central is used, answers, or does not."""

    at: str
    url: str
    credential: str
    state: CentralState | Literal["closed"]
    """`closed`: nobody uses it any more."""
    before: CentralState | None
    """None for one that is new."""
    detail: str | None


Change = Came | Went | StateChanged | Woke | LeaseChanged | WarningChanged | CentralChanged
Event = Snapshot | Change
