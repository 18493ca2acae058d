"""Whose call to Central is next: a conversation that asks a lot does not hold up one that asks little.

For whom a call is made is bound to the running task, and tasks that it starts inherit it, because a call passes through
many hands (seats, feed, shared reads) that have no other use for it.
"""

from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

import anyio

from pursersd.rules.fair_queue import FairQueue

BACKGROUND = "background"
"""The party that the daemon's own reads and keepalive are."""

_party: ContextVar[Hashable] = ContextVar("party", default="nobody")


@contextmanager
def on_behalf_of(party: Hashable) -> Iterator[None]:
    """Within it, this task's calls take the turns of `party`, such as a conversation's id."""
    token = _party.set(party)
    try:
        yield
    finally:
        _party.reset(token)


class Turns:
    """At most `slots` calls at once, and at most `share` of them for one party."""

    def __init__(self, slots: int, share: int) -> None:
        self._queue: FairQueue[anyio.Event] = FairQueue(slots, share)
        self._ended = anyio.Event()
        """A turn has ended since somebody looked."""

    def __repr__(self) -> str:
        return repr(self._queue)

    @asynccontextmanager
    async def turn(self, party: Hashable | None = None) -> AsyncIterator[None]:
        """Wait for a turn of `party` (None: on whose behalf this task runs) and keep it until the block ends."""
        who = _party.get() if party is None else party
        mine = anyio.Event()
        _call(self._queue.enter(who, mine))
        try:
            await mine.wait()
            yield
        finally:
            _call(self._queue.leave(who, mine))
            self._ended.set()

    async def rest(self) -> None:
        """Return when nobody has a turn or waits for one."""
        while not self._queue.is_empty:
            if self._ended.is_set():
                self._ended = anyio.Event()
            await self._ended.wait()


def _call(admitted: list[anyio.Event]) -> None:
    for event in admitted:
        event.set()
