"""Which lines of the log concern a conversation: those that name it, with the tracebacks below them. Pure."""

import re

_BEGINS = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
"""How a line begins that is not the continuation of another."""


class Concerning:
    """Takes the log in pieces and gives back what concerns the conversation whose id begins so."""

    def __init__(self, conversation: str) -> None:
        self._names = re.compile(rb"(?<![\w-])" + re.escape(conversation.encode()) + rb"[0-9a-f]*(?![\w-])")
        self._rest = b""
        self._concerns = False

    def lines(self, data: bytes) -> list[bytes]:
        """The whole lines of it that are there by now."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [line + b"\n" for line in whole if self._is_wanted(line)]

    def _is_wanted(self, line: bytes) -> bool:
        if _BEGINS.match(line):
            self._concerns = bool(self._names.search(line))
        return self._concerns
