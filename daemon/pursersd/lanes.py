"""What is done to one thing keeps the order in which it was asked for, also while some of it has to be sent again.

What is done to different things does not wait for one another (RB-HYB-001).
"""

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio


@dataclass(slots=True)
class _Lane:
    turn: anyio.Lock = field(default_factory=anyio.Lock)
    users: int = 0


class Lanes:
    """A lane for each thing; it exists while somebody is in it."""

    def __init__(self) -> None:
        self._lanes: dict[Hashable, _Lane] = {}

    def __len__(self) -> int:
        return len(self._lanes)

    @asynccontextmanager
    async def lane(self, thing: Hashable | None) -> AsyncIterator[None]:
        """Wait for those who came before to the same `thing`, and be the only one there. None has no order to keep."""
        if thing is None:
            yield
            return
        lane = self._lanes.setdefault(thing, _Lane())
        lane.users += 1
        try:
            async with lane.turn:
                yield
        finally:
            lane.users -= 1
            if not lane.users:
                del self._lanes[thing]
