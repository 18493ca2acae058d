"""One connection to the daemon: from `hello` to its end."""

import json
import socket

from pursers_shim.outbox import Outbox
from pursers_shim.wire import DRAINING, HELLO, KIND, MAX_LINE, PROTOCOL, REFUSE, WELCOME, Lines, LineTooLong, encode

__all__ = ["LAST_WORD", "Link", "Refusal", "Welcome", "greeting", "hello"]

CHUNK = 65536
"""Bytes read or written at once."""

LAST_WORD = "last word"
"""The tag of what a daemon that leaves is told all the same: the host's answer to a question of its, a cancellation."""


def hello(facts: dict[str, object], resume: dict[str, object] | None) -> bytes:
    """The first line of a shim's link. `facts` describe the shim, `resume` what it wants to go on with."""
    greeting = {KIND: HELLO, "protocol": list(PROTOCOL), "role": "shim"} | facts
    return encode(greeting if resume is None else greeting | {"resume": resume})


class Welcome:
    """The daemon takes us in."""

    __slots__ = ("line_limit", "names")

    def __init__(self, value: dict[str, object]) -> None:
        self.names = value
        """What the daemon calls the conversation, among others; see Resume.welcomed."""
        limits = value.get("limits")
        limit = limits.get("line") if isinstance(limits, dict) else None
        self.line_limit = limit if isinstance(limit, int) and 0 < limit < MAX_LINE else MAX_LINE


class Refusal:
    """The daemon sends us away; `is_final`: asking again by ourselves does not help; `leaves`: another one follows it."""

    __slots__ = ("is_final", "leaves", "text")

    def __init__(self, text: str, is_final: bool, *, leaves: bool = False) -> None:
        self.text = text
        self.is_final = is_final
        self.leaves = leaves


def greeting(value: dict[str, object]) -> Welcome | Refusal:
    """What the first line of the daemon means."""
    version = value.get("protocol")
    if value.get(KIND) == WELCOME and isinstance(version, int) and PROTOCOL[0] <= version <= PROTOCOL[1]:
        return Welcome(value)
    if value.get(KIND) == REFUSE:
        text = f"The daemon refused this conversation: {value.get('text')}"
        return Refusal(text, not value.get("retryable"), leaves=value.get("code") == DRAINING)
    return Refusal("What listens at the daemon's socket does not speak this program's link protocol.", False)


class Link:
    """A non-blocking socket with a queue of lines. Close it once; a lost peer shows as the end of `receive`."""

    def __init__(self, connection: socket.socket) -> None:
        self.fd = connection.fileno()
        self.outbox = Outbox()
        self.is_welcome = False
        """The daemon has answered `welcome`: MCP lines may go both ways."""
        self.is_leaving = False
        """The daemon said that it goes: no new line is sent, its last answers are still read."""
        self.asked: set[str] = set()
        """Ids of requests that the daemon made to the host on this link and that are unanswered."""
        self._connection = connection
        self._lines = Lines()
        self._is_deaf = False

    def __repr__(self) -> str:
        return f"<Link fd={self.fd} welcome={self.is_welcome} leaving={self.is_leaving} {self.outbox!r}>"

    def receive(self) -> list[bytes | LineTooLong] | None:
        """The lines that have arrived; None when there will be no more. An unfinished last line is dropped."""
        try:
            data = self._connection.recv(CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self._lines.feed(data) if data else None

    def send(self, line: bytes, tag: str | None = None, *, is_last_word: bool = False) -> None:
        """Queue one line, newline included. A daemon that leaves is told last words only."""
        if is_last_word or not self.is_leaving:
            self.outbox.push(line, tag)

    def leave(self, *, lingers: bool) -> None:
        """The daemon goes: of what is queued only last words are sent, and they only if it `lingers`.

        Not after half a line: with its rest, the daemon would have a request that the next one must get.
        """
        self.is_leaving = True
        self._is_deaf = self._is_deaf or not lingers or self.outbox.is_cut
        self.outbox.clear(but=None if self._is_deaf else LAST_WORD)

    def flush(self) -> list[str]:
        """Write what the socket takes; return the tags of the lines that have gone out in full."""
        gone: list[str] = []
        while self.wants_to_write:
            try:
                gone += self.outbox.write(self._connection.send, CHUNK)
            except BlockingIOError:
                break
            except OSError:
                # The end shows when all that the daemon wrote before has been read.
                self._is_deaf = True
        return gone

    def pop_asked(self) -> object:
        """Take the id of one unanswered question out of `asked`."""
        return json.loads(self.asked.pop())

    @property
    def wants_to_write(self) -> bool:
        """Whether bytes are queued and the other end may still take them."""
        return self.outbox.size > 0 and not self._is_deaf

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
