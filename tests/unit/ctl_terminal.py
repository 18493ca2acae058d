"""A pursersctl on a terminal of the test's own: what it draws, what is typed, and how it leaves the terminal."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from types import TracebackType
from typing import Self

from rig.daemon import CTL, Home
from rig.wait import until

PATIENCE = 30.0  # seconds for something that must happen, on a loaded machine
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Runs the command at once, as the leader of its own session with this terminal; a block that ends it."""

    def __init__(self, home: Home, *arguments: str, size: tuple[int, int] = (100, 30), **variables: str) -> None:
        self._ours, self._theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self.resize(*size)
        self.before = termios.tcgetattr(self._theirs)
        self.output = b""
        self.process = subprocess.Popen(
            [CTL, *arguments],
            env=home.environment(role=None, extra={"TERM": "xterm", **variables}),
            cwd=home.folder,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self._ours)
        os.close(self._theirs)

    @property
    def page(self) -> str:
        """What was drawn last, without styles."""
        self._read()
        drawn = self.output.rpartition(b"\x1b[H")[2]
        return _ESCAPES.sub(b"", drawn).decode("utf-8", "replace").replace("\r", "")

    def shows(self, text: str) -> None:
        """Wait until the page has this text."""

        def is_there() -> bool:
            page = " ".join(self.page.split())
            assert text in page, page
            return True

        until(is_there, PATIENCE, f"the page shows {text!r}")

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def resize(self, columns: int, lines: int) -> None:
        """The window changes; the terminal tells its foreground process."""
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def ends(self) -> int:
        """Wait for the end; returns the exit code."""
        until(lambda: self._has_ended(), PATIENCE, "the command ends")
        return self.process.returncode

    def assert_as_before(self) -> None:
        """The terminal is as it was: modes, cursor and the other screen."""
        self._read()
        assert termios.tcgetattr(self._theirs) == self.before
        assert self.output.count(ENTER) == self.output.count(LEAVE) > 0
        assert self.output.rindex(LEAVE) > self.output.rindex(ENTER)
        assert self.output.rindex(SHOW) > self.output.rindex(HIDE)

    def _has_ended(self) -> bool:
        self._read()  # it may be waiting for somebody to take its last words
        return self.process.poll() is not None

    def _read(self) -> None:
        while select.select([self._ours], [], [], 0)[0]:
            try:
                self.output += os.read(self._ours, 65536)
            except BlockingIOError:
                return
