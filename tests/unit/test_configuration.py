"""conversation/configuration: what follows the stored door of a conversation, and what does not."""

from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from pursersd.conversation.configuration import Configuration
from pursersd.settings import Settings, resolve
from pursersd.state.doors import Doors
from unit.stored_doors import URL, door, write

pytestmark = pytest.mark.anyio

OLD, NEW = door("b", names=("me",)), door("b", serial=2)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Scene:
    """A folder of doors, a token file, and a conversation with an environment."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = folder
        self.token_file = "first"
        self.doors = Doors(folder)
        self.environ = environ
        self.of = Configuration(self.resolve(), self.resolve, self.doors)

    def resolve(self) -> Settings:
        return resolve(self.environ, lambda path: self.token_file, self.doors.load)

    @property
    def token(self) -> str | None:
        token = self.of.settings.token
        return token.reveal() if token is not None else None


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """One that has nothing but the door OLD."""
    write(tmp_path, OLD)
    return Scene(tmp_path, {})


def test_nothing_changes_while_nobody_changes_the_doors(scene: Scene) -> None:
    assert scene.of.settings.is_door_mode
    assert [scene.of.follow() for _ in range(2)] == [False, False]
    assert not scene.of.refused()
    assert scene.token == OLD.token.reveal()


def test_a_replaced_door_is_another_credential(scene: Scene) -> None:
    before = scene.of.key
    write(scene.folder, NEW)
    assert scene.of.follow()
    assert not scene.of.follow(), "once"
    assert scene.token == NEW.token.reveal()
    assert scene.of.key != before
    settings = scene.of.settings
    assert (settings.board, settings.role, settings.url) == ("b", "worker", URL)
    assert {settings.origin(name).name for name in ("token", "url", "board", "role")} == {NEW.kid}


def test_a_door_that_moved_is_another_central(scene: Scene) -> None:
    write(scene.folder, door("b", url="http://127.0.0.1:2/mcp"))
    assert scene.of.follow()
    assert scene.of.settings.url == "http://127.0.0.1:2/mcp"


def test_a_url_that_was_given_stays(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    scene = Scene(tmp_path, {"ONBOARD_CENTRAL_URL": "http://127.0.0.1:3/mcp"})
    write(tmp_path, door("b", url="http://127.0.0.1:2/mcp", serial=2))
    assert scene.of.follow()
    assert (scene.of.settings.url, scene.token) == ("http://127.0.0.1:3/mcp", NEW.token.reveal())


def test_a_door_that_moved_to_nowhere_is_a_problem(scene: Scene) -> None:
    write(scene.folder, door("b", url="nowhere"))
    scene.of.follow()
    assert not scene.of.repair()
    assert scene.of.settings.problems[0].startswith("door URL must be an http or https URL")


def test_a_name_that_was_noted_is_no_other_credential(scene: Scene) -> None:
    scene.doors.reserve("b", "worker", "you")
    assert not scene.of.follow()
    assert scene.of.settings.door is not None
    assert scene.of.settings.door.seat_names_used == ("me", "you"), "who chooses a name must know it"


def test_other_doors_do_not_move_it(scene: Scene) -> None:
    write(scene.folder, door("a"), OLD, door("b", "reviewer"))
    assert not scene.of.follow()
    assert scene.of.repair()
    assert (scene.of.settings.board, scene.of.settings.role) == ("b", "worker")


def test_a_forgotten_door_leaves_no_credential_and_no_other_door_takes_its_place(scene: Scene) -> None:
    write(scene.folder, door("b", "reviewer"))
    assert scene.of.follow()
    assert scene.token is None
    assert not scene.of.repair()
    text = "the stored door for board b and role worker was forgotten. Store one again with: pursersctl join"
    assert scene.of.settings.problems == (text,)
    write(scene.folder, NEW)
    assert scene.of.repair()
    assert scene.token == NEW.token.reveal()


def test_a_damaged_file_takes_nothing_away(scene: Scene) -> None:
    (scene.folder / "doors.json").write_text("{")
    assert not scene.of.follow()
    assert scene.token == OLD.token.reveal()


def test_a_door_helps_a_conversation_that_had_none(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {})
    assert not scene.of.repair()
    write(tmp_path, OLD)
    scene.of.follow()
    assert scene.of.repair()
    assert scene.token == OLD.token.reveal()


def test_a_conversation_with_its_own_token_follows_no_door(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"ONBOARD_CENTRAL_TOKEN": "its-own"})
    write(tmp_path, OLD)
    assert not scene.of.follow()
    assert (scene.of.settings.board, scene.token) == ("pursers", "its-own")
    assert not scene.of.refused()


def test_a_token_file_is_read_again_when_its_token_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"ONBOARD_CENTRAL_TOKEN_FILE": "/t"})
    assert not scene.of.refused()
    scene.token_file = "second"
    assert not scene.of.follow()
    assert scene.token == "first"
    write(tmp_path, OLD)  # which would give it another board, too
    assert not scene.of.refused()
    (tmp_path / "doors.json").unlink()
    assert scene.of.refused()
    assert (scene.of.settings.board, scene.token) == ("pursers", "second")


async def test_what_runs_with_the_old_credential_is_cancelled(scene: Scene) -> None:
    began = anyio.Event()
    ended: list[str] = []

    async def work(name: str) -> None:
        with scene.of.until_renewed():
            began.set()
            await anyio.sleep_forever()
        ended.append(name)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for name in ("one", "two"):
                tasks.start_soon(work, name)
            await began.wait()
            write(scene.folder, NEW)
            assert scene.of.follow()
    assert sorted(ended) == ["one", "two"]


async def test_what_has_ended_is_not_cancelled(scene: Scene) -> None:
    with scene.of.until_renewed():
        pass
    with scene.of.until_renewed():
        write(scene.folder, NEW)
        scene.of.follow()
    await anyio.lowlevel.checkpoint()


def test_where_the_doors_lie(scene: Scene) -> None:
    assert scene.of.folder == str(scene.folder)
    assert Configuration(scene.of.settings, scene.resolve, None).folder is None
