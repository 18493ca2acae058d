"""Speaks systemd's protocols to a daemon: binds its socket and hands it over (LISTEN_FDS), and hears it (NOTIFY_SOCKET).

Run as a program it puts a descriptor where sd_listen_fds(3) says, names itself as the one whom it is for, and becomes its
other arguments.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

BACKLOG = 64


class Activation:
    """A listening socket at `path`, bound in the place of whatever is there as systemd does, and an ear beside `folder`."""

    def __init__(self, path: str, folder: Path) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        Path(path).unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        os.chmod(path, 0o600)
        self.listener.listen(BACKLOG)
        self.heard: list[str] = []
        """What daemons said so far, one entry for each message."""
        self._address = folder / f"notify-{os.getpid()}"
        self._address.unlink(missing_ok=True)
        self._ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ear.bind(str(self._address))
        self._ear.setblocking(False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(
        self, argv: list[str], environ: Mapping[str, str], stderr: BinaryIO | int, watchdog_s: float | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start a program that is handed the socket, in a session of its own."""
        protocol = {"NOTIFY_SOCKET": str(self._address)}
        if watchdog_s is not None:
            protocol["WATCHDOG_USEC"] = str(int(watchdog_s * 1e6))
        fd = self.listener.fileno()
        return subprocess.Popen(
            [sys.executable, __file__, str(fd), *argv],
            env={**environ, **protocol},
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            pass_fds=(fd,),
            start_new_session=True,
        )

    def listen(self) -> list[str]:
        """`heard`, with what has come meanwhile."""
        while True:
            try:
                self.heard.append(self._ear.recv(4096).decode())
            except BlockingIOError:
                return self.heard

    def count(self, word: str) -> int:
        """How many messages so far have this line, or one that begins with it and `=`."""
        lines = [line for message in self.listen() for line in message.splitlines()]
        return sum(line == word or line.startswith(f"{word}=") for line in lines)

    def close(self) -> None:
        """Stop listening; the socket's file stays, as systemd leaves it."""
        self.listener.close()
        self._ear.close()
        self._address.unlink(missing_ok=True)


def main() -> None:
    fd, *argv = sys.argv[1:]
    os.dup2(int(fd), 3, inheritable=True)
    if fd != "3":
        os.close(int(fd))
    os.execve(argv[0], argv, {**os.environ, "LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())})


if __name__ == "__main__":
    main()
