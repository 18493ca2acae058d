"""waits/engine: the seats' own cursors move together once the host has the answer."""

from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from pursersd.errors import Unreachable
from pursersd.waits.board import BoardWait
from pursersd.waits.engine import _acknowledge

pytestmark = pytest.mark.anyio

LOST = Unreachable("reset")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Moves:
    """In the place of the catchups of several boards: all wait for `go`, then those that must fail do."""

    def __init__(self, *failing: str) -> None:
        self.begun: list[tuple[str, int]] = []
        self.done: list[str] = []
        self.go = anyio.Event()
        self._failing = failing

    async def acknowledge(self, seat: str, cursor: int) -> None:
        self.begun.append((seat, cursor))
        await self.go.wait()
        if seat in self._failing:
            raise LOST
        self.done.append(seat)

    def board(self, seat: str) -> BoardWait:
        made: Any = SimpleNamespace(feed=SimpleNamespace(catchup=self), waiter=SimpleNamespace(seat=seat))
        return cast(BoardWait, made)


async def test_all_boards_are_under_way_at_once() -> None:
    """The next wait may follow at once, and would read the board again whose turn had not come."""
    moves = Moves()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_acknowledge, [(moves.board("home"), 3), (moves.board("far"), 5)])
        await anyio.wait_all_tasks_blocked()
        assert moves.begun == [("home", 3), ("far", 5)]
        moves.go.set()
    assert moves.done == ["home", "far"]


async def test_one_that_fails_stops_no_other() -> None:
    moves = Moves("home")
    moves.go.set()
    with pytest.raises(Unreachable) as caught:
        await _acknowledge([(moves.board("home"), 3), (moves.board("far"), 5)])
    assert caught.value is LOST
    assert moves.done == ["far"]
