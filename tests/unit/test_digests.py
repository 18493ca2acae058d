"""The file of records on disk: whole at any time, nothing guessed, other writers waited for."""

import fcntl
import json
import os
import threading
from pathlib import Path

import pytest

from pursersd.errors import StateError
from pursersd.rules import digest_record as records
from pursersd.rules.digest_record import Changed, Record
from pursersd.state import digests
from pursersd.state.digests import DigestFile, DigestFiles

NOBODY: frozenset[str] = frozenset()


def tag(name: str) -> digests.Change:
    """Watch a tag."""
    return lambda record: records.watch(record, [], [name])


@pytest.fixture
def file(tmp_path: Path) -> DigestFile:
    return DigestFile(str(tmp_path / "folder" / "orchestrator_state_b.json"))


def test_what_one_identity_changes_is_its_own(file: DigestFile) -> None:
    file.change("one", "AI-1", tag("x"))
    file.change("two", "AI-2", tag("y"))
    assert file.load("one", "AI-1").watched_tags == {"x"}
    assert file.load("two", "AI-2").watched_tags == {"y"}
    assert file.load("three", "AI-3") == Record()
    assert os.stat(file.path).st_mode & 0o777 == 0o600


def test_writers_wait_for_one_another(file: DigestFile) -> None:
    """Each reads what the other has written: nobody's change is lost (bridge.md D20)."""
    threads = [threading.Thread(target=file.change, args=("one", "AI-1", tag(str(n)))) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.load("one", "AI-1").watched_tags == {str(n) for n in range(20)}


def test_a_lock_that_is_not_given_back_is_named(file: DigestFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.change("one", "AI-1", tag("x"))
    monkeypatch.setattr(digests, "LOCK_TIMEOUT", 0.05)
    with open(file.path + ".lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StateError, match=r"another program has held .*\.lock"):
            file.change("one", "AI-1", tag("y"))
    assert file.load("one", "AI-1").watched_tags == {"x"}


def test_a_damaged_file_is_moved_aside(file: DigestFile) -> None:
    for n in range(2):
        file.change("one", "AI-1", tag("x"))
        Path(file.path).write_bytes(b"{" * (n + 1))
        assert file.load("one", "AI-1") == Record()
    assert Path(file.path + ".damaged").read_bytes() == b"{"
    assert Path(file.path + ".damaged-2").read_bytes() == b"{{"


def test_a_newer_file_is_refused_and_stays(file: DigestFile) -> None:
    file.change("one", "AI-1", tag("x"))
    newer = b'{"schema":2}'
    Path(file.path).write_bytes(newer)
    for use in (lambda: file.load("one", "AI-1"), lambda: file.change("one", "AI-1", tag("y"))):
        with pytest.raises(StateError, match="newer version") as refused:
            use()
        assert file.path in str(refused.value)
    assert Path(file.path).read_bytes() == newer


def test_a_crash_while_writing_leaves_the_old_one(file: DigestFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.change("one", "AI-1", tag("x"))

    def crash(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(StateError, match="No space left"):
        file.change("one", "AI-1", tag("y"))
    monkeypatch.undo()
    assert file.load("one", "AI-1").watched_tags == {"x"}
    assert not Path(file.path + ".new").exists()


def test_the_bridges_file_is_asked_once_and_never_written(tmp_path: Path) -> None:
    bridge = tmp_path / "orchestrator_state_b.json"
    bridge.write_text(json.dumps({"schema_version": 1, "ack_cursor_map": {"b": 5}, "watched_tags": ["x"]}))
    before = bridge.read_bytes()
    file = DigestFile(str(bridge))
    assert file.load("one", "AI-1").cursors == {"b": 5}
    assert bridge.read_bytes() == before
    bridge.write_text(json.dumps({"schema_version": 1, "ack_cursor_map": {"b": 9}}))
    assert file.load("one", "AI-1").cursors == {"b": 5}
    assert file.change("one", "AI-1", tag("y"))[0].watched_tags == {"x", "y"}


@pytest.mark.parametrize("text", ["{", '{"schema_version": 2}', '{"schema_version": 1, "ack_cursor_map": {"b": "x"}}'])
def test_a_bridges_file_that_is_not_understood_gives_nothing(tmp_path: Path, text: str) -> None:
    bridge = tmp_path / "orchestrator_state_b.json"
    bridge.write_text(text)
    assert DigestFile(str(bridge)).load("one", "AI-1") == Record()
    assert bridge.read_text() == text


def test_a_digest_is_possible_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = tmp_path / "orchestrator_state_b.json"
    bridge.write_text(json.dumps({"schema_version": 1, "ack_cursor_map": {"b": 5}}))

    def refuse(identity: str, agent_id: str, change: digests.Change) -> Changed:
        raise StateError("it cannot be written")

    file = DigestFile(str(bridge))
    monkeypatch.setattr(file, "change", refuse)
    assert file.load("one", "AI-1").cursors == {"b": 5}


def test_where_it_lies() -> None:
    files = DigestFiles(None)
    assert files.of({"HOME": "/h"}, "/w", "b").path == "/h/.pursers/wait-bridge/orchestrator_state_b.identities.json"
    assert files.of({"PURSERS_BRIDGE_STATE_DIR": "s"}, "/w", "b").path == "/w/s/orchestrator_state_b.identities.json"
    assert files.of({"PURSERS_BRIDGE_STATE": "/x/y.json"}, "/w", "b").path == "/x/y.identities.json"
    assert DigestFiles("/p").of({}, "/w", "b").path == "/p/state/orchestrator_state_b.identities.json"
