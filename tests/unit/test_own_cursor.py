"""feed/catchup: a seat's own cursor is read only when what was delivered before has been acknowledged."""

from typing import Any, cast

import anyio

from pursersd.central.pool import Pool
from pursersd.feed.catchup import Catchup
from pursersd.seats.seat import Seat, SeatRequest, Seats

ANN = Seat(SeatRequest("b", "ann", "worker"), "AI-ann", "PR-1", "worker", 900, None)
BOB = Seat(SeatRequest("b", "bob", "worker"), "AI-bob", "PR-1", "worker", 900, None)
PAGE = {"events": [], "next_cursor": 5, "latest_cursor": 5, "scan_count": 0}


class SlowPool:
    """Answers pages at once, and acknowledgements when `acknowledging` is set."""

    def __init__(self) -> None:
        self.acknowledging = anyio.Event()
        self.asked: list[tuple[str, int | None]] = []
        self.heads: dict[str, int] = {}

    async def read(self, tool: str, arguments: dict[str, Any], **_: object) -> dict[str, Any]:
        self.asked.append((arguments["agent_name"], arguments.get("cursor")))
        if arguments["ack"]:
            await self.acknowledging.wait()
        return PAGE


def test_the_own_cursor_is_read_behind_a_running_acknowledgement() -> None:
    async def body() -> None:
        pool = SlowPool()
        catchup = Catchup(cast(Pool, pool), Seats(cast(Pool, pool)))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(catchup.acknowledge, ANN, 5)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(catchup.page, ANN, None)
            tasks.start_soon(catchup.page, ANN, 3)
            tasks.start_soon(catchup.page, BOB, None)
            await anyio.wait_all_tasks_blocked()
            assert pool.asked == [("ann", 4), ("ann", 3), ("bob", None)]
            pool.acknowledging.set()
            await anyio.wait_all_tasks_blocked()
            assert pool.asked[3:] == [("ann", None)]
        assert len(catchup._own_cursor) == 0, "nothing is kept of a seat once nobody asks for it"

    anyio.run(body)
