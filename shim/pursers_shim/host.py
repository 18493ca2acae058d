"""The host's two pipes: lines from stdin, lines to stdout, never blocking on either.

Both descriptions may be shared with other processes, so they are left in the mode that they came in: the shim reads and
writes only what `poll` says is possible, and at most PIPE_BUF bytes at a time, which then cannot block.
"""

import os
import select
import stat

from pursers_shim.outbox import Outbox
from pursers_shim.wire import Lines, LineTooLong

__all__ = ["BROKEN", "HANG_UP", "Host", "HostGone"]

CHUNK = 65536
"""Bytes read at once."""

BROKEN = select.POLLERR | select.POLLHUP | select.POLLNVAL
"""The other end of a pipe is gone."""

HANG_UP = getattr(select, "POLLRDHUP", 0)
"""What to ask `poll` for, to hear of the end of an input that is not read now (sockets; pipes tell it unasked)."""


class HostGone(Exception):
    """Nobody reads stdout any more."""


class Host:
    """The program that started us."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.outbox = Outbox()
        self.has_file_input = stat.S_ISREG(os.fstat(stdin).st_mode)
        """The end of a regular file does not mean that the reader of stdout has gone."""
        self._lines = Lines()
        self._writable = select.poll()
        self._writable.register(stdout, select.POLLOUT)

    def receive(self) -> tuple[list[bytes | LineTooLong], bool]:
        """The lines that have arrived, and whether the input has ended. A last line needs no newline."""
        try:
            data = os.read(self.stdin, CHUNK)
        except BlockingIOError:
            return [], False
        except OSError:
            data = b""  # a terminal that hung up
        return (self._lines.feed(data), False) if data else ([self._lines.rest()], True)

    def send(self, line: bytes, tag: str | None = None) -> None:
        """Queue one line, newline included."""
        self.outbox.push(line, tag)

    def flush(self) -> list[str]:
        """Write what stdout takes; return the tags of the lines that have gone out in full. Raises HostGone."""
        gone: list[str] = []
        while self.outbox.size and (ready := self._writable.poll(0)):
            if ready[0][1] & BROKEN:
                raise HostGone
            try:
                gone += self.outbox.write(self._write, select.PIPE_BUF)
            except BlockingIOError:
                break
            except OSError as wrong:
                raise HostGone from wrong
        return gone

    def _write(self, data: memoryview) -> int:
        return os.write(self.stdout, data)
