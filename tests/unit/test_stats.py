"""state/stats: what is counted is written once in a while, once at the end, and kept when that fails."""

import json
import logging
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import from_thread

from pursersd import api
from pursersd.rules.stats import Changes
from pursersd.state import stats as module
from pursersd.state.stats import StatsWriter, StatsWriters
from pursersd.state.stats_file import Unwritten

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Disk:
    """In the place of the function that writes: notes what it got, or fails."""

    def __init__(self) -> None:
        self.written: list[tuple[str, int]] = []
        """Path and number of calls, of each writing."""
        self.failure: str | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        """What happens on the event loop while this writes."""
        self.tries = 0

    def __call__(self, path: str, changes: Changes, now: object) -> None:
        self.tries += 1
        from_thread.run_sync(self.meanwhile)
        if self.failure is not None:
            raise Unwritten(self.failure)
        self.written.append((path, count_of(changes)))


def count_of(changes: Changes) -> int:
    return sum(
        tool.count
        for day in changes.document.days.values()
        for seat in day.seats.values()
        for tool in seat.calls.values()
    )


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(module, "write", disk)
    monkeypatch.setattr(module, "EVERY", 0.02)
    monkeypatch.setattr(module, "RETRY", 0.03)
    monkeypatch.setattr(module, "SHARE", 0)
    return disk


def count(writer: StatsWriter, times: int = 1) -> None:
    for _ in range(times):
        writer.count.called(module.datetime.now(module.UTC), "b", "ann", "t", request_bytes=1, response_bytes=1)


@asynccontextmanager
async def running(home: str | None = "/inst") -> Any:
    writers = StatsWriters(home)
    async with anyio.create_task_group() as tasks:
        await tasks.start(writers.run)
        yield writers
        tasks.cancel_scope.cancel()


async def until(condition: Any) -> None:
    with anyio.fail_after(30):
        while not condition():
            await anyio.sleep(0.002)


async def test_many_changes_are_one_writing(disk: Disk) -> None:
    async with running() as writers:
        writer = writers.of({}, "/")
        count(writer, 5)
        await until(lambda: disk.written)
        count(writer, 2)
        await until(lambda: len(disk.written) == 2)
        assert disk.written == [("/inst/state/bridge-stats.json", 5), ("/inst/state/bridge-stats.json", 2)]
        assert writer.is_clean
        assert writer.writes == 2


async def test_while_nothing_changes_nothing_runs(disk: Disk) -> None:
    async with running() as writers:
        before = anyio.get_running_tasks()
        writer = writers.of({}, "/")
        count(writer)
        await until(lambda: disk.written)
        await until(lambda: len(anyio.get_running_tasks()) == len(before))
        assert disk.tries == 1


async def test_each_path_has_one_writer(disk: Disk) -> None:
    async with running(None) as writers:
        one = writers.of({"HOME": "/h"}, "/x")
        other = writers.of({"HOME": "/h", "PURSERS_BRIDGE_STATS": "s.json"}, "/x")
        assert writers.of({"PURSERS_BRIDGE_STATS": "/x/s.json"}, "/y") is other
        count(one), count(other, 2)
        await until(lambda: len(disk.written) == 2)
        assert sorted(disk.written) == [("/h/.pursers/wait-bridge/bridge-stats.json", 1), ("/x/s.json", 2)]
        assert [row.path for row in writers.rows()] == [one.path, other.path]
        del other
        await until(lambda: [row.path for row in writers.rows()] == [one.path])


async def test_a_writer_that_nobody_holds_lives_until_it_has_written(disk: Disk) -> None:
    async with running() as writers:
        count(writers.of({}, "/"))
        await until(lambda: disk.written)
        await until(lambda: not writers.rows())


async def test_what_cannot_be_written_is_kept_and_told_once(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=module.__name__)
    disk.failure = "No space left on device"
    async with running() as writers:
        writer = writers.of({}, "/")
        count(writer)
        await until(lambda: disk.tries >= 2)
        count(writer)
        await until(lambda: disk.tries >= 4)
        (row,) = writers.rows()
        assert (row.trouble, row.writes) == ("No space left on device", 0)
        assert row.trouble_s is not None
        disk.failure = "Read-only file system"
        await until(lambda: writer.trouble == "Read-only file system")
        disk.failure = None
        await until(lambda: disk.written)
        assert disk.written == [("/inst/state/bridge-stats.json", 2)]
        assert writers.rows()[0].trouble is None
    assert [record.getMessage().partition(": ")[2].partition(".")[0] for record in caplog.records] == [
        "No space left on device",
        "Read-only file system",
        "",
    ]


async def test_what_is_counted_during_a_writing_is_written_next(disk: Disk) -> None:
    writer = StatsWriters("/inst").of({}, "/")
    count(writer)
    disk.meanwhile = lambda: count(writer, 2)
    await writer.write()
    disk.failure = "No space left on device"
    await writer.write()
    disk.failure, disk.meanwhile = None, lambda: None
    await writer.write()
    assert [calls for _, calls in disk.written] == [1, 4]
    assert writer.is_clean


async def test_what_could_not_be_written_for_long_stays_bounded(disk: Disk) -> None:
    disk.failure = "x"
    async with running() as writers:
        writer = writers.of({}, "/")
        for number in range(400):
            writer.count.called(
                module.datetime.now(module.UTC), "b", f"a{number}", "t", request_bytes=1, response_bytes=1
            )
            writer.count.pushes(module.datetime.now(module.UTC), "b", f"a{number}")
        await until(lambda: disk.tries >= 1 and writer.trouble)
        (row,) = writers.rows()
        (day,) = json.loads(bytes(row.unwritten))["days"].values()
        assert (len(day["seats"]), len(row.pushed)) == (256, 256)


async def test_the_end_writes_what_is_left(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 3600)
    async with running() as writers:
        writer = writers.of({}, "/")
        count(writer, 3)
        await anyio.sleep(0.01)
        assert disk.written == []
    await writers.finish()
    assert disk.written == [("/inst/state/bridge-stats.json", 3)]
    await writers.finish()
    assert disk.tries == 1


async def test_a_writing_that_was_cancelled_before_it_began_loses_nothing(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVERY", 3600)
    writers = StatsWriters("/inst")
    writer = writers.of({}, "/")
    count(writer)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await writer.write()
    assert scope.cancelled_caught
    assert not writer.is_clean
    await writers.finish()
    assert disk.written == [("/inst/state/bridge-stats.json", 1)]


async def test_slow_writing_is_rare(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARE", 1_000_000)
    writer = StatsWriters("/inst").of({}, "/")
    count(writer)
    await writer.write()
    assert writer.pause > 1


async def test_rows_show_what_is_not_written_yet(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 3600)
    async with running() as writers:
        writer = writers.of({}, "/")
        count(writer)
        writer.count.pushes(module.datetime.now(module.UTC), "b", "ann")
        (row,) = writers.rows()
        assert isinstance(row, api.StatsFile)
        unwritten = json.loads(bytes(row.unwritten))
        (day,) = unwritten["days"].values()
        assert [seat["calls"]["t"]["count"] for seat in day["seats"].values()] == [1]
        assert list(row.pushed) == ['["b","ann"]']


async def test_a_real_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.01)
    async with running(str(tmp_path)) as writers:
        count(writers.of({}, "/"))
        file = tmp_path / "state" / "bridge-stats.json"
        await until(file.exists)
        assert json.loads(file.read_text())["schema_version"] == 4
