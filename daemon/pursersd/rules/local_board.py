"""What the local board is called, where it is found, who may enter, and how often its Central is started again."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator

from pursersd.rules.backoff import delays

BOARD = "local"
"""Its usual name."""

PORTS = range(28700, 29000)
"""Where a free port is looked for: below what the systems lend to outgoing connections, so that it stays free while no
Central listens there (its doors name it, so it cannot change)."""

ROLES = {"worker": "member", "reviewer": "reviewer"}
"""A door for each of these, and the membership of those who come through it (central.md §1.4, §1.5)."""

OWNER = "local-owner"
"""The seat that founds the board and creates tickets."""

FIRST_PAUSE, LAST_PAUSE = 0.5, 60.0
"""Seconds between two starts of a Central that keeps ending."""

STEADY = 60.0
"""Seconds that it must have answered for its earlier ends to be forgotten."""

_BOARD = re.compile(r"[A-Za-z0-9._-]{1,80}")


def is_board(name: str) -> bool:
    """Whether Central takes this name for a board."""
    return _BOARD.fullmatch(name) is not None


def url(port: int) -> str:
    """Central's address. Never anything but loopback."""
    return f"http://127.0.0.1:{port}/mcp"


def issuer(port: int) -> str:
    """What an instance of `pursers-central init` calls itself in its tokens (central.md §1.4)."""
    return f"http://127.0.0.1:{port}/quickstart"


def principal(board: str, role: str, port: int) -> str:
    """Who everybody is that comes through the door of a role, to Central (central.md §1.4, §5)."""
    triple = [f"door-{board}-{role}", issuer(port), f"door:{board}:{role}"]
    return "PR-" + hashlib.sha256(json.dumps(triple, separators=(",", ":")).encode()).hexdigest()


class Pauses:
    """How long to wait before the next start: longer each time, until one has been steady."""

    def __init__(self, rng: Callable[[], float]) -> None:
        self._rng = rng
        self._pauses = self._anew()

    def after(self, served_s: float) -> float:
        """Seconds to wait after a Central that has answered for so long."""
        if served_s >= STEADY:
            self._pauses = self._anew()
        return next(self._pauses)

    def _anew(self) -> Iterator[float]:
        return delays(FIRST_PAUSE, LAST_PAUSE, self._rng)
