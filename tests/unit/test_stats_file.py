"""state/stats_file: the file is whole at any time, shared with other writers, and never in the way."""

import fcntl
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pursersd.rules.stats import Changes
from pursersd.rules.stats_document import seat_key
from pursersd.state import stats_file
from pursersd.state.stats_file import Unwritten, write

NOW = datetime(2026, 3, 8, 13, 30, tzinfo=UTC)
TODAY = "2026-03-08"


def calls(count: int = 1, agent: str = "ann") -> Changes:
    found = Changes()
    for _ in range(count):
        found.called(NOW, "b", agent, "board_catchup", request_bytes=10, response_bytes=100)
    return found


def content(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def counted(path: Path, agent: str = "ann") -> int:
    number: int = content(path)["days"][TODAY]["seats"][seat_key("b", agent)]["calls"]["board_catchup"]["count"]
    return number


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folder" / "bridge-stats.json"


def test_a_new_file_is_ours_alone_and_one_sorted_line(path: Path) -> None:
    before = os.umask(0)
    try:
        write(str(path), calls(), NOW)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(os.listdir(path.parent)) == ["bridge-stats.json", "bridge-stats.json.lock"]
    assert stat.S_IMODE((path.parent / "bridge-stats.json.lock").stat().st_mode) == 0o600
    text = path.read_text()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) + "\n"


def test_it_is_added_to(path: Path) -> None:
    for agent in ("ann", "bob", "ann"):
        write(str(path), calls(agent=agent), NOW)
    assert (counted(path), counted(path, "bob")) == (2, 1)


def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir(parents=True)
    real = tmp_path / "elsewhere.json"
    path.symlink_to(real)
    write(str(path), calls(), NOW)
    assert path.is_symlink()
    assert counted(real) == 1


@pytest.mark.parametrize("damage", [b"", b"half a fi", b"\xff\xfe", b"[]"])
def test_a_damaged_file_is_moved_aside(path: Path, damage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(damage)
    write(str(path), calls(), NOW)
    assert counted(path) == 1
    aside = path.with_name("bridge-stats.json.damaged")
    assert aside.read_bytes() == damage
    assert str(aside) in caplog.text


def test_what_was_moved_aside_stays_when_it_happens_again(path: Path) -> None:
    path.parent.mkdir(parents=True)
    for damage in (b"one", b"two", b"three"):
        path.write_bytes(damage)
        write(str(path), calls(), NOW)
    kept = {file.name: file.read_bytes() for file in path.parent.glob("*.damaged*")}
    name = f"{path.name}.damaged"
    assert kept == {name: b"one", f"{name}-2": b"two", f"{name}-3": b"three"}


def test_a_file_of_a_newer_version_is_left_as_it_is(path: Path) -> None:
    path.parent.mkdir(parents=True)
    newer = b'{"days":{},"schema_version":5,"something":{"new":1}}'
    path.write_bytes(newer)
    with pytest.raises(Unwritten, match="schema 5"):
        write(str(path), calls(), NOW)
    assert path.read_bytes() == newer


def test_a_file_too_large_is_moved_aside(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_file, "READ_LIMIT", 100)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"days": {}, "more": "x" * 100}))
    write(str(path), calls(), NOW)
    assert counted(path) == 1


def test_what_a_killed_writer_left_is_overwritten(path: Path) -> None:
    write(str(path), calls(), NOW)
    left = path.parent / "bridge-stats.json.new"
    left.write_text("half a fi")
    write(str(path), calls(), NOW)
    assert counted(path) == 2
    assert not left.exists()


def refused(path: Path, why: str) -> None:
    with pytest.raises(Unwritten, match=why):
        write(str(path), calls(), NOW)


def test_a_lock_that_is_held_is_not_waited_for_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_file, "LOCK_TIMEOUT", 0.05)
    write(str(path), calls(), NOW)
    with open(f"{path}.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(path, "another program has held")
    write(str(path), calls(), NOW)
    assert counted(path) == 2


def test_a_lock_that_is_given_back_is_waited_for(path: Path) -> None:
    write(str(path), calls(), NOW)
    with open(f"{path}.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=write, args=(str(path), calls(), NOW))
        waiting.start()
        assert counted(path) == 1
        fcntl.flock(lock, fcntl.LOCK_UN)
        waiting.join(10)
    assert counted(path) == 2


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_something_else_in_its_place_is_left_alone(path: Path, kind: str) -> None:
    path.parent.mkdir(parents=True)
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    refused(path, "not a regular file")
    assert path.is_fifo() if kind == "pipe" else path.is_dir()


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 300])
def test_a_path_that_no_system_takes(tmp_path: Path, name: str) -> None:
    refused(tmp_path / name, ".")


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused(tmp_path / "file" / "bridge-stats.json", "exists|[Nn]ot a directory")


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """Files of this process may not get longer than `room` bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("room", [0, 20])
def test_a_full_disk_leaves_the_file_as_it_was(path: Path, room: int) -> None:
    write(str(path), calls(), NOW)
    before = path.read_bytes()
    with full_disk(room):
        refused(path, "large|space")
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == ["bridge-stats.json", "bridge-stats.json.lock"]


WRITER = """
import sys
from datetime import UTC, datetime
from pursersd.rules.stats import Changes
from pursersd.state.stats_file import write
while True:
    changes = Changes()
    for n in range(50):
        changes.returned(datetime(2026, 3, 8, 13, 30, tzinfo=UTC), "b", f"ann{n}", 1, outcome="cue", mode="push", reason="x")
    changes.called(datetime(2026, 3, 8, 13, 30, tzinfo=UTC), "b", "ann", "board_catchup", request_bytes=1, response_bytes=1)
    write(sys.argv[1], changes, datetime(2026, 3, 8, 13, 30, tzinfo=UTC))
    print(flush=True)
"""


def test_a_kill_at_any_moment_leaves_a_whole_file(path: Path) -> None:
    told = 0
    for delay in range(6):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            for _ in range(2 + delay):
                assert writer.stdout.readline()
                told += 1
            writer.send_signal(signal.SIGKILL)
            told += len(writer.stdout.readlines())
        assert told <= counted(path) <= told + delay + 1  # one more per kill may have been written and not told
    write(str(path), calls(), NOW)
    assert sorted(os.listdir(path.parent)) == ["bridge-stats.json", "bridge-stats.json.lock"]


def test_several_writers_at_once_lose_nothing(path: Path) -> None:
    def many(agent: str) -> None:
        for _ in range(20):
            write(str(path), calls(agent=agent), NOW)
            write(str(path), calls(), NOW)

    writers = [threading.Thread(target=many, args=(f"writer{number}",)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert counted(path) == 60
    assert [counted(path, f"writer{number}") for number in range(3)] == [20, 20, 20]
