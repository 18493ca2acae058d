"""conversation/naming: a name when it is needed, kept, remembered, and noted where the bridge looks."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from pursersd.conversation.identity import ProcessIdentity, identify
from pursersd.conversation.naming import Applicant, Naming
from pursersd.errors import DoorsError
from pursersd.rules.door import decode
from pursersd.rules.names import Place
from pursersd.settings import Settings, resolve
from pursersd.state.doors import Doors
from pursersd.state.names import Names
from rig import processes
from rig.doors import URL, packed, token

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Scene:
    """A folder with one door, and daemons that come and go."""

    def __init__(self, folder: Path) -> None:
        self.doors = Doors(folder / "doors")
        self.doors.store(decode(packed(URL, "b", "worker", token())))
        self.file = folder / "names.json"
        self.naming = self.daemon()

    def daemon(self) -> Naming:
        return Naming(Names(self.file), hostname=lambda: "box")

    def settings(self, **environ: str) -> Settings:
        return resolve(environ, lambda path: "", self.doors.load)

    async def name(
        self,
        conversation: str,
        *,
        folder: str = "/a",
        host: str = "codex",
        shim: ProcessIdentity | None = None,
        taken: tuple[str, ...] = (),
        naming: Naming | None = None,
        **environ: str,
    ) -> str | None:
        gone = ProcessIdentity(os.getpid(), 0.0)
        applicant = Applicant(conversation, shim or gone, Place(host, folder), self.doors)
        return await (naming or self.naming).name(applicant, self.settings(**environ), lambda: taken)

    @property
    def used(self) -> list[str]:
        (door,) = self.doors.load()
        return list(door.seat_names_used)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture
def shim() -> Iterator[ProcessIdentity]:
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, env=processes.environment()
    ) as child:
        try:
            found = identify(child.pid, None)
            assert found is not None
            yield found
        finally:
            child.kill()


async def test_a_name_is_chosen_once_and_the_bridge_knows_of_it(scene: Scene) -> None:
    assert [await scene.name("c-1") for _ in range(3)] == ["worker-box-1"] * 3
    assert scene.used == ["worker-box-1"]


async def test_a_restarted_conversation_gets_it_back_and_nothing_grows(scene: Scene) -> None:
    for number in range(5):
        assert await scene.name(f"c-{number}") == "worker-box-1"
        scene.naming.forget(f"c-{number}")
    assert scene.used == ["worker-box-1"]
    assert await scene.name("c-9", folder="/b") == "worker-box-2"
    assert await scene.name("c-10", host="zed") == "worker-box-3"
    assert scene.used == ["worker-box-1", "worker-box-2", "worker-box-3"]


async def test_two_at_once_get_two(scene: Scene) -> None:
    """Neither has a name when they ask: who comes second must see the first one's."""
    names: list[str | None] = []

    async def one(conversation: str) -> None:
        names.append(await scene.name(conversation, shim=ProcessIdentity(os.getpid(), started())))

    async with anyio.create_task_group() as tasks:
        for conversation in ("c-1", "c-2"):
            tasks.start_soon(one, conversation)
    assert sorted(map(str, names)) == ["worker-box-1", "worker-box-2"]


def started() -> float:
    us = identify(os.getpid(), None)
    assert us is not None
    return us.started


async def test_calls_of_one_conversation_that_come_together_get_one(scene: Scene) -> None:
    names: list[str | None] = []

    async def one() -> None:
        names.append(await scene.name("c-1", shim=ProcessIdentity(os.getpid(), started())))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(one)
    assert names == ["worker-box-1"] * 4


async def test_after_a_restart_of_the_daemon_each_finds_its_own(scene: Scene, shim: ProcessIdentity) -> None:
    assert await scene.name("c-1", shim=shim) == "worker-box-1"
    # Its shim lives and will be back: somebody who is faster gets another one.
    after = scene.daemon()
    assert await scene.name("c-2", naming=after) == "worker-box-2"
    assert await scene.name("c-1", shim=shim, naming=after) == "worker-box-1"


async def test_a_name_of_a_dead_shim_is_free_again(scene: Scene) -> None:
    assert await scene.name("c-1") == "worker-box-1"
    assert await scene.name("c-2", naming=scene.daemon()) == "worker-box-1"


async def test_a_name_that_a_bridge_took_is_not_ours(scene: Scene) -> None:
    scene.doors.reserve("b", "worker", "worker-box-1")
    assert await scene.name("c-1") == "worker-box-2"


async def test_a_name_that_a_bridge_took_since_the_conversation_began_is_not_ours_either(scene: Scene) -> None:
    settings = scene.settings()
    scene.doors.reserve("b", "worker", "worker-box-1")
    applicant = Applicant("c-1", ProcessIdentity(1, 1.0), Place("codex", "/"), scene.doors)
    assert await scene.naming.name(applicant, settings, tuple) == "worker-box-2"


async def test_a_name_that_central_gave_to_somebody_else_is_given_up_at_the_next_call(scene: Scene) -> None:
    assert await scene.name("c-1") == "worker-box-1"
    await scene.naming.note(URL, "b", "worker-box-1", held=False, foreign=True)
    assert await scene.name("c-1") == "worker-box-2"
    assert await scene.name("c-2", taken=("worker-box-2",)) == "worker-box-3"


async def test_a_chosen_name_is_noted_and_stays_its_users(scene: Scene) -> None:
    assert await scene.name("c-1", ONBOARD_AGENT_NAME="worker-box-1") == "worker-box-1"
    assert scene.used == ["worker-box-1"]
    await scene.naming.note(URL, "b", "worker-box-1", held=False, foreign=True)
    assert await scene.name("c-1", ONBOARD_AGENT_NAME="worker-box-1") == "worker-box-1"  # Central says it again
    assert await scene.name("c-2") == "worker-box-2"


async def test_who_held_a_seat_holds_it_after_a_restart(scene: Scene) -> None:
    await scene.name("c-1")
    await scene.naming.note(URL, "b", "worker-box-1", held=True)
    after = scene.daemon()
    await scene.name("c-2", naming=after)
    assert after.is_held(URL, "b", "worker-box-1")


async def test_a_seat_that_was_joined_by_hand_is_the_first_conversations(scene: Scene) -> None:
    """`pursersctl join` takes a seat before there is a conversation: it must not stay empty for ever."""
    scene.doors.reserve("b", "worker", "worker-box-1")
    await scene.naming.adopt(URL, "b", "worker", "worker-box-1", chosen=False)
    after = scene.daemon()
    assert after.is_held(URL, "b", "worker-box-1")
    assert await scene.name("c-1", naming=after) == "worker-box-1"
    assert await scene.name("c-2", naming=after, taken=("worker-box-1",)) == "worker-box-2"


async def test_a_name_that_was_chosen_at_a_join_is_for_who_chooses_it(scene: Scene) -> None:
    await scene.naming.adopt(URL, "b", "worker", "worker-box-1", chosen=True)
    assert await scene.name("c-1") == "worker-box-2"
    assert await scene.name("c-2", ONBOARD_AGENT_NAME="worker-box-1") == "worker-box-1"
    assert scene.naming.is_held(URL, "b", "worker-box-1")


async def test_without_a_door_there_is_nothing_to_choose(scene: Scene) -> None:
    settings = resolve({"ONBOARD_CENTRAL_TOKEN": "t"}, lambda path: "", lambda: ())
    applicant = Applicant("c-1", ProcessIdentity(1, 1.0), Place("codex", "/"), scene.doors)
    assert await scene.naming.name(applicant, settings, tuple) is None
    assert not scene.file.exists()


async def test_a_door_at_another_central_has_names_of_its_own(scene: Scene) -> None:
    await scene.name("c-1")
    settings = scene.settings()
    moved = replace(settings, url="http://127.0.0.1:9/mcp")
    applicant = Applicant("c-1", ProcessIdentity(os.getpid(), 0.0), Place("codex", "/a"), scene.doors)
    assert await scene.naming.name(applicant, moved, tuple) == "worker-box-2"


async def test_a_door_that_was_forgotten_meanwhile(scene: Scene) -> None:
    settings = scene.settings()
    scene.doors.forget("b", "worker")
    with pytest.raises(DoorsError):
        await scene.naming.name(
            Applicant("c-1", ProcessIdentity(1, 1.0), Place("codex", "/"), scene.doors), settings, tuple
        )
    assert not scene.file.exists()
