"""local: what stands in the way of a local board before there is a process, and the wish for one on disk."""

import importlib.util
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from pursersctl.local import TICKET_TIMEOUT
from pursersd.api import LocalUp
from pursersd.errors import LocalBoardError, Unreachable
from pursersd.feed.centrals import Centrals
from pursersd.local import founding, health
from pursersd.local.board import LocalBoard
from pursersd.local.instance import Instance, require_installed
from pursersd.local.process import CentralProcess
from pursersd.local.record import Record, load, save
from pursersd.secret import Secret

RECORD = Record(board="local", port=28731, wanted=True, doors=["/doors"])


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def board(folder: Path) -> LocalBoard:
    return LocalBoard(folder, Centrals(), str(folder / "daemon.lock"))


def lacking(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else real(name))


@pytest.mark.parametrize("missing", ["pursers_central", "door_admin"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    require_installed()
    lacking(monkeypatch, missing)
    with pytest.raises(LocalBoardError, match=r"Install it with: .* -m pip install 'pursersd\[local\]'") as caught:
        require_installed()
    assert (caught.value.code, sys.executable in str(caught.value)) == ("local_missing", True)


def test_without_pip_it_is_another_command(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, "pursers_central", "pip")
    with pytest.raises(LocalBoardError, match="Install it with: uv pip install --python "):
        require_installed()


@pytest.mark.anyio
async def test_nothing_is_made_without_the_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lacking(monkeypatch, "pursers_central")
    with pytest.raises(LocalBoardError):
        await board(tmp_path / "local").up(LocalUp(folder=str(tmp_path)))
    assert not (tmp_path / "local").exists()


def test_a_wish_is_kept_for_us_alone(tmp_path: Path) -> None:
    file = tmp_path / "local" / "local.json"
    assert load(file) is None
    save(file, RECORD)
    assert load(file) == RECORD
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["local.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"board": "b"}', '{"board":"b","port":1,"wanted":true,"schema":9}'])
def test_a_damaged_wish_is_named_and_not_taken_for_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "local.json"
    file.write_text(text)
    with pytest.raises(LocalBoardError, match=r"local\.json cannot be used: .*--reset"):
        load(file)


def test_a_wish_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "local").write_text("a file")
    with pytest.raises(LocalBoardError, match="cannot be written"):
        save(tmp_path / "local" / "local.json", RECORD)


@pytest.mark.anyio
@pytest.mark.parametrize(("fields", "named"), [({"board": "other"}, "local"), ({"port": 28999}, "28731")])
async def test_one_that_is_there_is_not_made_into_another(tmp_path: Path, fields: dict[str, Any], named: str) -> None:
    found = board(tmp_path)
    found._record = RECORD
    with pytest.raises(LocalBoardError, match=rf"{named}.*--reset"):
        await found.up(LocalUp(folder=str(tmp_path), **fields))


@pytest.mark.anyio
async def test_an_instance_without_a_record_is_not_used(tmp_path: Path) -> None:
    instance = tmp_path / "instance"
    instance.mkdir()
    (instance / "profile.env").touch()
    with pytest.raises(LocalBoardError, match=r"without its record.*--reset"):
        await board(tmp_path).up(LocalUp(folder=str(tmp_path)))


@pytest.mark.anyio
async def test_a_name_that_central_does_not_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalBoardError, match="80 letters"):
        await board(tmp_path).up(LocalUp(folder=str(tmp_path), board="a b"))


def test_the_owners_key_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalBoardError, match=r"admin\.jwt.*--reset"):
        assert Instance(tmp_path).owner


def test_nobody_there_is_nobody(tmp_path: Path) -> None:
    process = CentralProcess(tmp_path, str(tmp_path / "lock"))
    assert (process.pid, process.epitaph(had_served=False)) == (None, "it did not say why")


@pytest.mark.anyio
async def test_a_stranger_at_the_port_is_not_our_central(tmp_path: Path) -> None:
    assert not await health.answers(1, tmp_path)


@pytest.mark.anyio
async def test_a_central_that_does_not_answer_is_named_before_pursersctl_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert founding.TICKET_TIMEOUT < TICKET_TIMEOUT
    monkeypatch.setattr(founding, "TICKET_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with anyio.create_task_group() as tasks:
            centrals = Centrals()
            await tasks.start(centrals.run)
            owner = founding.Owner(centrals, silent.getsockname()[1], Secret("token"))
            with pytest.raises(Unreachable, match=r"did not answer within .* pursersctl local status"):
                await owner.create_ticket("local", "Say hello", "")
            tasks.cancel_scope.cancel()
