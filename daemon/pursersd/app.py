"""The daemon as a whole: built, run and shut down in order."""

import logging
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio
from anyio.abc import SocketListener, TaskGroup

from pursers_shim import wire
from pursersd import __version__
from pursersd.api import Warning, state_folder
from pursersd.control import Control
from pursersd.conversation.naming import Naming
from pursersd.conversation.registry import Conversations
from pursersd.descriptors import Descriptors
from pursersd.errors import OwnershipError
from pursersd.feed.centrals import Centrals
from pursersd.fence import Fence, Lost
from pursersd.health import changes
from pursersd.listener import Listener
from pursersd.ownership import Ownership
from pursersd.state.digests import DigestFiles
from pursersd.state.doors import DoorFolders
from pursersd.state.epoch import raise_epoch
from pursersd.state.names import Names
from pursersd.state.stats import StatsWriters
from pursersd.suspension import Suspension
from pursersd.tools.server import build

log = logging.getLogger(__name__)

RESTART_LIMIT = 10.0
"""Seconds that running calls may take when another daemon follows: it can carry on with what is left."""

STOP_LIMIT = 30.0
"""The same when none follows (`pursersctl stop --drain`)."""

DRAIN_LOOK = 0.05
"""Seconds between two looks whether they have finished."""

IDLE_LOOK = 5.0
"""Seconds between two looks whether an automatically started daemon is still needed."""

HEALTH_LOOK = 2.0
"""Seconds between two looks at what an operator should know."""

StartedBy = Literal["auto", "user", "service"]


@dataclass(frozen=True, slots=True)
class Options:
    """How this daemon was started."""

    started_by: StartedBy
    idle_exit_s: float
    """Seconds without a conversation after which an automatically started daemon leaves; 0 for never."""
    log_path: str | None


class App:
    """Owns every long-lived part; `run()` returns when the daemon has left."""

    def __init__(self, ownership: Ownership, options: Options) -> None:
        self._ownership = ownership
        self._options = options
        home = ownership.place.home
        naming = Naming(Names(_state_folder(home) / "names.json"))
        self._doors = DoorFolders(home)
        self._fence: Fence | None = None
        self._centrals = Centrals(naming, self._admit)
        self._conversations = Conversations(self._centrals, naming)
        self._stats = StatsWriters(home)
        self._leaving = anyio.Event()
        self._reason = "stop"
        self._drain = False
        self._lost: Lost | None = None

    async def run(self) -> None:
        """Serve until a signal, `pursersctl stop`, or idleness; then dismiss the links and close everything.

        Raises OwnershipError when the state folder cannot be used, and at the end if we are not the daemon any more.
        """
        place = self._ownership.place
        state = _state_folder(place.home)
        epoch = raise_epoch(state)
        self._fence = Fence(self._ownership, state, epoch)
        descriptors = Descriptors()
        suspension = Suspension(self._centrals.woke)
        control = Control(
            self._conversations,
            self._centrals,
            self._stats,
            epoch=epoch,
            place=place,
            log_path=self._options.log_path,
            started_by=self._options.started_by,
            stop=self.leave,
            descriptors=descriptors,
            suspension=suspension,
        )
        listener = Listener(
            self._conversations,
            control,
            build(),
            epoch,
            self._stats,
            self._doors.of,
            DigestFiles(place.home),
            descriptors,
            fence=self._fence,
        )
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._stats.run)
            await tasks.start(self._centrals.run)
            await tasks.start(self._conversations.run)
            tasks.start_soon(self._watch_signals)
            tasks.start_soon(self._watch_fence, self._fence)
            tasks.start_soon(suspension.run)
            tasks.start_soon(_log_warnings, control)
            if self._options.started_by == "auto" and self._options.idle_exit_s > 0:
                tasks.start_soon(self._watch_idleness)
            accepting = anyio.CancelScope()
            tasks.start_soon(self._accept, listener, tasks, accepting)
            log.info("pursersd %s is ready: pid %d, epoch %d, socket %s", __version__, os.getpid(), epoch, place.socket)
            await self._leaving.wait()
            log.info("leaving: %s", self._reason)
            control.is_draining = True
            if self._drain:
                await self._finish_calls(listener)
            accepting.cancel()
            await listener.dismiss(self._reason)
            tasks.cancel_scope.cancel()
        await self._stats.finish()
        log.info("pursersd has left")
        if self._lost is not None:
            raise OwnershipError(self._lost.reason)

    def leave(self, reason: str, drain: bool) -> None:
        """Begin to leave; the first reason counts. With `drain`, running calls may finish first (waits go on elsewhere).

        What would lose its effect meanwhile is held by the shims, so that hosts see a slow answer and no error.
        """
        if not self._leaving.is_set():
            self._reason, self._drain = reason, drain
            self._leaving.set()

    async def _accept(self, listener: Listener, tasks: TaskGroup, accepting: anyio.CancelScope) -> None:
        with accepting:
            async with await SocketListener.from_socket(self._ownership.listener) as socket:
                await listener.serve(socket, tasks)

    async def _finish_calls(self, listener: Listener) -> None:
        """Let nothing new in and what runs end, within the limit; whoever still runs then is the next daemon's business."""
        limit = STOP_LIMIT if self._reason == wire.STOP else RESTART_LIMIT
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
        """SIGTERM and SIGINT leave in order; the handlers are gone after the first, so that a second one ends us at once."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            number = await anext(signals)
        # Python's own handler would unwind the whole program first.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        log.info("got %s; another one forces", number.name)
        # Only `pursersctl stop` forbids the shims to look for the next daemon: a service manager starts another version.
        self.leave(wire.RESTART, True)

    async def _watch_idleness(self) -> None:
        while self._conversations.idle_s < self._options.idle_exit_s:
            await anyio.sleep(min(IDLE_LOOK, self._options.idle_exit_s))
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
