"""A page that is drawn again and again on a terminal, which is left as it was: at q, ctrl-C, SIGTERM and ctrl-Z."""

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pursersctl.errors import Failed
from pursersctl.render import wrapped
from pursersctl.table import Line

LEAST = (40, 6)
"""Columns and lines without which nothing can be shown."""

PATIENCE = 2.0
"""Seconds that an answer may take while somebody looks at the page."""

QUIT = (b"q", b"Q", b"\x1b", b"\x04")

Draw = Callable[[int, int], list[Line]]
"""The page for a terminal of so many columns and lines."""


def show(draw: Draw, every_s: float, what: str, instead: str) -> None:
    """Draw every so many seconds, and when the window changes, until the user leaves.

    Raises Failed where there is no terminal for `what`; `instead` says what to do then.
    """
    if not sys.stdout.isatty() or os.environ.get("TERM", "") in ("", "dumb"):
        raise Failed(f"{what} needs a terminal. {instead}", code="no_terminal")
    # rich costs as much start-up time as everything else together: only where it can be seen.
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False, markup=False)

    def page() -> Group:
        width, height = console.size
        lines = draw(width, height) if width >= LEAST[0] and height >= LEAST[1] else _too_small(width, height)
        return Group(*(Text.assemble(*line, no_wrap=True, overflow="crop") for line in lines[:height]))

    with _signals() as rung, _keyboard() as keyboard:
        try:
            # The page is complete at each drawing: what is printed meanwhile is none of its business.
            with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False) as screen:
                while True:
                    screen.update(page(), refresh=True)
                    if not _pause(every_s, rung, keyboard, screen):
                        return
        except KeyboardInterrupt:
            return


def _too_small(width: int, height: int) -> list[Line]:
    return wrapped(f"Too small: {width}×{height}. Needed: {LEAST[0]}×{LEAST[1]}.", width)


class _Keyboard:
    """The terminal that is typed on, if there is one: keys come at once and are not shown."""

    def __init__(self) -> None:
        self.fd = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._before = termios.tcgetattr(self.fd) if self.fd is not None else None

    def take(self) -> None:
        """Let keys come at once."""
        if self.fd is not None:
            tty.setcbreak(self.fd, termios.TCSANOW)

    def give_back(self) -> None:
        """As it was."""
        if self.fd is not None and self._before is not None:
            termios.tcsetattr(self.fd, termios.TCSANOW, self._before)


@contextmanager
def _keyboard() -> Iterator[_Keyboard]:
    keyboard = _Keyboard()
    keyboard.take()
    try:
        yield keyboard
    finally:
        keyboard.give_back()


@contextmanager
def _signals() -> Iterator[int]:
    """A descriptor that is readable after a signal that we wait for; SIGTERM ends the program in order."""
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    wanted = {signal.SIGWINCH: _nothing, signal.SIGTSTP: _nothing, signal.SIGTERM: _leave}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield read
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(read)
        os.close(write)


def _nothing(number: int, frame: FrameType | None) -> None:
    """The number is in the pipe."""


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _pause(seconds: float, rung: int, keyboard: _Keyboard, screen: Any) -> bool:
    """Until it is time to draw again; False when the user wants to leave."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        sources = [rung] if keyboard.fd is None else [rung, keyboard.fd]
        ready = select.select(sources, [], [], left)[0]
        if rung in ready:
            numbers = os.read(rung, 4096)
            if signal.SIGTSTP in numbers:
                _suspend(keyboard, screen)
            return True
        if ready and keyboard.fd is not None:
            keys = os.read(keyboard.fd, 64)
            if not keys or keys in QUIT:
                return False
    return True


def _suspend(keyboard: _Keyboard, screen: Any) -> None:
    """Stop as ctrl-Z asks for, with the terminal as it was; return when somebody lets us go on."""
    screen.stop()
    keyboard.give_back()
    os.kill(os.getpid(), signal.SIGSTOP)
    keyboard.take()
    screen.start()
