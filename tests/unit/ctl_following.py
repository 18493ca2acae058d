"""A running `pursersctl events`: what it has printed so far."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from rig import canary
from rig.daemon import CTL, Home
from rig.wait import until

PATIENCE = 30.0  # seconds for something that must happen, on a loaded machine


class Running:
    """The process; `out` and `err` are what was read of it."""

    def __init__(self, home: Home, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [CTL, "events", *arguments],
            env=home.environment(role=None, extra={"TZ": "UTC"}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        for pipe in (self.process.stdout, self.process.stderr):
            os.set_blocking(pipe.fileno(), False)
        self.out = self.err = b""

    def read(self) -> list[str]:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.out += self.process.stdout.read() or b""
        self.err += self.process.stderr.read() or b""
        return self.out.decode().splitlines()

    def says(self, count: int) -> list[str]:
        """Wait for so many lines on stdout."""
        until(lambda: len(self.read()) >= count, PATIENCE, f"{count} lines")
        return self.read()

    def ends(self) -> int:
        until(lambda: self.process.poll() is not None, PATIENCE, "it ends")
        self.read()
        return self.process.returncode


@contextmanager
def running(home: Home, *arguments: str) -> Iterator[Running]:
    found = Running(home, *arguments)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.wait(PATIENCE)
        for pipe in (found.process.stdout, found.process.stderr):
            if pipe is not None:
                pipe.close()
        canary.look("output of pursersctl events", found.out + found.err)
