"""central/reach: while Central does not answer one probe asks for all, and nobody is kept longer than it takes."""

import anyio
import pytest

from pursersd.central import reach as module
from pursersd.central.reach import Reach
from pursersd.errors import CentralError, Overloaded, Unauthenticated, Unreachable

pytestmark = pytest.mark.anyio

CUT = Unreachable("the connection was lost")
PATIENCE = 30.0  # seconds for something that must happen


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_RETRY", 0.001)
    monkeypatch.setattr(module, "LAST_RETRY", 0.001)


class Scene:
    """A Central that answers as the test says."""

    def __init__(self) -> None:
        self.errors: list[CentralError] = []
        self.probes = 0
        self.go = anyio.Event()
        self.go.set()
        self.reach = Reach(self.probe)

    async def probe(self) -> None:
        self.probes += 1
        await self.go.wait()
        if self.errors:
            raise self.errors.pop(0)


async def test_nobody_asks_a_central_that_answers() -> None:
    scene = Scene()
    await scene.reach.back()
    scene.reach.answered()
    await scene.reach.back()
    assert (scene.probes, scene.reach.is_up, scene.reach.losses) == (0, True, 0)


async def test_one_probe_asks_for_everybody() -> None:
    scene = Scene()
    scene.errors = [CUT, CUT, Overloaded("HTTP 503")]
    scene.reach.lost(CUT)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(scene.reach.back)
    assert (scene.probes, scene.reach.is_up, scene.reach.losses) == (4, True, 1)


async def test_the_answer_to_something_else_counts_as_well() -> None:
    scene = Scene()
    module.FIRST_RETRY = module.LAST_RETRY = 1000.0  # put back by the fixture
    scene.errors = [CUT]
    scene.reach.lost(CUT)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.reach.back)
        await anyio.wait_all_tasks_blocked()
        assert scene.probes == 1
        scene.reach.answered()
        with anyio.fail_after(PATIENCE):
            await scene.reach.back()
    assert scene.probes == 1


async def test_whoever_needs_it_now_does_not_wait_for_the_next_turn() -> None:
    scene = Scene()
    module.FIRST_RETRY = module.LAST_RETRY = 1000.0
    scene.errors = [CUT]
    scene.reach.lost(CUT)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scene.reach.back)
            await anyio.wait_all_tasks_blocked()
            scene.reach.hurry()
    assert scene.probes == 2


async def test_a_pause_that_central_asks_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    hint = Overloaded("HTTP 503", retry_after_s=1000.0)
    scene.errors = [hint]
    scene.reach.lost(CUT)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.reach.back)
        await anyio.wait_all_tasks_blocked()
        scene.reach.hurry()
        await anyio.sleep(0.01)
        assert scene.probes == 1
        tasks.cancel_scope.cancel()


async def test_a_refusal_is_an_answer() -> None:
    scene = Scene()
    scene.errors = [Unauthenticated("HTTP 401")]
    scene.reach.lost(CUT)
    await scene.reach.back()
    assert (scene.probes, scene.reach.is_up) == (1, True)
    scene.reach.lost(Unauthenticated("HTTP 401"))
    assert scene.reach.is_up


async def test_a_probe_without_an_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.001)
    scene = Scene()
    scene.go = anyio.Event()
    scene.reach.doubt()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scene.reach.back)
            while scene.probes < 3:
                await anyio.sleep(0.001)
            scene.go.set()


async def test_when_the_one_who_asks_is_cancelled_another_one_does() -> None:
    scene = Scene()
    scene.go = anyio.Event()
    scene.reach.lost(CUT)
    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as first:
            async with anyio.create_task_group() as asking:
                asking.start_soon(scene.reach.back)
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(scene.reach.back)
                await anyio.wait_all_tasks_blocked()
                assert scene.probes == 1
                first.cancel()
        scene.go.set()
    assert scene.probes == 2


async def test_it_is_silent_as_long_as_the_newest_that_is_known_is_that_nothing_comes() -> None:
    scene = Scene()
    silent = Unreachable("nothing came", silent=True)
    for error, expected in (
        (CUT, False),
        (silent, True),
        (CUT, False),
        (silent, True),
        (Overloaded("HTTP 503"), False),
    ):
        scene.reach.lost(error)
        assert scene.reach.is_silent == expected
    scene.reach.lost(silent)
    scene.reach.doubt()
    assert not scene.reach.is_silent  # the machine has slept: all may have changed
    scene.reach.lost(silent)
    scene.reach.answered()
    assert (scene.reach.is_silent, scene.reach.is_up) == (False, True)


async def test_a_probe_that_is_not_answered_tells_of_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.001)
    scene = Scene()
    scene.go = anyio.Event()
    scene.reach.lost(CUT)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scene.reach.back)
            while not scene.reach.is_silent:
                await anyio.sleep(0.001)
            scene.go.set()
    assert not scene.reach.is_silent
