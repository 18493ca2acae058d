"""The process that serves the local board: started, found again, watched, ended. The lock on its file says which one it is."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio

from pursers_shim import starts
from pursers_shim.launch import daemon_environment, lock_holder
from pursersd.conversation.identity import ProcessIdentity, started_at
from pursersd.conversation.watchdog import wait_for_end
from pursersd.errors import LocalBoardError
from pursersd.secret import blanked

GRACE = 60.0
"""Seconds that it stays without any daemon."""

END_PATIENCE = 2.0
"""Seconds that each signal has for its effect; an open stream makes the first one of none (central.md §1.3)."""


LOOK = 0.05
"""Seconds between two looks where the kernel does not tell."""


class CentralProcess:
    """At most one process for the instance in `folder`, whoever started it."""

    def __init__(self, folder: Path, daemon_lock: str, *, grace: float = GRACE) -> None:
        self.log = folder / "central.log"
        self.lock = folder / "central.lock"
        self._instance = folder / "instance"
        self._daemon_lock = daemon_lock
        self._grace = grace
        self._child: subprocess.Popen[bytes] | None = None
        """The one that we started, until it has ended and was buried."""
        self._status: int | None = None
        """How that one ended; None while it has not, and of one that another daemon started."""

    @property
    def pid(self) -> int | None:
        """Its pid; None when there is none, 0 when it lives in another pid namespace."""
        if self._child is not None:
            self._status = self._child.poll()
            if self._status is None:
                return self._child.pid
            self._child = None
        return lock_holder(str(self.lock))

    def start(self) -> None:
        """Start it; what it prints begins a new log. It belongs to no session of ours and outlives us. Raises OSError."""
        if self.log.exists():
            os.replace(self.log, self.log.with_name(self.log.name + ".1"))
        words = (str(self._instance), str(self.lock), self._daemon_lock, str(self._grace))
        with open(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-I", "-m", "pursersd.local.keeper", *words],
                env={**daemon_environment(os.environ), "ONBOARD_CENTRAL_LOG_LEVEL": "warning"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def ended(self) -> None:
        """Return when there is none."""
        while (pid := self.pid) is not None:
            started = started_at(pid)
            if started is None:  # it ends at this moment, or lives where we cannot see it
                await anyio.sleep(LOOK)
            else:
                await wait_for_end(ProcessIdentity(pid, started))

    async def end(self) -> None:
        """End it: asked twice, then forced. What it has committed stays (central.md §1.3). Raises LocalBoardError."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            pid = self.pid
            if pid is None:
                return
            if pid == 0:
                raise LocalBoardError(
                    f"The local board's Central runs in another pid namespace (a container?), where only who is there can "
                    f"end it. It holds {self.lock}."
                )
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            with anyio.move_on_after(END_PATIENCE):
                await self.ended()

    def epitaph(self, *, had_served: bool) -> str:
        """Why it ended, as far as anybody knows: the signal that ended it, or the last line that it printed, without a
        credential. While it serves it prints refusals as well, so its last line counts only with a known end."""
        if self._status is not None and self._status < 0:
            return f"it was ended by signal {-self._status}"
        words = "" if had_served and self._status is None else blanked(starts.last_words(str(self.log)))
        return words or "it did not say why"
