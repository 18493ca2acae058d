"""Who holds the other ends of a process's stdin and stdout. Only Linux tells; looking changes nothing."""

import os
import select
import socket
import stat
import struct
import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

Mode = Literal["read", "write"]

_DIAG = (4, 20)  # NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY (linux/netlink.h, linux/sock_diag.h)
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH
_SHOW_PEER, _PEER = 4, 2  # UDIAG_SHOW_PEER and UNIX_DIAG_PEER (linux/unix_diag.h)
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr
_SOCKET = struct.Struct("=BBBBIII")  # struct unix_diag_msg
_ERROR, _DONE = 2, 3
_DIAG_TIMEOUT = 2.0  # seconds in which the kernel must answer
_OPPOSITE: dict[Mode, Mode] = {"read": "write", "write": "read"}
_FLAGS: dict[Mode, int] = {"read": os.O_RDONLY, "write": os.O_WRONLY}


@dataclass(frozen=True, slots=True)
class Ends:
    """Who is at the other ends of the descriptors of a process."""

    pids: tuple[int, ...] = ()
    is_unseen: bool = False
    """Somebody is, of whom only that can be told."""
    on_terminal: bool = False


class Pipes:
    """The pipes and local sockets of all processes that we may look at, as they were when this was made."""

    def __init__(self) -> None:
        self._holders: dict[tuple[Mode, str], set[int]] = defaultdict(set)
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                self._look_at(int(entry))
        self._peers = _peers()
        self._names = _names()

    def readers(self, pid: int) -> Ends | None:
        """Who reads what this process writes, its stderr apart; None where that cannot be told.

        Every descriptor counts: servers move their stdin and stdout away, so that nothing stray gets there.
        """
        return self._others(pid, "read")

    def writers(self, pid: int) -> Ends | None:
        """Who can write what this process reads; None where that cannot be told."""
        return self._others(pid, "write")

    def _look_at(self, pid: int) -> None:
        try:
            found = _descriptors(pid)
        except OSError:
            return  # not ours to look at, or gone
        for number, link in found.items():
            for mode in _modes(pid, number) if link.startswith(("pipe:", "socket:")) else ():
                self._holders[mode, link].add(pid)

    def _others(self, pid: int, mode: Mode) -> Ends | None:
        try:
            if os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"):
                return None  # sockets of another network namespace are not listed here
            found = _descriptors(pid)
        except OSError:
            return None
        own = _OPPOSITE[mode]
        used = {link: f"/proc/{pid}/fd/{number}" for number, link in found.items() if own in _modes(pid, number)}
        lines = {link: self._line(path, link, mode) for link, path in used.items()}
        if _UNKNOWN in lines.values():
            return None
        heard = {link: line for link, line in lines.items() if line is not None and line.pids != {pid}}
        if heard.keys() - {found.get("2")}:
            heard.pop(
                found.get("2", ""), None
            )  # stderr is inherited from whomever; it counts only if it is all there is
        pids = {other for line in heard.values() for other in line.pids} - {pid}
        at_terminal = (
            link.startswith(("/dev/pts/", "/dev/tty")) for number, link in found.items() if number not in ("1", "2")
        )
        return Ends(tuple(sorted(pids)), any(line.is_unseen for line in heard.values()), any(at_terminal))

    def _line(self, path: str, link: str, mode: Mode) -> "_Line | None":
        """Who is at the other end of a descriptor; None if it is no line to anybody, _UNKNOWN where nobody tells."""
        if link.startswith("pipe:"):
            pids = self._holders.get((mode, link), set())
            return _Line(frozenset(pids), not pids and _has_other_end(path, mode))
        if not link.startswith("socket:"):
            return _UNKNOWN if _is_fifo(path) else None
        if self._names is None:
            return _UNKNOWN
        if _inode(link) not in self._names:
            return None  # of another family: the connections to Central
        if self._peers is None:
            return _UNKNOWN
        peer = self._peers.get(_inode(link), 0)
        if self._names.get(peer):
            return None  # a service with a name, such as a resolver or the daemon: no host
        pids = self._holders.get((mode, f"socket:[{peer}]"), set())
        return _Line(frozenset(pids), not pids and peer != 0)


@dataclass(frozen=True, slots=True)
class _Line:
    """Who is at the other end of one descriptor."""

    pids: frozenset[int]
    is_unseen: bool


_UNKNOWN = _Line(frozenset({0}), True)
"""It cannot be told who; no process that we see has the id 0."""


def look() -> Pipes | None:
    """What there is to see; None on systems that do not tell."""
    return Pipes() if sys.platform == "linux" else None


def _inode(link: str) -> int:
    return int(link[link.index("[") + 1 : -1])


def _is_fifo(path: str) -> bool:
    """Whether it is a pipe with a name, of which nobody tells who has opened it."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


def _names() -> dict[int, str] | None:
    """The local sockets of this network namespace, by inode number: the name of each, empty for those without.

    None where the kernel does not list them.
    """
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as table:
            rows = [line.split(maxsplit=7) for line in table][1:]
    except OSError:
        return None
    return {int(row[6]): row[7].strip() if len(row) > 7 else "" for row in rows}


def _descriptors(pid: int) -> dict[str, str]:
    """The descriptors of a process and what they are. Raises OSError for one that is not ours to look at, or has gone."""
    folder = f"/proc/{pid}/fd"
    found = {}
    for number in os.listdir(folder):
        try:
            found[number] = os.readlink(f"{folder}/{number}")
        except OSError:
            continue  # closed meanwhile
    return found


def _modes(pid: int, number: str) -> tuple[Mode, ...]:
    try:
        with open(f"/proc/{pid}/fdinfo/{number}") as info:
            flags = next(int(line.split()[1], 8) for line in info if line.startswith("flags:"))
    except (OSError, StopIteration):
        return ()
    access = flags & os.O_ACCMODE
    return ("read", "write") if access == os.O_RDWR else ("write",) if access == os.O_WRONLY else ("read",)


def _has_other_end(path: str, mode: Mode) -> bool:
    """Whether anybody holds the other end of a pipe, be he seen or not: the kernel knows. In doubt, somebody does."""
    try:
        own = os.open(path, _FLAGS[_OPPOSITE[mode]] | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        poll = select.poll()
        poll.register(own, select.POLLIN | select.POLLOUT)
        return not any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))
    finally:
        os.close(own)


def _peers() -> dict[int, int] | None:
    """The other end of each local socket, by inode number, 0 when it is closed; None where the kernel does not say."""
    if sys.platform != "linux":
        return None
    protocol, by_family = _DIAG
    request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, _SHOW_PEER, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, protocol) as kernel:
            kernel.settimeout(_DIAG_TIMEOUT)
            kernel.send(_HEADER.pack(_HEADER.size + len(request), by_family, _DUMP, 1, 0) + request)
            return _dump(kernel)
    except OSError:
        return None


def _dump(kernel: socket.socket) -> dict[int, int]:
    found: dict[int, int] = {}
    while True:
        data = kernel.recv(1 << 18)
        at = 0
        while at + _HEADER.size <= len(data):
            length, kind, *_ = _HEADER.unpack_from(data, at)
            if kind == _DONE:
                return found
            if kind == _ERROR or length < _HEADER.size:
                raise OSError("the kernel refuses to list local sockets")
            inode, peer = _entry(data[at + _HEADER.size : at + length])
            found[inode] = peer
            at += (length + 3) & ~3


def _entry(message: bytes) -> tuple[int, int]:
    """Inode of a socket and of its peer (0: none)."""
    inode = _SOCKET.unpack_from(message)[4]
    at = _SOCKET.size
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if kind == _PEER:
            return inode, struct.unpack_from("=I", message, at + 4)[0]
        at += max((length + 3) & ~3, 4)
    return inode, 0
