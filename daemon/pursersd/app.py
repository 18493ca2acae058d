"""The daemon as a whole: built, run and shut down in order."""

import logging
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import SocketListener, TaskGroup, TaskStatus

from pursers_shim import starts, wire
from pursersd import __version__
from pursersd import log as logs
from pursersd.api import Reloaded, StartedBy, Warning, local_folder, shared_state_folder, state_folder
from pursersd.configured import Configured
from pursersd.control import Control
from pursersd.conversation.bounds import Limits
from pursersd.conversation.naming import Naming
from pursersd.conversation.registry import Conversations
from pursersd.descriptors import Descriptors
from pursersd.errors import ConfigurationError, LostOwnership
from pursersd.feed.centrals import Centrals
from pursersd.fence import Fence, Lost
from pursersd.health import changes
from pursersd.listener import Listener
from pursersd.local.board import LocalBoard
from pursersd.machine import parts
from pursersd.ownership import Ownership
from pursersd.stalls import StallWatch
from pursersd.state.digests import DigestFiles
from pursersd.state.doors import DoorFolders
from pursersd.state.epoch import raise_epoch, read_epoch
from pursersd.state.names import Names
from pursersd.state.stats import StatsWriters
from pursersd.supervisor import Supervisor
from pursersd.suspension import Suspension
from pursersd.tools.server import build

log = logging.getLogger(__name__)

DRAIN_LOOK = 0.05
"""Seconds between two looks whether they have finished."""

IDLE_LOOK = 5.0
"""Seconds between two looks whether an automatically started daemon is still needed."""

HEALTH_LOOK = 2.0
"""Seconds between two looks at what an operator should know."""


@dataclass(frozen=True, slots=True)
class Options:
    """How this daemon was started."""

    started_by: StartedBy
    log_path: str | None


class App:
    """Owns every long-lived part; `run()` returns when the daemon has left."""

    def __init__(
        self,
        ownership: Ownership,
        options: Options,
        configured: Configured,
        above: Supervisor | None = None,
        stalls: StallWatch | None = None,
    ) -> None:
        self._ownership = ownership
        self._options = options
        self._configured = configured
        self._above = above or Supervisor()
        self._stalls = stalls
        self._limits = Limits()
        home = ownership.place.home
        naming = Naming(Names(_state_folder(home) / "names.json"))
        self._doors = DoorFolders(home)
        self._fence: Fence | None = None
        self._centrals = Centrals(naming, self._admit)
        self._conversations = Conversations(self._centrals, naming)
        self._stats = StatsWriters(home)
        self._local = LocalBoard(Path(local_folder(home)), self._centrals, ownership.place.lock)
        self._leaving = anyio.Event()
        self._reason = "stop"
        self._drain = False
        self._lost: Lost | None = None

    async def run(self) -> None:
        """Serve until a signal, `pursersctl stop`, or idleness; then dismiss the links and close everything.

        Raises OwnershipError when the state folder cannot be used, and LostOwnership at the end if we are not the daemon any
        more.
        """
        self._configure()
        place = self._ownership.place
        state = _state_folder(place.home)
        epoch = raise_epoch(state, _counted(place.home))
        self._fence = Fence(self._ownership, state, epoch)
        descriptors = Descriptors()
        suspension = Suspension(self._centrals.woke)
        control = self._control(epoch, descriptors, suspension)
        listener = self._listener(control, epoch, descriptors)
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._stats.run)
            await tasks.start(self._centrals.run)
            await tasks.start(self._conversations.run)
            await tasks.start(self._local.run)
            tasks.start_soon(self._watch_signals)
            tasks.start_soon(self._watch_fence, self._fence)
            tasks.start_soon(suspension.run)
            tasks.start_soon(_log_warnings, control)
            accepting = anyio.CancelScope()
            await tasks.start(self._accept, listener, tasks, accepting)
            self._conversations.await_first()
            if self._options.started_by == "auto":
                tasks.start_soon(self._watch_idleness)
            self._say_ready(epoch)
            if self._above.is_listening:
                tasks.start_soon(self._beat, control)
            await self._leaving.wait()
            await self._take_leave(listener, accepting)
            tasks.cancel_scope.cancel()
        await self._stats.finish()
        log.info("pursersd has left")
        if self._lost is not None:
            raise LostOwnership(self._lost.reason)

    def leave(self, reason: str, drain: bool) -> None:
        """Begin to leave; the first reason counts. With `drain`, running calls may finish first (waits go on elsewhere).

        What would lose its effect meanwhile is held by the shims, so that hosts see a slow answer and no error.
        """
        if not self._leaving.is_set():
            self._reason, self._drain = reason, drain
            self._leaving.set()

    def reload(self) -> Reloaded:
        """Read the configuration file again and go by it. Raises ConfigurationError if anything is wrong with it."""
        self._above.reloading()
        try:
            reloaded = self._configured.reload()
        finally:
            self._above.ready()
        self._configure()
        for change in reloaded.changes:
            later = " after a restart" if change.needs_restart else ""
            log.info("configuration: %s is %s%s, not %s", change.key, change.after, later, change.before)
        return reloaded

    def _configure(self) -> None:
        """Hand the configuration to those who go by it."""
        now = self._configured.now
        logs.adjust(now.log_level, now.log_max_bytes, now.log_kept)
        self._conversations.reattach_s = now.resume_grace_s
        self._limits.requests, self._limits.size = now.max_calls, now.max_call_bytes
        self._stats.every_s = now.stats_every_s

    def _control(self, epoch: int, descriptors: Descriptors, suspension: Suspension) -> Control:
        return Control(
            self._conversations,
            self._centrals,
            self._stats,
            epoch=epoch,
            place=self._ownership.place,
            log_path=self._options.log_path,
            started_by=self._options.started_by,
            stop=self.leave,
            is_leaving=self._leaving.is_set,
            descriptors=descriptors,
            suspension=suspension,
            stalls=self._stalls,
            configured=self._configured,
            reload=self.reload,
            local=self._local,
        )

    def _listener(self, control: Control, epoch: int, descriptors: Descriptors) -> Listener:
        return Listener(
            self._conversations,
            control,
            build(),
            epoch,
            self._stats,
            self._doors.of,
            DigestFiles(self._ownership.place.home),
            descriptors,
            fence=self._fence,
            limits=self._limits,
        )

    async def _take_leave(self, listener: Listener, accepting: anyio.CancelScope) -> None:
        """Let calls end if they may, then dismiss the links, and the local board if no daemon follows."""
        log.info("leaving: %s", self._reason)
        self._above.stopping(self._reason)
        if self._drain:
            await self._finish_calls(listener)
        accepting.cancel()
        await listener.dismiss(self._reason)
        if self._reason == wire.STOP:
            await self._local.leave()

    def _say_ready(self, epoch: int) -> None:
        place = self._ownership.place
        if self._stalls is not None:
            self._stalls.begin()
        self._above.ready()
        if self._options.started_by == "service":
            starts.note_success(place)
        for trouble in (*self._configured.problems, *self._configured.notes):
            log.warning("configuration: %s", trouble)
        log.info("pursersd %s is ready: pid %d, epoch %d, socket %s", __version__, os.getpid(), epoch, place.socket)

    async def _accept(
        self,
        listener: Listener,
        tasks: TaskGroup,
        accepting: anyio.CancelScope,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        with accepting:
            async with await SocketListener.from_socket(self._ownership.listener) as socket:
                task_status.started()
                await listener.serve(socket, tasks)

    async def _beat(self, control: Control) -> None:
        """Tell the service manager that this loop runs. A part of us that ended would have ended all of us."""
        while True:
            self._above.beat(control.summary())
            await anyio.sleep(self._above.every_s)

    async def _finish_calls(self, listener: Listener) -> None:
        """Let nothing new in and what runs end, within the limit; whoever still runs then is the next daemon's business."""
        now = self._configured.now
        limit = now.stop_drain_s if self._reason == wire.STOP else now.drain_s
        with anyio.move_on_after(limit) as late:
            await listener.drain(self._reason, limit)
            while listener.is_busy:
                await anyio.sleep(DRAIN_LOOK)
        if late.cancelled_caught:
            log.warning("calls are still running after %.0f s: the next daemon takes them up", limit)

    async def _admit(self) -> None:
        if self._fence is not None:
            await self._fence.admit()

    async def _watch_fence(self, fence: Fence) -> None:
        self._lost = await fence.watch()
        log.error("%s", self._lost.reason)
        self.leave(wire.RESTART, not self._lost.is_superseded)

    async def _watch_signals(self) -> None:
        """SIGTERM and SIGINT leave in order; the handlers are gone after the first, so that a second one ends us at once.

        SIGHUP reads the configuration again, unless it comes from a terminal that is ours and goes away.
        """
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            number = await anext(signals)
            while number == signal.SIGHUP and not sys.stderr.isatty():
                try:
                    self.reload()
                except ConfigurationError as error:
                    log.error("configuration: %s", error)
                number = await anext(signals)
        # Python's own handler would unwind the whole program first.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        log.info("got %s; another one forces", number.name)
        # Only `pursersctl stop` forbids the shims to look for the next daemon: a service manager starts another version.
        self.leave(wire.RESTART, True)

    async def _watch_idleness(self) -> None:
        while self._local.is_wanted or not 0 < self._configured.now.idle_exit_s <= self._conversations.idle_s:
            await anyio.sleep(min(IDLE_LOOK, self._configured.now.idle_exit_s or IDLE_LOOK))
        self.leave(wire.IDLE, False)


async def _log_warnings(control: Control) -> None:
    """Write each warning to the log when it begins and when it ends."""
    known: list[Warning] = []
    while True:
        await anyio.sleep(HEALTH_LOOK)
        present = control.warnings()
        begun, ended = changes(known, present)
        for warning in begun:
            log.warning("warning %s: %s %s", warning.code, warning.text, warning.action)
        for warning in ended:
            log.info("warning %s is over: %s", warning.code, warning.text)
        known = present


def _state_folder(home: str | None) -> Path:
    return Path(state_folder(home))


def _counted(home: str | None) -> int:
    """The highest epoch that this machine may have had, in whatever part of a shared folder it was counted."""
    return max(read_epoch(Path(part)) or 0 for part in parts(shared_state_folder(home)))
