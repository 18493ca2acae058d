"""What processes take from the machine: memory and processor time."""

import subprocess
import sys
import time
from pathlib import Path

import psutil

BARE = "import json, socket, select, sys; sys.stdin.read()"
"""The least that a relay in Python can be; the shim's memory is compared with it."""


def memory_mib(processes: list[psutil.Process]) -> tuple[float, float]:
    """PSS and RSS of the living ones together, in MiB. PSS counts a page shared by k processes 1/k each; Linux only."""
    pss = rss = 0.0
    for process in processes:
        try:
            found = process.memory_full_info()
        except psutil.Error:
            continue
        pss += getattr(found, "pss", found.rss) / 2**20
        rss += found.rss / 2**20
    return pss, rss


def cpu_s(processes: list[psutil.Process]) -> float:
    """Processor time of the living ones so far, in seconds."""
    return sum(_cpu_s(process) for process in processes)


def bare_python_mib() -> tuple[float, float]:
    """PSS and RSS of BARE, in MiB."""
    bare = subprocess.Popen([sys.executable, "-c", BARE], stdin=subprocess.PIPE)
    try:
        process = psutil.Process(bare.pid)
        before = -1.0
        while (now := process.memory_info().rss) != before:  # until the imports are done
            before = now
            time.sleep(0.2)
        return memory_mib([process])
    finally:
        bare.communicate(b"", timeout=10)


def _cpu_s(process: psutil.Process) -> float:
    # The scheduler counts nanoseconds per thread; the classic counters count ticks of 10 ms, too coarse for idle.
    try:
        threads = list(Path(f"/proc/{process.pid}/task").iterdir())
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
    except OSError:
        pass
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
