"""What is noted of one conversation for those who look at it: how long its calls take, its wakes, what it does."""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from pursersd.api import State
from pursersd.api.events import StateChanged, Woke
from pursersd.events import Events
from pursersd.timings import Timings


class Seen(Protocol):
    """The conversation, as far as its witness looks."""

    id: str
    last_tool: str | None

    @property
    def state(self) -> State:
        """What it does now."""

    @property
    def host(self) -> str:
        """Kind of its host."""

    @property
    def seat_name(self) -> str | None:
        """Agent name of its seat."""

    @property
    def board(self) -> str | None:
        """Board of its seat, else the one that it is set up for."""


class Witness:
    """Tells the daemon's `timings` and `events`; looks, and changes nothing."""

    def __init__(self, timings: Timings | None = None, events: Events | None = None) -> None:
        self.timings = timings or Timings()
        self.events = events or Events()
        self.wakes = 0
        """How often a wait answered with something for the model."""

    def __repr__(self) -> str:
        return f"<Witness {self.wakes} wakes>"

    def calling(self, seen: Seen, tool: str) -> AbstractContextManager[None]:
        """A tool call runs."""
        return self.timings.calling(tool, seen.host)

    def state_changed(self, seen: Seen, before: State, since: float) -> None:
        """It was in the state `before` since that time (monotonic), and is in another one now."""
        before_s = round(time.monotonic() - since, 3)
        self.events.tell(
            lambda at: StateChanged(
                at=at,
                conversation=seen.id,
                seat=seen.seat_name,
                board=seen.board,
                state=seen.state,
                before=before,
                before_s=before_s,
                tool=seen.last_tool,
            )
        )

    def answered(
        self, seen: Seen, tool: str, result: Mapping[str, object], *, began: float, cued_at: float | None
    ) -> None:
        """A wait that was called at `began` answers; `cued_at` is when Central's cue came, if that is why (monotonic)."""
        events, reason = _brought(result)
        if not events:
            return
        self.wakes += 1
        wake_s = None if cued_at is None else self.timings.woke(tool, seen.host, cued_at)
        waited_s = time.monotonic() - began
        self.events.tell(
            lambda at: Woke(
                at=at,
                conversation=seen.id,
                seat=seen.seat_name,
                board=seen.board,
                tool=tool,
                events=events,
                reason=reason,
                waited_s=round(waited_s, 3),
                wake_s=None if wake_s is None else round(wake_s, 6),
            )
        )


def _brought(result: Mapping[str, object]) -> tuple[int, str | None]:
    """How many events a wait brings its model, and why it answers; a question wait brings one, or nothing."""
    events = result.get("events")
    if isinstance(events, list):
        return len(events), _text(result.get("reason"))
    event, ended = result.get("event"), result.get("ended")
    if isinstance(event, Mapping):
        return 1, _text(event.get("kind"))
    if isinstance(ended, Mapping):
        return 1, _text(ended.get("code"))
    return (1 if result.get("question") else 0), None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
