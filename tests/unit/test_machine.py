"""machine: a state folder that several machines share is the first one's, and each other one has a part of its own."""

import os
import sys
from pathlib import Path

import pytest

from pursersd import api, machine
from pursersd.machine import Machine, claim, own_part, owner, this_machine

ID = "3d1219c7c4c5404aaa1f6d2a48adfda4"


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    (tmp_path / "machine-id").write_text(f"{ID}\n")
    return tmp_path


def known(etc: Path, host: str, *, container: bool = False) -> Machine:
    mark = etc / "dockerenv"
    if container:
        mark.touch()
    else:
        mark.unlink(missing_ok=True)
    files = (str(etc / "none"), str(etc / "machine-id"))
    return this_machine(id_files=files, container_files=(str(mark),), host=host)


def be(monkeypatch: pytest.MonkeyPatch, name: str) -> Machine:
    """Be another machine from now on."""
    mine = Machine(name.encode().hex().ljust(12, "0")[:12], name)
    monkeypatch.setattr(machine, "this_machine", lambda: mine)
    return mine


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS says which machine it is")
def test_a_machine_is_known_by_its_id_and_a_container_by_its_name_as_well(etc: Path) -> None:
    here = known(etc, "here")
    assert here.host == "here"
    assert len(here.key) == 12
    assert ID[:8] not in here.key  # the id itself is nobody else's business
    assert known(etc, "renamed").key == here.key
    assert known(etc, "renamed", container=True).key != here.key
    assert known(etc, "one", container=True).key != known(etc, "other", container=True).key
    for nothing in ("", "uninitialized\n"):
        (etc / "machine-id").write_text(nothing)
        assert len({known(etc, "one").key, known(etc, "other").key, here.key}) == 3


def test_this_machine_is_always_the_same_one() -> None:
    assert this_machine() == this_machine()


def test_the_first_one_has_the_folder_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(tmp_path / "state")
    first = be(monkeypatch, "first")
    assert own_part(folder) == folder
    assert not os.path.exists(folder)  # asking makes nothing
    claim(folder)
    claim(folder)
    assert (owner(folder), os.listdir(folder)) == (first, ["machine"])
    assert own_part(folder) == folder
    second = be(monkeypatch, "second")
    claim(folder)
    assert (owner(folder), os.listdir(folder)) == (first, ["machine"])
    assert own_part(folder) == f"{folder}/machine-{second.key}"
    be(monkeypatch, "first")
    assert own_part(folder) == folder


def test_a_machine_that_comes_between_look_and_claim_was_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    be(monkeypatch, "late")
    fsync = os.fsync

    def another(fd: int) -> None:
        fsync(fd)
        (tmp_path / "machine").write_text("aaaaaaaaaaaa early\n")

    monkeypatch.setattr(os, "fsync", another)
    claim(str(tmp_path))
    assert owner(str(tmp_path)) == Machine("a" * 12, "early")
    assert os.listdir(tmp_path) == ["machine"]


@pytest.mark.parametrize("damaged", ["", "short name", "no hexadecimal", "\0" * 600])
def test_a_claim_that_says_nothing_is_replaced(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "machine").write_text(damaged)
    assert own_part(str(tmp_path)) == str(tmp_path)
    claim(str(tmp_path))
    assert owner(str(tmp_path)) == this_machine()


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)
    claim(str(tmp_path))
    assert owner(str(tmp_path)) == this_machine()
    assert os.listdir(tmp_path) == ["machine"]


def test_a_folder_that_cannot_be_written_is_left_to_whoever_needs_it(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    claim(str(tmp_path / "state"))
    assert own_part(str(tmp_path / "state")) == str(tmp_path / "state")


def test_state_and_log_of_another_machine_are_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = str(tmp_path)
    be(monkeypatch, "first")
    claim(f"{home}/state")
    assert (api.state_folder(home), api.log_file(home)) == (f"{home}/state", f"{home}/log/pursersd.log")
    second = be(monkeypatch, "second")
    assert api.state_folder(home) == f"{home}/state/machine-{second.key}"
    assert api.log_file(home) == f"{home}/log/pursersd-{second.key}.log"
    assert api.shared_state_folder(home) == f"{home}/state"
