"""What happens, told to whoever listens at the moment: bounded for each, and nothing at all while nobody does."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import anyio

from pursersd.api.events import Change

MOST = 1000
"""Changes kept for a listener that does not take them; one more and it is cut."""

LISTENERS = 16
"""How many may listen at once."""


class TooMany(Exception):
    """There is no room for another listener."""


class Listener:
    """Somebody who is told of changes. `is_slow` is final: from then on nothing is kept for it."""

    def __init__(self) -> None:
        self.is_slow = False
        self._kept: deque[Change] = deque()
        self._arrived = anyio.Event()

    def __repr__(self) -> str:
        return f"<Listener {'slow' if self.is_slow else len(self._kept)}>"

    def tell(self, change: Change) -> None:
        """Keep a change until it is taken."""
        if len(self._kept) >= MOST:
            self.is_slow = True
            self._kept.clear()
        if not self.is_slow:
            self._kept.append(change)
        self._arrived.set()

    def take(self) -> list[Change]:
        """The changes since the last look."""
        taken = list(self._kept)
        self._kept.clear()
        self._arrived = anyio.Event()
        return taken

    async def arrived(self) -> None:
        """Return when there is something to take, or the listener has become slow."""
        await self._arrived.wait()


class Events:
    """Who listens."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def __repr__(self) -> str:
        return f"<Events {self._listeners}>"

    def tell(self, change: Callable[[str], Change]) -> None:
        """Tell everybody of a change, which is made, with its time, only if somebody listens."""
        if not self._listeners:
            return
        told = change(now())
        for listener in self._listeners:
            listener.tell(told)

    @contextmanager
    def listening(self) -> Iterator[Listener]:
        """A listener, told of everything until the block ends. Raises TooMany."""
        if len(self._listeners) >= LISTENERS:
            raise TooMany(f"{LISTENERS} programs follow the events already. End one of them and try again.")
        listener = Listener()
        self._listeners.append(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)


def now() -> str:
    """The clock time of an event, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
