"""Bytes on their way into a descriptor that takes only some of them at a time."""

from collections import deque
from collections.abc import Callable

__all__ = ["Outbox"]


class Outbox:
    """A queue of lines. A line may carry a tag, which `write` reports once the whole line has been taken."""

    def __init__(self) -> None:
        self._lines: deque[tuple[memoryview, str | None]] = deque()
        self.size = 0
        """Bytes not yet written."""
        self.is_cut = False
        """Some bytes of the first line have been written and others have not."""

    def __repr__(self) -> str:
        return f"<Outbox {len(self._lines)} lines {self.size} bytes>"

    def push(self, line: bytes, tag: str | None = None) -> None:
        """Append one line, newline included."""
        self._lines.append((memoryview(line), tag))
        self.size += len(line)

    def clear(self, *, but: str | None = None) -> None:
        """Forget what is queued; lines with the tag `but` stay."""
        self._lines = deque(entry for entry in self._lines if but is not None and entry[1] == but)
        self.size = sum(len(line) for line, _ in self._lines)

    def write(self, taking: Callable[[memoryview], int], most: int) -> list[str]:
        """Offer up to `most` bytes of the first line to `taking`, once; return its tag if the line is now complete.

        `taking` says how many bytes it took. What it raises passes through and leaves the queue as it was.
        """
        if not self._lines:
            return []
        rest, tag = self._lines[0]
        taken = taking(rest[:most])
        self.size -= taken
        self.is_cut = taken < len(rest) if taken else self.is_cut
        if taken < len(rest):
            self._lines[0] = (rest[taken:], tag)
            return []
        self._lines.popleft()
        return [] if tag is None else [tag]
