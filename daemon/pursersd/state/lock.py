"""A lock that several programs take: flock on a file of its own beside what it guards (bridge.md §7)."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

LOOK = 0.02
"""Seconds between two looks at the lock."""


@contextmanager
def held(path: str, limit_s: float) -> Iterator[None]:
    """Hold the lock, which blocks this thread. Raises TimeoutError when another program does not give it back in time, and
    OSError when the file cannot be used."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        deadline = time.monotonic() + limit_s
        while not _try(lock):
            if time.monotonic() > deadline:
                raise TimeoutError(f"another program has held {path} for {limit_s:.0f} s")
            time.sleep(LOOK)
        yield
    finally:
        os.close(lock)  # and with it the lock is free


def _try(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
