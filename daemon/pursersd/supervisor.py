"""The service manager above us, as far as it speaks systemd's protocols: the sockets that it hands over (sd_listen_fds(3)),
and what it wants to hear (sd_notify(3), sd_watchdog_enabled(3)). Their variables are removed: they are meant for nobody else.
"""

import logging
import os
import socket
import time
from collections.abc import MutableMapping

log = logging.getLogger(__name__)

FIRST_DESCRIPTOR = 3
"""Handed sockets begin here."""

STATUS_EVERY = 10.0
"""Seconds between two lines of status for a manager that has no watchdog."""


class Supervisor:
    """Hears how this daemon fares. Without an address nobody wants to, and nothing is sent."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        self._address = address
        self._is_failing = False
        self.is_listening = address is not None
        """Whether anybody wants to hear anything."""
        self.every_s = watchdog_s / 2 if watchdog_s else STATUS_EVERY
        """Seconds between two beats: half of what the watchdog allows, as it advises."""

    def ready(self) -> None:
        """The socket accepts."""
        self._say("READY=1")

    def beat(self, status: str) -> None:
        """We live, and this is what we do. Called by the event loop itself, so that one that hangs is noticed."""
        self._say(f"WATCHDOG=1\nSTATUS={_line(status)}")

    def starting(self, status: str) -> None:
        """We are not ready yet, for this reason."""
        self._say(f"STATUS={_line(status)}")

    def reloading(self) -> None:
        """The configuration is read again; `ready` follows."""
        self._say(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, reason: str) -> None:
        """We leave."""
        self._say(f"STOPPING=1\nSTATUS=leaving: {_line(reason)}")

    def _say(self, words: str) -> None:
        if self._address is None:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            out.setblocking(False)
            try:
                out.sendto(words.encode(), self._address)
            except OSError as error:
                if not self._is_failing:
                    log.warning("the service manager does not hear us: %s", error.strerror)
                self._is_failing = True
            else:
                self._is_failing = False


def supervisor(environ: MutableMapping[str, str], pid: int) -> Supervisor:
    """Who wants to hear of the process `pid`, by its environment."""
    address = environ.pop("NOTIFY_SOCKET", None)
    usec, whose = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", str(pid))
    watched = usec.isdigit() and int(usec) > 0 and whose == str(pid)
    if not address or address[0] not in "/@":
        return Supervisor()
    path = "\0" + address[1:] if address[0] == "@" else address
    return Supervisor(path, int(usec) / 1e6 if watched else None)


def handed(environ: MutableMapping[str, str], pid: int) -> list[socket.socket]:
    """The sockets that were handed to the process `pid`; the caller closes those that it does not use."""
    count, whose = environ.pop("LISTEN_FDS", ""), environ.pop("LISTEN_PID", "")
    environ.pop("LISTEN_FDNAMES", None)
    if whose != str(pid) or not count.isdigit():
        return []
    found = []
    for fd in range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + min(int(count), 64)):
        try:
            os.set_inheritable(fd, False)
            found.append(socket.socket(fileno=fd))
        except OSError:
            continue  # closed, or no socket
    return found


def _line(text: str) -> str:
    return " ".join(text.split())
