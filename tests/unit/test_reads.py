"""feed/reads: one question at a time, and no answer that is older than what the reader knows (central.md §6.6)."""

from collections.abc import Mapping
from typing import Any, cast

import anyio
import pytest

from pursersd.central.pool import Pool
from pursersd.errors import Unreachable
from pursersd.feed.reads import FRESH, KEPT, SharedReads

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Pooled:
    """A pool whose answers the test gives; by default each is as new as the journal position `seq`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.seq = 10
        self.error: Exception | None = None
        self.open = anyio.Event()
        """Answers come once this is set."""
        self.open.set()

    async def read(self, tool: str, arguments: Mapping[str, Any], *, background: bool = False) -> dict[str, Any]:
        assert background, "what many share must not stand in the way of what a model asked for"
        assert arguments["board_id"] == "b"
        number = len(self.asked)
        self.asked.append(" ".join([tool, *(f"{k}={v}" for k, v in arguments.items() if k != "board_id")]))
        seq = self.seq
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return {"number": number, "latest_seq": seq}


@pytest.fixture
def pooled() -> Pooled:
    return Pooled()


@pytest.fixture
def reads(pooled: Pooled) -> SharedReads:
    return SharedReads(cast("Pool", pooled), "b")


async def crowd(reads: SharedReads, size: int, pooled: Pooled, **options: Any) -> list[int]:
    """That many readers of one ticket at once; which answers they got."""
    pooled.open = anyio.Event()
    got: list[int] = []

    async def one() -> None:
        got.append((await reads.read("ticket_get", {"ticket_id": "T"}, **options))["number"])

    async with anyio.create_task_group() as tasks:
        for _ in range(size):
            tasks.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        pooled.open.set()
    return got


async def test_ten_readers_ask_once(reads: SharedReads, pooled: Pooled) -> None:
    assert await crowd(reads, 10, pooled) == [0] * 10
    assert await crowd(reads, 10, pooled) == [0] * 10
    assert pooled.asked == ["ticket_get ticket_id=T"]


async def test_other_arguments_are_another_question(reads: SharedReads, pooled: Pooled) -> None:
    for arguments in ({"ids": ("a", "b"), "limit": 1}, {"limit": 1, "ids": ("a", "b")}, {"limit": 1, "ids": ("a",)}):
        await reads.read("ticket_list", arguments)
    await reads.read("ticket_get", {"limit": 1, "ids": ("a",)})
    assert len(pooled.asked) == 3  # the order of the arguments makes no difference


async def test_a_cue_makes_answers_history(reads: SharedReads, pooled: Pooled) -> None:
    await reads.read("ticket_get", {"ticket_id": "T"})
    reads.cued()
    assert await crowd(reads, 3, pooled) == [1] * 3
    assert len(pooled.asked) == 2


async def test_a_cue_during_the_question_makes_later_readers_ask_again(reads: SharedReads, pooled: Pooled) -> None:
    pooled.open = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reads.read, "ticket_get", {"ticket_id": "T"})
        await anyio.wait_all_tasks_blocked()
        reads.cued()
        tasks.start_soon(reads.read, "ticket_get", {"ticket_id": "T"})
        await anyio.wait_all_tasks_blocked()
        assert len(pooled.asked) == 2
        pooled.open.set()


async def test_an_answer_older_than_the_reader_is_not_used(reads: SharedReads, pooled: Pooled) -> None:
    await reads.read("ticket_get", {"ticket_id": "T"})
    pooled.seq = 12
    assert await crowd(reads, 3, pooled, at_least=10) == [0] * 3
    assert await crowd(reads, 3, pooled, at_least=12) == [1] * 3
    assert len(pooled.asked) == 2


async def test_without_a_stream_everybody_asks(reads: SharedReads, pooled: Pooled) -> None:
    assert sorted(await crowd(reads, 3, pooled, live=False)) == [0, 1, 2]


async def test_a_cancelled_reader_leaves_the_question_to_the_next(reads: SharedReads, pooled: Pooled) -> None:
    pooled.open = anyio.Event()
    got: list[int] = []

    async def follow() -> None:
        got.append((await reads.read("ticket_get", {"ticket_id": "T"}))["number"])

    async def lead(scope: anyio.CancelScope) -> None:
        with scope:
            await reads.read("ticket_get", {"ticket_id": "T"})

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lead, scope)
        await anyio.wait_all_tasks_blocked()
        for _ in range(3):
            tasks.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert len(pooled.asked) == 2  # one of the three took over
        pooled.open.set()
    assert got == [1, 1, 1]


async def test_a_failure_is_the_askers_own_and_is_not_kept(reads: SharedReads, pooled: Pooled) -> None:
    pooled.error = Unreachable("gone")
    with pytest.raises(Unreachable):
        await reads.read("ticket_get", {"ticket_id": "T"})
    pooled.error = None
    assert (await reads.read("ticket_get", {"ticket_id": "T"}))["number"] == 1


async def test_the_answers_longest_unused_are_forgotten(reads: SharedReads, pooled: Pooled) -> None:
    await reads.read("ticket_get", {"ticket_id": "T"})
    for number in range(KEPT - 1):
        await reads.read("ticket_get", {"ticket_id": f"other {number}"})
    await reads.read("ticket_get", {"ticket_id": "T"})  # now the most recently used
    await reads.read("ticket_get", {"ticket_id": "one too many"})
    before = len(pooled.asked)
    await reads.read("ticket_get", {"ticket_id": "T"})
    assert len(pooled.asked) == before
    await reads.read("ticket_get", {"ticket_id": "other 0"})
    assert len(pooled.asked) == before + 1


async def test_an_answer_does_not_serve_for_ever(pooled: Pooled) -> None:
    """Central changes some things without an event, so that no cue says that it is out of date."""
    now = 0.0
    reads = SharedReads(cast("Pool", pooled), "b", clock=lambda: now)
    assert await crowd(reads, 3, pooled) == [0] * 3
    now = FRESH - 1
    assert await crowd(reads, 3, pooled) == [0] * 3
    now = FRESH
    assert await crowd(reads, 3, pooled) == [1] * 3


async def test_a_cue_lets_go_of_all_answers(reads: SharedReads, pooled: Pooled) -> None:
    for number in range(10):
        await reads.read("ticket_get", {"ticket_id": str(number)})
    assert repr(reads) == f"<SharedReads b: 10/{KEPT}>"
    reads.cued()
    assert repr(reads) == f"<SharedReads b: 0/{KEPT}>"


async def test_an_answer_that_comes_after_a_cue_is_not_kept(reads: SharedReads, pooled: Pooled) -> None:
    pooled.open = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reads.read, "ticket_get", {"ticket_id": "T"})
        await anyio.wait_all_tasks_blocked()
        reads.cued()
        pooled.open.set()
    assert repr(reads) == f"<SharedReads b: 0/{KEPT}>"
