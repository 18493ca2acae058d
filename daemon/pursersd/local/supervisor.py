"""Keeps the local board's Central running for as long as that is wanted, and knows how it is."""

import logging
import random
import time
from collections.abc import Callable
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus

from pursersd.api import LocalState
from pursersd.local import health
from pursersd.local.process import CentralProcess
from pursersd.rules.local_board import Pauses

log = logging.getLogger(__name__)

START_LIMIT = 60.0
"""Seconds from its start until Central must answer; it takes about two."""

LOOK = 0.1
"""Seconds between two looks whether it answers yet."""


class Supervisor:
    """One Central. `keep()` starts it, or takes over the one that runs, and starts it again when it ends."""

    def __init__(self, process: CentralProcess, instance: Path, *, rng: Callable[[], float] = random.random) -> None:
        self.process = process
        self._instance = instance
        self._rng = rng
        self._since: float | None = None
        """When (monotonic) it began to answer."""
        self._next_try: float | None = None
        self._erred = 0.0
        self.is_kept = False
        self.restarts = 0
        self.last_error: str | None = None
        self.settled = anyio.Event()
        """Set when it answers or has failed, for the first time since `keep()` began."""

    @property
    def state(self) -> LocalState:
        """How it is, for people."""
        if not self.is_kept:
            return "down"
        if self._since is not None:
            return "running"
        return "starting" if self._next_try is None else "failing"

    @property
    def up_s(self) -> float | None:
        """Seconds that it has answered."""
        return None if self._since is None else time.monotonic() - self._since

    @property
    def last_error_s(self) -> float | None:
        """Seconds since the last error."""
        return None if self.last_error is None else time.monotonic() - self._erred

    @property
    def next_try_s(self) -> float | None:
        """Seconds until the next start."""
        return None if self._next_try is None else max(0.0, self._next_try - time.monotonic())

    async def keep(self, port: int, *, task_status: TaskStatus[None]) -> None:
        """Serve until cancelled. The process stays then; whoever wants it ended ends it."""
        self.is_kept, self.settled = True, anyio.Event()
        pauses = Pauses(self._rng)
        task_status.started()
        try:
            while True:
                await self._pause(*await self._serve(port), pauses)
                self.restarts += 1
        finally:
            self.is_kept, self._since, self._next_try = False, None, None

    async def _serve(self, port: int) -> tuple[str, float]:
        """Have it running; returns, when it has ended, why, and how many seconds it had answered."""
        problem = await self._come_up(port)
        if problem is not None:
            return problem, 0.0
        self._since = time.monotonic()
        self.settled.set()
        log.info("the local board's Central answers at port %d (pid %s)", port, self.process.pid)
        await self.process.ended()
        served, self._since = time.monotonic() - self._since, None
        return f"Central ended: {self.process.epitaph(had_served=True)}", served

    async def _come_up(self, port: int) -> str | None:
        """See to it that it answers; why not, if it does not."""
        if self.process.pid is None:
            if not health.is_free(port):
                return f"Port {port} is taken by another program, which must end first"
            try:
                await to_thread.run_sync(self.process.start)
            except OSError as error:
                return f"Central cannot be started: {error}"
        with anyio.move_on_after(START_LIMIT):
            while self.process.pid is not None:
                if await health.answers(port, self._instance):
                    return None
                await anyio.sleep(LOOK)
            return f"Central ended at its start: {self.process.epitaph(had_served=False)}"
        await self.process.end()
        return f"Central did not answer within {START_LIMIT:.0f} s, and was ended"

    async def _pause(self, problem: str, served_s: float, pauses: Pauses) -> None:
        pause = pauses.after(served_s)
        self.last_error, self._erred = problem, time.monotonic()
        self._next_try = self._erred + pause
        self.settled.set()
        log.warning("the local board: %s; starting it again in %.1f s", problem, pause)
        await anyio.sleep(pause)
        self._next_try = None
