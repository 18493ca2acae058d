"""How the last automatic starts of a daemon went: one small file that whoever starts the next one reads first.

It makes a daemon that keeps ending be started ever more slowly, and says so to everybody: the shim's error texts,
`pursersctl status`, the daemon that follows. Written by the holder of the start lock; gone when a daemon left in order.
"""

import os

from pursers_shim.paths import Place

__all__ = [
    "LOOP",
    "REFUSED_PAUSE",
    "RESTART_FIRST",
    "RESTART_LAST",
    "RESTART_LAST_FAILED",
    "RESTART_MEMORY",
    "Starts",
    "forget",
    "last_words",
    "note_refusal",
    "note_start",
    "note_success",
    "read",
    "said",
]

RESTART_FIRST, RESTART_LAST, RESTART_LAST_FAILED = 0.2, 5.0, 60.0
"""Seconds between two starts of a daemon that keeps ending: doubles from the first to the last. The latter is longer
when the daemon did not come up at all, since then a person must do something."""

REFUSED_PAUSE = 1.0
"""Seconds until the next attempt when the system gave no process for a daemon: that is no fault of the daemon."""

RESTART_MEMORY = 60.0
"""Seconds that a daemon must have lived for its earlier ends to be forgotten."""

LOOP = 3
"""From so many starts in a row on, it is a crash loop."""

LAST_WORDS = 300
"""Characters of a failed daemon's output that are kept and shown."""


class Starts:
    """What is known of the last starts."""

    __slots__ = ("came_up", "count", "last", "refused", "words")

    def __init__(
        self, count: int = 0, last: float = 0.0, came_up: bool = False, words: str = "", refused: bool = False
    ) -> None:
        self.count = count
        """How many followed closely on one another, the last one included; 0 after one that a person asked for."""
        self.last = last
        """When the last one was (seconds since 1970)."""
        self.came_up = came_up
        """Somebody has reached the daemon that was started last."""
        self.words = words
        """What the daemon before that one printed last, or why the system refused."""
        self.refused = refused
        """There was none: the system gave no process for the last one, which is not counted."""

    @property
    def delay(self) -> float:
        """Seconds from the last start to the next one that nobody asked for."""
        if self.refused:
            return REFUSED_PAUSE
        longest = RESTART_LAST if self.came_up else RESTART_LAST_FAILED
        return min(RESTART_FIRST * 2 ** (self.count - 1), longest) if self.count else 0.0

    def recent(self, now: float) -> "Starts":
        """The same, or nothing if it is too long ago to matter."""
        return self if 0 <= now - self.last < self.delay + RESTART_MEMORY else Starts()


def read(where: Place) -> Starts | None:
    """The record; None if there is none, that is, if the last daemon left in order."""
    try:
        with open(where.starts, "rb") as file:
            head, _, words = file.read(4096).partition(b"\n")
    except OSError:
        return None
    fields = head.split()
    if len(fields) != 3 or not all(field.isdigit() and len(field) < 20 for field in fields):
        return None
    said = words.decode("utf-8", "replace").strip()
    return Starts(int(fields[0]), int(fields[1]) / 1000, fields[2] == b"1", said, fields[2] == b"2")


def note_start(where: Place, count: int, now: float) -> None:
    """A daemon is about to be started; keep what the one before it printed. Raises OSError."""
    _write(where, Starts(count, now, False, last_words(where.start_log)))


def note_refusal(where: Place, before: Starts, now: float, why: str) -> None:
    """The system gave no process for a daemon; what is known of those `before` stays."""
    try:
        _write(where, Starts(before.count, now, False, why, True))
    except OSError:
        return  # whoever tried says so himself


def said(where: Place, found: Starts) -> str:
    """Why the last start came to nothing, as far as anybody said; empty if nobody did."""
    return found.words if found.refused else last_words(where.start_log) or found.words


def note_success(where: Place) -> None:
    """The daemon that was started last can be reached."""
    starts = read(where)
    if starts is not None and not starts.came_up:
        try:
            _write(where, Starts(starts.count, starts.last, True, starts.words))
        except OSError:
            return  # it would only have made the next start come sooner


def forget(where: Place) -> None:
    """A daemon leaves in order: nothing is wrong."""
    try:  # noqa: SIM105 - contextlib would cost every shim memory
        os.unlink(where.starts)
    except OSError:
        pass


def last_words(path: str) -> str:
    """The last line that a daemon printed into the file `path`; empty if there is none."""
    try:
        with open(path, "rb") as log:
            log.seek(max(os.fstat(log.fileno()).st_size - 4096, 0))
            lines = log.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip()[-LAST_WORDS:] for line in reversed(lines) if line.strip()), "")


def _write(where: Place, starts: Starts) -> None:
    fate = 2 if starts.refused else int(starts.came_up)
    record = b"%d %d %d\n" % (starts.count, starts.last * 1000, fate) + starts.words.encode() + b"\n"
    fd = os.open(where.starts, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, record)
    finally:
        os.close(fd)
