"""`pursersctl logs`: the end of the daemon's log, and what is added to it."""

import codecs
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

from pursersctl.errors import Failed
from pursersctl.output import write
from pursersctl.table import clean

POLL_INTERVAL = 0.2  # seconds between two looks at the file with -f
BLOCK = 64 * 1024


def logs(path: str, count: int, follow: bool) -> None:
    """Print the last `count` lines of the log at `path`; with `follow` what is added, until the reader is gone.

    Raises Failed if there is no log that we can read. Creates nothing and asks no daemon.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - the follower closes it when the log is rotated
    except FileNotFoundError:
        raise Failed(
            f"There is no log at {path} yet. The daemon writes it from its first start: pursersctl start"
        ) from None
    except OSError as error:
        raise Failed(f"Cannot read the log at {path}: {error.strerror}.") from error
    follower = Follower(path, file)
    try:
        show = _printer()
        show(follower.last_lines(count))
        while follow and not _reader_is_gone(POLL_INTERVAL):
            for block in follower.added():
                show(block)
    except KeyboardInterrupt:
        pass  # the way to leave -f
    finally:
        follower.close()


class Follower:
    """Reads a log from its end on, also when it is renamed and begun anew, or emptied."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        """Owned: closed by `close` or when the log is rotated."""

    def close(self) -> None:
        self._file.close()

    def last_lines(self, count: int) -> bytes:
        """The last `count` lines; what is added later starts right behind them."""
        end = start = self._file.seek(0, os.SEEK_END)
        blocks: list[bytes] = []
        newlines = 0
        # One newline more than lines: the one that ends the line before the first.
        while start > 0 and newlines <= count:
            size = min(BLOCK, start)
            start = self._file.seek(start - size)
            blocks.insert(0, self._file.read(size))
            newlines += blocks[0].count(b"\n")
        self._file.seek(end)
        lines = b"".join(blocks).split(b"\n")
        kept = count if lines[-1] else count + 1
        return b"\n".join(lines[-kept:]) if count else b""

    def added(self) -> Iterator[bytes]:
        """What was written since the last look. Rotating more than once between two looks loses what lies between."""
        yield from self._blocks()
        successor = self._successor()
        if successor is not None:
            yield from self._blocks()  # written between our last read and the rotation
            self._file.close()
            self._file = successor
            yield from self._blocks()
        elif os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            yield from self._blocks()

    def _blocks(self) -> Iterator[bytes]:
        while block := self._file.read(BLOCK):
            yield block

    def _successor(self) -> BinaryIO | None:
        """The file that has taken the place of ours, opened; None while ours is still there or nothing is."""
        try:
            if os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno())):
                return None
            return open(self._path, "rb")
        except OSError:
            return None  # between the rename and the new file: look again next time


def _printer() -> Callable[[bytes], None]:
    """Writes bytes of the log to stdout as text that no terminal obeys."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def show(data: bytes) -> None:
        text = decoder.decode(data).replace("\t", "    ")
        write("\n".join(clean(line) for line in text.split("\n")))

    return show


def _reader_is_gone(seconds: float) -> bool:
    """Wait; True as soon as nobody can read our stdout any more (`pursersctl logs -f | head`)."""
    if sys.stdout.isatty():
        time.sleep(seconds)  # a terminal that goes away sends SIGHUP, and macOS cannot poll one
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return bool(poll.poll(seconds * 1000))
