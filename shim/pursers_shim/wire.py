"""The link protocol: what a shim (or pursersctl) and the daemon say to one another over the socket.

One JSON object per line, UTF-8, ended by 0x0A, at most MAX_LINE bytes. The first line of the client is `hello`; the daemon
answers `welcome` or `refuse`. After that a shim's link carries plain MCP lines in both directions, plus JSON-RPC
notifications whose method starts with `pursers/`, which never reach the host. docs/protocol.md describes it in full.

This module is imported by the shim at start-up: it must stay standard-library only and cheap.
"""

import json
import os

__all__ = [
    "DELIVERED",
    "DRAIN",
    "ENV_EXACT",
    "ENV_PREFIXES",
    "EXIT",
    "HELLO_TIMEOUT",
    "MAX_LINE",
    "PROTOCOL",
    "LineTooLong",
    "Lines",
    "agreed_protocol",
    "encode",
    "notification",
    "process_start",
    "relayed_environment",
]

PROTOCOL = (1, 1)
"""Oldest and newest link protocol version that this build speaks."""

MAX_LINE = 16 * 1024 * 1024
"""Longest line, in bytes without its newline, on stdio and on the socket."""

HELLO_TIMEOUT = 5.0
"""Seconds that the daemon waits for `hello` and a client for its answer, once the other side is running."""

DRAIN = "pursers/drain"
"""daemon → shim: the daemon is leaving. params: {"reason": "restart" | "stop" | "idle"}. The link ends right after it."""

EXIT = "pursers/exit"
"""daemon → shim: nobody is behind this shim any more, end now. params: {"reason": text}."""

DELIVERED = "pursers/delivered"
"""shim → daemon: the answer to the host's request was written to the host. params: {"id": request id}."""

ENV_PREFIXES = ("ONBOARD_", "PURSERS_")
ENV_EXACT = ("CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "GEMINI_SESSION_ID", "OPENCODE_PID")


def relayed_environment(environ):
    """The part of a host's environment that a shim tells the daemon; nothing else leaves the shim."""
    return {k: v for k, v in environ.items() if k.startswith(ENV_PREFIXES) or k in ENV_EXACT}


def encode(message):
    """One protocol line, newline included."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def notification(method, params):
    """A protocol line that carries one JSON-RPC notification."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def agreed_protocol(theirs):
    """The newest version in the overlap of PROTOCOL and `theirs` ([oldest, newest]), or None."""
    try:
        oldest, newest = theirs
        version = min(newest, PROTOCOL[1])
        return version if version >= max(oldest, PROTOCOL[0]) else None
    except (TypeError, ValueError):
        return None


class LineTooLong(Exception):
    """Stands in the list of lines where one longer than MAX_LINE was; `head` is its beginning, the rest was dropped."""

    def __init__(self, head):
        super().__init__(f"a line is longer than {MAX_LINE} bytes")
        self.head = head


class Lines:
    """Cuts a byte stream into lines; holds at most one line of `limit` bytes, whatever arrives."""

    HEAD = 4096

    def __init__(self, limit=MAX_LINE):
        self._limit = limit
        self._parts = []
        self._size = 0
        self._skipping = None

    def feed(self, data):
        """Take bytes; return the lines they complete: bytes without the newline, or a LineTooLong."""
        done = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._add(data[start:end])
            done.append(self._take())
            start = end + 1
        self._add(data[start:] if start else data)
        return done

    def rest(self):
        """What came after the last newline; call it once, at the end of the stream. Empty bytes if nothing."""
        return self._take()

    def _add(self, piece):
        if not piece:
            return
        if self._skipping is None and self._size + len(piece) > self._limit:
            self._skipping = (b"".join(self._parts) + piece[: self.HEAD])[: self.HEAD]
            self._parts = []
            self._size = 0
        if self._skipping is None:
            self._parts.append(piece)
            self._size += len(piece)

    def _take(self):
        if self._skipping is not None:
            line = LineTooLong(self._skipping)
        else:
            line = b"".join(self._parts)
        self._parts = []
        self._size = 0
        self._skipping = None
        return line


def process_start(pid):
    """When a process began, in clock ticks since boot, or None where the kernel does not say so in /proc.

    With the pid it names one process for ever: a pid alone may be used again.
    """
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        stat = os.read(fd, 4096)
    finally:
        os.close(fd)
    # The second field is the command in parentheses and may contain anything; count from its end.
    return int(stat[stat.rindex(b")") + 2 :].split()[19])
