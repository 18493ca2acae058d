"""`pursersctl logs`: the end of the daemon's log, and what is added to it."""

import codecs
import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import BinaryIO

from pursers_shim.paths import Place
from pursersctl import client
from pursersctl.errors import Failed
from pursersctl.log_lines import Concerning
from pursersctl.output import note, reader_is_gone, write
from pursersctl.table import clean
from pursersd import api

POLL_INTERVAL = 0.2  # seconds between two looks at the file with -f
BLOCK = 64 * 1024
OLDEST = 9
"""Number of the oldest predecessor of a log that is looked for."""


def logs(path: str, count: int, follow: bool, conversation: str | None = None) -> None:
    """Print the last `count` lines of the log at `path`; with `follow` what is added, until the reader is gone.

    With `conversation`, the beginning of an id, only lines that concern it count, also those of older logs. Raises Failed
    if there is no log that we can read. Creates nothing and asks no daemon.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - the follower closes it when the log is rotated
    except FileNotFoundError:
        raise Failed(
            f"There is no log at {path} yet. The daemon writes it from its first start: pursersctl start"
        ) from None
    except OSError as error:
        raise Failed(f"Cannot read the log at {path}: {error.strerror}.") from error
    follower = Follower(path, file)
    try:
        show = _printer()
        if conversation is None:
            show(follower.last_lines(count))
        else:
            show = _only(conversation, show, count, follower)
        while follow and not reader_is_gone(POLL_INTERVAL):
            for block in follower.added():
                show(block)
    except KeyboardInterrupt:
        pass  # the way to leave -f
    finally:
        follower.close()


def meant(place: Place, which: str) -> str:
    """The id, or the beginning of one, of the conversation that is meant; only for a pid or a seat a daemon is asked.

    Raises Failed if the daemon knows none, or several, and NotRunning if there is no daemon.
    """
    if which.startswith("c-"):
        return which
    try:
        answer = client.read(client.ask(place, "conversation", {"which": which}), api.ConversationStatus)
    except Failed as error:
        if error.code != "unknown_conversation":
            raise
        ended = client.read(client.ask(place, "ended"), api.Ended).ended
        found = next((row.conversation for row in ended if which in (row.seat, str(row.shim_pid))), None)
        if found is None:
            raise
        return found
    return answer.row.conversation


def _only(
    conversation: str, show: Callable[[bytes], None], count: int, follower: "Follower"
) -> Callable[[bytes], None]:
    """Show the last lines that concern a conversation; returns what shows those that are added."""
    concerning = Concerning(conversation)
    last: deque[bytes] = deque(maxlen=count)
    for block in follower.everything():
        last.extend(concerning.lines(block))
    if not last:
        note(f"No line of the log concerns {conversation}.")
    show(b"".join(last))
    return lambda block: show(b"".join(concerning.lines(block)))


class Follower:
    """Reads a log from its end on, also when it is renamed and begun anew, or emptied."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        """Owned: closed by `close` or when the log is rotated."""

    def close(self) -> None:
        self._file.close()

    def last_lines(self, count: int) -> bytes:
        """The last `count` lines; what is added later starts right behind them."""
        end = start = self._file.seek(0, os.SEEK_END)
        blocks: list[bytes] = []
        newlines = 0
        # One newline more than lines: the one that ends the line before the first.
        while start > 0 and newlines <= count:
            size = min(BLOCK, start)
            start = self._file.seek(start - size)
            blocks.insert(0, self._file.read(size))
            newlines += blocks[0].count(b"\n")
        self._file.seek(end)
        lines = b"".join(blocks).split(b"\n")
        kept = count if lines[-1] else count + 1
        return b"\n".join(lines[-kept:]) if count else b""

    def everything(self) -> Iterator[bytes]:
        """All there is, from the oldest log that was kept; what is added later starts right behind it."""
        for number in range(OLDEST, 0, -1):
            try:
                with open(f"{self._path}.{number}", "rb") as older:
                    # A rotation since we opened ours has made it an older one: its turn comes last.
                    if not os.path.sameopenfile(older.fileno(), self._file.fileno()):
                        while block := older.read(BLOCK):
                            yield block
            except OSError:
                continue  # there are not so many, or it has just got another number
        self._file.seek(0)
        yield from self._blocks()

    def added(self) -> Iterator[bytes]:
        """What was written since the last look. Rotating more than once between two looks loses what lies between."""
        yield from self._blocks()
        successor = self._successor()
        if successor is not None:
            yield from self._blocks()  # written between our last read and the rotation
            self._file.close()
            self._file = successor
            yield from self._blocks()
        elif os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            yield from self._blocks()

    def _blocks(self) -> Iterator[bytes]:
        while block := self._file.read(BLOCK):
            yield block

    def _successor(self) -> BinaryIO | None:
        """The file that has taken the place of ours, opened; None while ours is still there or nothing is."""
        try:
            if os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno())):
                return None
            return open(self._path, "rb")
        except OSError:
            return None  # between the rename and the new file: look again next time


def _printer() -> Callable[[bytes], None]:
    """Writes bytes of the log to stdout as text that no terminal obeys."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def show(data: bytes) -> None:
        text = decoder.decode(data).replace("\t", "    ")
        write("\n".join(clean(line) for line in text.split("\n")))

    return show
