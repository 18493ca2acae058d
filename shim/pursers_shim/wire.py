"""The link protocol: what a shim (or pursersctl) and the daemon say to one another over the socket.

One JSON object per line, UTF-8, ended by 0x0A, at most MAX_LINE bytes. The first line of the client is `hello`; the
daemon answers `welcome` or `refuse`. After that a shim's link carries plain MCP lines in both directions, plus JSON-RPC
notifications whose method starts with `pursers/`, which never reach the host. docs/protocol.md describes it in full.

This module is imported by the shim at start-up: it must stay standard-library only and cheap.
"""

import json
import os
from collections.abc import Mapping

__all__ = [
    "DAEMON_UNAVAILABLE",
    "DELIVERED",
    "DRAIN",
    "DRAINED",
    "DRAINING",
    "ENV_EXACT",
    "ENV_PREFIXES",
    "EXIT",
    "FENCE",
    "HELLO",
    "HELLO_TIMEOUT",
    "IDLE",
    "KEEP",
    "KIND",
    "MAX_LINE",
    "OUTCOME_UNKNOWN",
    "PROTOCOL",
    "QUEUE_FULL",
    "REFUSE",
    "RESTART",
    "STOP",
    "WELCOME",
    "LineTooLong",
    "Lines",
    "agreed_protocol",
    "encode",
    "failed_call",
    "notification",
    "process_start",
    "readable",
    "relayed_environment",
]

PROTOCOL = (1, 1)
"""Oldest and newest link protocol version that this build speaks."""

MAX_LINE = 16 * 1024 * 1024
"""Longest line, in bytes without its newline, on stdio and on the socket."""

HELLO_TIMEOUT = 5.0
"""Seconds that the daemon waits for `hello` and a client for its answer, once the other side is running."""

KIND = "pursers"
"""The member that names the three lines which open a link: HELLO, then WELCOME or REFUSE."""

DAEMON_UNAVAILABLE, QUEUE_FULL, OUTCOME_UNKNOWN = "daemon_unavailable", "queue_full", "outcome_unknown"
"""Codes of a failed call that a model reads: nobody to serve it; too much at once; it may have been carried out."""

HELLO, WELCOME, REFUSE = "hello", "welcome", "refuse"

DRAIN = "pursers/drain"
"""daemon → shim: the daemon is leaving. params: {"reason": RESTART | STOP | IDLE, "limit_s": seconds}.

With a limit, calls in progress may end first, and the shim answers DRAINED; without, the link ends right after it.
"""

DRAINED = "pursers/drained"
"""shim → daemon: nothing new comes on this link any more. params: {}."""

FENCE = "pursers/fence"
"""daemon → shim: a newer link carries this conversation, this one has no effect any more. params: {"link_epoch": n}."""

RESTART, STOP, IDLE = "restart", "stop", "idle"

DRAINING = "draining"
"""The code of REFUSE with which a daemon that leaves sends a newcomer away: another one follows."""

EXIT = "pursers/exit"
"""daemon → shim: nobody is behind this shim any more, end now. params: {"reason": text}."""

KEEP = "pursers/keep"
"""daemon → shim: what to remember and to say again in the next hello, in the place of what it was before. params: anything."""

DELIVERED = "pursers/delivered"
"""shim → daemon: the answer to the host's request was written to the host. params: {"id": request id}."""

ENV_PREFIXES = ("ONBOARD_", "PURSERS_")
ENV_EXACT = ("HOME", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "GEMINI_SESSION_ID", "OPENCODE_PID")


def relayed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of a host's environment that a shim tells the daemon; nothing else leaves the shim."""
    return {k: readable(v) for k, v in environ.items() if k.startswith(ENV_PREFIXES) or k in ENV_EXACT}


def readable(text: str) -> str:
    """`text` with each byte that was not UTF-8 replaced, so that it can be sent: names and paths may hold any byte."""
    return os.fsencode(text).decode("utf-8", "replace")


def encode(message: object) -> bytes:
    """One protocol line, newline included; always valid UTF-8, also for text with lone surrogates."""
    try:
        return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def notification(method: str, params: dict[str, object]) -> bytes:
    """A protocol line that carries one JSON-RPC notification."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def failed_call(
    code: str, text: str, *, action: str, outcome: str, modern: bool, about: dict[str, object] | None = None
) -> dict[str, object]:
    """The result of a `tools/call` that was not carried out as far as anybody knows; the model reads `text`.

    `outcome` is "not_sent" or, if it may have been carried out all the same, "unknown". `modern`: 2026-07-28. `about`: the
    `tool` and the `target` of a call whose outcome is unknown, which nobody should repeat without looking.
    """
    failure = {"code": code, "message": text, "retryable": about is None, "action": action, "outcome": outcome}
    failure |= about or {}
    answer: dict[str, object] = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"error": failure},
        "isError": True,
    }
    return answer | {"resultType": "complete"} if modern else answer


def agreed_protocol(theirs: object) -> int | None:
    """The newest version in the overlap of PROTOCOL and `theirs` ([oldest, newest]), or None."""
    if not (isinstance(theirs, list | tuple) and len(theirs) == 2):
        return None
    oldest, newest = theirs
    if not (isinstance(oldest, int) and isinstance(newest, int)):
        return None
    version = min(newest, PROTOCOL[1])
    return version if version >= max(oldest, PROTOCOL[0]) else None


class LineTooLong(Exception):
    """Stands in the list of lines where one longer than the limit was; only its beginning and its end were kept."""

    def __init__(self, head: bytes, tail: bytes = b"") -> None:
        super().__init__(f"a line is longer than {MAX_LINE} bytes")
        self.head = head
        self.tail = tail


class Lines:
    """Cuts a byte stream into lines; holds at most one line of `limit` bytes, whatever arrives."""

    HEAD = 4096
    TAIL = 256

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._line = bytearray()
        self._head: bytes | None = None
        """The beginning of a line that is too long; `_line` then holds its last bytes only."""

    def feed(self, data: bytes) -> list[bytes | LineTooLong]:
        """Take bytes; return the lines they complete: bytes without the newline, or a LineTooLong."""
        done = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._add(data[start:end])
            done.append(self._take())
            start = end + 1
        self._add(data[start:] if start else data)
        return done

    def rest(self) -> bytes | LineTooLong:
        """What came after the last newline; call it once, at the end of the stream. Empty bytes if nothing."""
        return self._take()

    def _add(self, piece: bytes) -> None:
        if self._head is None and len(self._line) + len(piece) > self._limit:
            self._head = bytes(self._line[: self.HEAD] + piece[: self.HEAD])[: self.HEAD]
            self._line = self._line[-self.TAIL :]
        self._line += piece
        if self._head is not None:
            del self._line[: -self.TAIL]

    def _take(self) -> bytes | LineTooLong:
        held, head = bytes(self._line), self._head
        self._line = bytearray()
        self._head = None
        return held if head is None else LineTooLong(head, held)


def process_start(pid: int) -> int | None:
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
