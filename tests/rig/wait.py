"""Waiting for a condition instead of for time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

INTERVAL = 0.01  # seconds between two looks


def until(condition: Callable[[], T | None], timeout: float = 60.0, message: str = "the condition") -> T:
    """Look at `condition` until it is true and return its value; AssertionError with `message` after `timeout` seconds.

    An AssertionError that `condition` raises counts as "not yet" and becomes part of the text at the end.
    """
    deadline = time.monotonic() + timeout
    while True:
        seen: object
        try:
            value = condition()
            if value:
                return value
            seen = value
        except AssertionError as not_yet:
            seen = not_yet
        if time.monotonic() > deadline:
            raise AssertionError(f"{message}: not so after {timeout:g} s; last seen: {seen!r}")
        time.sleep(INTERVAL)
