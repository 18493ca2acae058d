"""Processes of this run: marked in their environment, ended by process id, found again if they outlive their owner."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

RUN = f"{os.getpid():x}{secrets.token_hex(3)}"
"""Names this run; part of the marker and of the folder of every private daemon."""

MARKER = "PURSERSD_RIG_RUN"
"""Environment variable that everything we start carries. A daemon started by a shim may drop it: see `of_this_run`."""

BIN = Path(sys.executable).parent
"""Where the commands of this virtual environment lie."""

PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TERM")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """A small environment for a child: nothing of ours by accident, the marker, and `extra`."""
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**kept, MARKER: RUN, **(extra or {})}


@contextmanager
def idle() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that lives until its standard input ends, at the longest for the block; nobody buries it before."""
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, env=environment()
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def of_this_run() -> list[psutil.Process]:
    """Every living process, but for ourselves, that this run started in whatever way."""
    return _having(lambda found: found.get(MARKER) == RUN or RUN in found.get("PURSERSD_HOME", ""))


def of_home(home: str | Path) -> list[psutil.Process]:
    """Every living process whose environment has this PURSERSD_HOME, but for ourselves."""
    return _having(lambda found: found.get("PURSERSD_HOME") == str(home))


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; a zombie, which only its parent can bury, does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stop(process: "subprocess.Popen[bytes]", signals: Iterable[int], patience: float = 5.0) -> int:
    """Send the signals to the process's group one after the other until the process ends; return its exit status.

    The process must lead its own group (start_new_session). SIGKILL is always the last.
    """
    for number in (*signals, signal.SIGKILL):
        if process.poll() is not None:
            break
        _signal_group(process.pid, number)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
    status = process.wait(patience)
    _signal_group(process.pid, signal.SIGKILL)  # children that it left behind
    return status


def end(processes: Iterable[psutil.Process], patience: float = 5.0) -> None:
    """SIGTERM, then SIGKILL for those that stay; returns when all are gone."""
    found = list(processes)
    for how in ("terminate", "kill"):
        for process in found:
            try:
                getattr(process, how)()
            except psutil.NoSuchProcess:
                continue
        found = _still_alive(found, patience)
    assert not found, f"these processes do not end: {describe(found)}"


def describe(processes: Iterable[psutil.Process]) -> str:
    """One line for an assertion: pids and the beginnings of the command lines."""
    return "; ".join(_describe(process) for process in processes)


def _still_alive(found: list[psutil.Process], patience: float) -> list[psutil.Process]:
    """Those that have not ended after `patience` seconds. An init may take its time to bury an orphan."""
    deadline = time.monotonic() + patience
    while (found := [process for process in found if is_alive(process)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} ({process.status()}) {' '.join(process.cmdline()[:4])[:120]}"
    except psutil.Error:
        return f"{process.pid} (gone)"


def _having(wanted: Callable[[dict[str, str]], bool]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE and wanted(process.environ()):
                found.append(process)
        except (psutil.Error, OSError):
            continue  # another user's, or gone while we looked
    return found


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
