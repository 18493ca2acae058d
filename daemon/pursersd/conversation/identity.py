"""Processes named for ever: a pid with its start time (design: "Parent is 1" proves nothing, a bare pid neither)."""

from dataclasses import dataclass

import psutil

from pursers_shim.wire import process_start


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process. `started` is in the kernel's own terms: clock ticks since boot on Linux, else seconds since 1970."""

    pid: int
    started: float

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return started_at(self.pid) == self.started

    @property
    def name(self) -> str:
        """The program's name, for people; empty when the process is gone."""
        try:
            return psutil.Process(self.pid).name()
        except psutil.Error:
            return ""


def started_at(pid: int) -> float | None:
    """When the process that has this pid now was started; None when there is none, or only a zombie."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        ticks = process_start(pid)
        return float(ticks) if ticks is not None else process.create_time()
    except (psutil.Error, OSError):  # OSError: it ended while /proc was being read
        return None


def identify(pid: object, started: object) -> ProcessIdentity | None:
    """The identity that a shim told, completed where its platform could not say the start time.

    None for a process that is not there (any more) or that cannot be a host: init adopts orphans and hosts nobody.
    """
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 1:
        return None
    now = started_at(pid)
    if now is None:
        return None
    if isinstance(started, (int, float)) and not isinstance(started, bool) and float(started) != now:
        return None
    return ProcessIdentity(pid, now)
