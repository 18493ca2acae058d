"""lanes: what is done to one thing keeps its order, and nothing is kept of things that nobody does anything to."""

import anyio
import pytest

from pursersd.lanes import Lanes

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_one_thing_has_one_lane_and_others_have_theirs() -> None:
    lanes, order, go = Lanes(), list[str](), anyio.Event()

    async def do(thing: str | None, name: str) -> None:
        async with lanes.lane(thing):
            order.append(name)
            await go.wait()
            order.append(f"{name} done")

    async with anyio.create_task_group() as tasks:
        for thing, name in (("a", "first"), ("a", "second"), ("b", "other"), (None, "any"), (None, "more")):
            tasks.start_soon(do, thing, name)
        await anyio.wait_all_tasks_blocked()
        assert sorted(order) == ["any", "first", "more", "other"]
        assert len(lanes) == 2
        go.set()
    assert order.index("second") > order.index("first done")


async def test_a_lane_is_gone_with_the_last_who_was_in_it() -> None:
    lanes = Lanes()
    async with anyio.create_task_group() as tasks:

        async def stay() -> None:
            async with lanes.lane("a"):
                await anyio.sleep_forever()

        tasks.start_soon(stay)
        tasks.start_soon(stay)
        await anyio.wait_all_tasks_blocked()
        assert len(lanes) == 1
        tasks.cancel_scope.cancel()
    assert len(lanes) == 0
