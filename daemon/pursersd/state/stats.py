"""What is counted for the bridge-stats.json files of all conversations: one writer for each path (bridge.md §12).

Counting never waits and never fails: it adds to a record in memory. What has changed is written some seconds later, by
a thread, and once more at a clean end; while nothing changes there is no task and no timer.
"""

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from weakref import WeakValueDictionary

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus

from pursersd import api
from pursersd.log import concerning
from pursersd.rules.bridge_files import stats_path
from pursersd.rules.configuration import DEFAULTS
from pursersd.rules.stats import Changes
from pursersd.state.stats_file import Unwritten, write

log = logging.getLogger(__name__)

EVERY = DEFAULTS.stats_every_s
"""Seconds from a change to its writing: what a killed daemon loses at most."""

RETRY = 30.0
"""Seconds until a file that could not be written is tried again."""

SHARE = 50
"""A file whose writing takes long is written so rarely that this takes at most one part in SHARE of the time."""


class StatsWriter:
    """Counts for one file. `changes` is what is not written yet; add to it through `count`."""

    def __init__(self, path: str, owner: "StatsWriters") -> None:
        self.path = path
        self.trouble: str | None = None
        """Why the file could not be written the last time."""
        self.trouble_since = 0.0
        self.writes = 0
        """How often it was written: what was read of it before the newest time is out of date."""
        self._changes = Changes()
        self._writing = anyio.Lock()
        self._owner = owner
        self._took_s = 0.0

    def __repr__(self) -> str:
        return f"<StatsWriter {self.path}{' ' + self.trouble if self.trouble else ''}>"

    @property
    def count(self) -> Changes:
        """What to count in, at once: the next writing takes it away."""
        self._owner.changed(self)
        return self._changes

    @property
    def is_clean(self) -> bool:
        """Whether everything is written."""
        return not self._changes

    @property
    def pause(self) -> float:
        """Seconds until its next writing."""
        return RETRY if self.trouble is not None else max(self._owner.every_s, SHARE * self._took_s)

    def row(self) -> api.StatsFile:
        """What pursersctl gets to see of it."""
        return api.StatsFile(
            path=self.path,
            writes=self.writes,
            unwritten=msgspec.Raw(msgspec.json.encode(self._changes.document)),
            pushed=dict(self._changes.pushed),
            trouble=self.trouble,
            trouble_s=round(time.monotonic() - self.trouble_since, 3) if self.trouble is not None else None,
        )

    async def write(self) -> None:
        """Write what has changed. What cannot be written is kept, as far as it would be kept in the file."""
        async with self._writing:
            taken, self._changes = self._changes, Changes()
            if not taken:
                return
            now, began = datetime.now(UTC), time.monotonic()
            trouble: str | None = None
            is_written = False
            try:
                await to_thread.run_sync(write, self.path, taken, now)
                is_written = True
            except Unwritten as error:
                trouble = str(error)
            finally:
                if not is_written:  # also when we are cancelled before it began
                    taken.add(self._changes)
                    taken.trim(now)
                    self._changes = taken
            self._took_s = time.monotonic() - began
            self.writes += is_written
            self._note(trouble)

    def _note(self, trouble: str | None) -> None:
        if trouble == self.trouble:
            return
        if trouble is None:
            log.info("%s is written again", self.path)
        else:
            log.warning("%s cannot be written: %s. What is counted is kept and written later.", self.path, trouble)
            if self.trouble is None:
                self.trouble_since = time.monotonic()
        self.trouble = trouble


class StatsWriters:
    """The writers of the daemon, by path. `home` is the folder of a private instance. `run()` owns their tasks."""

    def __init__(self, home: str | None) -> None:
        self._home = home
        self.every_s = EVERY
        """Seconds from a change to its writing."""
        self._known: WeakValueDictionary[str, StatsWriter] = WeakValueDictionary()
        self._unwritten: dict[str, StatsWriter] = {}
        """Those that have something to write; the others live as long as somebody counts with them."""
        self._tasks: TaskGroup | None = None

    def of(self, environ: Mapping[str, str], cwd: str) -> StatsWriter:
        """The writer for a conversation with this environment in this folder."""
        path = stats_path(environ, self._home, cwd)
        writer = self._known.get(path)
        if writer is None:
            writer = self._known[path] = StatsWriter(path, self)
        return writer

    def rows(self) -> list[api.StatsFile]:
        """Every file that is in use or has something to be written."""
        return [writer.row() for _, writer in sorted(self._known.items())]

    def changed(self, writer: StatsWriter) -> None:
        """Something is about to be counted: write it in a while."""
        if writer.path not in self._unwritten:
            self._unwritten[writer.path] = writer
            if self._tasks is not None:
                with concerning(None):  # others count in it, too
                    self._tasks.start_soon(self._keep, writer)

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Write what changes until cancelled; `finish` is for what is left then."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for writer in self._unwritten.values():
                tasks.start_soon(self._keep, writer)
            task_status.started()
            await anyio.sleep_forever()

    async def finish(self) -> None:
        """Write everything now, once: nobody counts any more."""
        async with anyio.create_task_group() as tasks:
            for writer in list(self._unwritten.values()):
                tasks.start_soon(writer.write)

    async def _keep(self, writer: StatsWriter) -> None:
        """Write a file some time after each change, until there is none."""
        while not writer.is_clean:
            await anyio.sleep(writer.pause)
            await writer.write()
        del self._unwritten[writer.path]
