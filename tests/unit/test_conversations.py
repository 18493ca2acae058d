"""conversation/registry: who is there, who comes back, and what an end leaves behind: nothing."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import cast

import anyio
import pytest

from pursersd.central.pool import PoolKey
from pursersd.conversation import registry
from pursersd.conversation.conversation import Conversation
from pursersd.conversation.departures import KEPT
from pursersd.conversation.hello import Resume
from pursersd.conversation.identity import ProcessIdentity, identify
from pursersd.conversation.lineage import Lineage
from pursersd.conversation.reaper import REAPED, reap
from pursersd.conversation.registry import Conversations
from pursersd.conversation.surroundings import Surroundings
from pursersd.feed.centrals import Centrals
from pursersd.seats.seat import Seat, SeatRequest
from pursersd.settings import resolve
from pursersd.waits.board import BoardWait
from rig import processes

pytestmark = pytest.mark.anyio

PATIENCE = 30.0  # seconds for something that must happen


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Pools:
    """In the place of Centrals: one pool, which notes what is done to it."""

    def __init__(self) -> None:
        self.users: set[str] = set()
        self.released: list[str] = []

    def release(self, conversation: str, *, but: PoolKey | None = None) -> None:
        if but is None:  # else it goes on
            self.users.discard(conversation)
            self.released.append(conversation)


class Scene:
    """A running registry."""

    def __init__(self) -> None:
        self.pools = Pools()
        self.all = Conversations(cast("Centrals", self.pools))
        self.ended: list[str] = []
        self.all.on_end = self._on_end

    async def _on_end(self, conversation: Conversation) -> None:
        self.ended.append(f"{conversation.id}: {conversation.end_reason}")

    def open(
        self,
        shim: ProcessIdentity,
        host: ProcessIdentity | None = None,
        resume: str | None = None,
        epoch: int = 0,
    ) -> Conversation:
        settings = resolve({"ONBOARD_CENTRAL_TOKEN": "token-a"}, lambda path: "")
        told = Resume(conversation=resume, link_epoch=epoch, idle_s=None) if resume else None
        opened = self.all.open(Lineage(shim, host, "/", "1"), Surroundings(lambda: settings), told)
        self.pools.users.add(opened.id)
        return opened


@asynccontextmanager
async def running() -> AsyncIterator[Scene]:
    scene = Scene()
    async with anyio.create_task_group() as tasks:
        await tasks.start(scene.all.run)
        yield scene
        tasks.cancel_scope.cancel()


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.sleep(0.005)


@contextmanager
def process() -> Iterator[tuple["subprocess.Popen[bytes]", ProcessIdentity]]:
    """A process that can be a shim or a host."""
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, env=processes.environment()
    ) as child:
        try:
            found = identify(child.pid, None)
            assert found is not None
            yield child, found
        finally:
            child.kill()


@pytest.fixture
def us() -> ProcessIdentity:
    found = identify(os.getpid(), None)
    assert found is not None
    return found


def takes(conversation: Conversation, *names: str) -> None:
    """The conversation waits under these names, on a board each."""
    seats = [Seat(SeatRequest("b", name, "worker"), f"AI-{name}", "PR", "worker", 900, None) for name in names]
    boards = [SimpleNamespace(waiter=SimpleNamespace(seat=seat), name="b", is_polled=False, lag=None) for seat in seats]
    conversation.watching(cast("list[BoardWait]", boards))


async def test_each_new_shim_begins_a_conversation(us: ProcessIdentity) -> None:
    async with running() as scene:
        first, second = scene.open(us), scene.open(us)
        assert first is not second
        assert first.id != second.id
        assert (first.link_epoch, len(scene.all)) == (0, 2)


async def test_a_shim_that_comes_back_finds_its_conversation(us: ProcessIdentity) -> None:
    async with running() as scene:
        first = scene.open(us)
        first.attach()
        assert scene.open(us, resume=first.id, epoch=1) is first
        assert first.attach() == 2
        assert len(scene.all) == 1


async def test_another_shim_cannot_take_it_over(us: ProcessIdentity) -> None:
    with process() as (_, other):
        async with running() as scene:
            first = scene.open(us)
            second = scene.open(other, resume=first.id)
            assert second is not first
            assert second.id != first.id


async def test_after_the_daemons_death_the_shims_word_is_taken(us: ProcessIdentity) -> None:
    async with running() as scene:
        conversation = scene.open(us, resume="c-from-before", epoch=6)
        assert conversation.id == "c-from-before"
        assert conversation.attach() == 7


async def test_an_ended_conversation_is_not_resumed(us: ProcessIdentity, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the end and the burial a link must not land on a conversation that nobody will bury again."""
    held = anyio.Event()
    async with running() as scene:

        async def hold(conversation: Conversation) -> None:
            await held.wait()

        scene.all.on_end = hold
        first = scene.open(us)
        first.end("the link was lost and did not come back")
        await anyio.wait_all_tasks_blocked()
        second = scene.open(us, resume=first.id, epoch=3)
        assert second is not first
        held.set()
        await until(lambda: len(scene.all) == 1)
        assert not second.ended.is_set()
        assert second.tasks is not None


@pytest.mark.parametrize("dies", ["shim", "host"])
async def test_a_death_ends_it(us: ProcessIdentity, dies: str) -> None:
    with process() as (child, mortal):
        async with running() as scene:
            conversation = scene.open(mortal, us) if dies == "shim" else scene.open(us, mortal)
            conversation.attach()
            await anyio.wait_all_tasks_blocked()
            assert not conversation.ended.is_set()
            child.kill()
            await until(lambda: not len(scene.all))
            assert scene.ended == [f"{conversation.id}: the {dies} ended"]
            assert scene.pools.released == [conversation.id]


async def test_a_shim_that_is_dead_already_is_noticed(us: ProcessIdentity) -> None:
    async with running() as scene:
        scene.open(ProcessIdentity(us.pid, us.started - 1))
        await until(lambda: not len(scene.all))


async def test_a_lost_link_of_a_dead_shim_ends_it_at_once(us: ProcessIdentity) -> None:
    with process() as (child, mortal):
        async with running() as scene:
            conversation = scene.open(mortal)
            epoch = conversation.attach()
            child.kill()
            child.wait()
            scene.all.detached(conversation, epoch)
            assert conversation.end_reason == "the shim ended"


async def test_a_lost_link_may_come_back(us: ProcessIdentity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "REATTACH", 0.03)
    async with running() as scene:
        back, gone = scene.open(us), scene.open(us)
        await until(lambda: back.tasks and gone.tasks)
        for conversation in (back, gone):
            scene.all.detached(conversation, conversation.attach())
            assert conversation.state == "detached"
        assert scene.open(us, resume=back.id) is back
        back.attach()
        await until(lambda: len(scene.all) == 1)
        assert scene.ended == [f"{gone.id}: the link was lost and did not come back"]
        assert back.state == "idle"


async def test_each_loss_has_its_own_grace(us: ProcessIdentity, monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer of an earlier loss does not end a conversation that is detached once more."""
    monkeypatch.setattr(registry, "REATTACH", 0.05)
    async with running() as scene:
        conversation = scene.open(us)
        await until(lambda: conversation.tasks)
        scene.all.detached(conversation, conversation.attach())
        await anyio.sleep(0.03)
        epoch = conversation.attach()
        scene.all.detached(conversation, epoch)
        scene.all.reattach_s = 1000.0
        await anyio.sleep(0.04)  # the first timer has run out, the second has not
        assert not conversation.ended.is_set()


async def test_an_old_link_that_ends_late_changes_nothing(us: ProcessIdentity) -> None:
    async with running() as scene:
        conversation = scene.open(us)
        old = conversation.attach()
        conversation.attach()
        scene.all.detached(conversation, old)
        assert conversation.state == "idle"


async def test_a_seat_says_who_shares_it_and_an_end_gives_everything_back(us: ProcessIdentity) -> None:
    async with running() as scene:
        first, second, third = (scene.open(us) for _ in range(3))
        takes(first, "shared", "of the first")
        takes(second, "shared")
        takes(third, "own")
        assert [(row.seat, row.shared_by) for row in scene.all.rows()] == [("shared", 2), ("shared", 2), ("own", 1)]
        third.end("x")
        await until(lambda: len(scene.all) == 2)
        first.end("x")
        await until(lambda: len(scene.all) == 1)
        assert [row.shared_by for row in scene.all.rows()] == [1]
        second.end("x")
        await until(lambda: not len(scene.all))
        assert scene.pools.released == [third.id, first.id, second.id]


async def test_its_tasks_end_with_it(us: ProcessIdentity) -> None:
    cancelled = anyio.Event()

    async def acknowledge() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with running() as scene:
        conversation = scene.open(us)
        await until(lambda: conversation.tasks)
        conversation.requests.begin(1, 1, None)
        conversation.requests.acknowledge_when_delivered(1, acknowledge)
        conversation.requests.end(1, answered=True)
        conversation.delivered(1)
        await anyio.wait_all_tasks_blocked()
        conversation.end("x")
        await until(lambda: not len(scene.all))
        assert cancelled.is_set()
        assert conversation.tasks is None


async def test_idle_is_the_time_without_conversations(us: ProcessIdentity, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10.0
    monkeypatch.setattr(registry, "time", SimpleNamespace(monotonic=lambda: now))
    async with running() as scene:
        now += 5
        assert scene.all.idle_s == 5
        conversation = scene.open(us)
        assert scene.all.idle_s == 0
        now += 5
        conversation.end("x")
        await until(lambda: not len(scene.all))
        now += 2
        assert scene.all.idle_s == 2


async def test_the_end_of_the_daemon_buries_everybody(us: ProcessIdentity) -> None:
    async with running() as scene:
        found = [scene.open(us) for _ in range(3)]
        await until(lambda: all(c.tasks for c in found))
    assert len(scene.all) == 0
    assert sorted(scene.pools.released) == sorted(c.id for c in found)


async def test_the_last_departures_are_remembered_the_newest_first(us: ProcessIdentity) -> None:
    async with running() as scene:
        for number in range(KEPT + 2):
            conversation = scene.open(us)
            conversation.last_tool = f"tool {number}"
            conversation.end("x")
            await until(lambda: not len(scene.all))
        rows = scene.all.departures.rows()
        assert len(rows) == KEPT
        assert [rows[0].last_tool, rows[-1].last_tool] == [f"tool {KEPT + 1}", "tool 2"]
        assert (rows[0].reason, rows[0].shim_pid) == ("x", us.pid)
        assert 0 <= rows[0].ago_s <= rows[-1].ago_s


async def test_reap_ends_what_is_held_for_nobody_and_nothing_else(us: ProcessIdentity) -> None:
    async with running() as scene:
        lives, lost = scene.open(us, us), scene.open(us)
        lives.attach()
        assert [(row.conversation, row.kind) for row in reap(scene.all, really=False)] == [(lost.id, "conversation")]
        assert not lost.ended.is_set()
        reap(scene.all, really=True)
        await until(lambda: len(scene.all) == 1)
        assert scene.all.departures.rows()[0].reason == REAPED
        assert reap(scene.all, really=True) == []  # the process is ours and lives
        assert not lives.ended.is_set()
