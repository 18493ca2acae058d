"""state/names: what a restart of the daemon finds, and that a damaged file stops nothing."""

import stat
from pathlib import Path

import pytest

from pursersd.rules.names import DoorId, Entry, Place
from pursersd.state.names import Names

DOOR = DoorId("http://127.0.0.1:1/mcp", "b", "worker")
ANN = Entry(DOOR, "ann", Place("codex", "/a"), "c-1", (7, 7.5))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "names.json"


def test_a_restart_knows_what_was_remembered(path: Path) -> None:
    names = Names(path, clock=lambda: 5.0)
    names.remember(ANN)
    names.note(DOOR.url, "b", "ann", held=True)
    (found,) = Names(path).entries
    assert found == Entry(DOOR, "ann", Place("codex", "/a"), "c-1", (7, 7.5), used_at=5.0, held=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["names.json"]


def test_what_central_said_counts_for_the_name_on_that_board(path: Path) -> None:
    names = Names(path)
    names.remember(ANN)
    names.note(DOOR.url, "b", "bob", held=True)
    names.note(DOOR.url, "c", "ann", held=True)
    assert not names.is_held(DOOR.url, "b", "ann")
    assert not names.is_held(DOOR.url, "b", "bob")
    names.note(DOOR.url, "b", "ann", held=True)
    assert names.is_held(DOOR.url, "b", "ann")
    names.note(DOOR.url, "b", "ann", held=False, foreign=True)
    assert not names.is_held(DOOR.url, "b", "ann")
    assert names.entries[0].foreign


def test_what_is_no_news_is_not_written(path: Path) -> None:
    names = Names(path)
    names.remember(ANN)
    names.note(DOOR.url, "b", "ann", held=True)
    before = path.stat().st_mtime_ns, path.stat().st_ino
    names.note(DOOR.url, "b", "ann", held=True)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b'{"schema":1}', b'{"schema":2,"names":[]}', b'{"schema":1,"names":[{"name":"x"}]}', b"\xff"],
)
def test_a_damaged_file_is_moved_aside(path: Path, text: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    path.write_bytes(text)
    names = Names(path)
    assert names.entries == []
    assert not path.exists()
    assert path.with_name("names.json.damaged").read_bytes() == text
    assert "is damaged" in caplog.text
    names.remember(ANN)
    assert len(Names(path).entries) == 1


def test_fields_of_a_later_version_are_ignored(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"schema":1,"x":1,"names":[{"door":{"url":"u","board":"b","role":"r"},"name":"n","x":1}]}')
    assert [entry.name for entry in Names(path).entries] == ["n"]


def test_a_folder_that_cannot_be_written_is_only_a_pity(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    names = Names(tmp_path / "file" / "names.json")
    names.remember(ANN)
    assert names.entries[0].name == "ann"
    assert "cannot be written" in caplog.text


def test_without_a_file_nothing_outlives_it() -> None:
    names = Names(None)
    names.remember(ANN)
    assert Names(None).entries == []
