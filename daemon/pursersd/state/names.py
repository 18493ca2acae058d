"""The names that seats had, on disk: so that a restarted conversation, and a restarted daemon, finds its own again.

One small file, replaced as a whole. Nothing in it is worth failing a call for: a damaged file is moved aside, one that
cannot be written is remembered until the daemon ends.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pursersd import files
from pursersd.rules import names as rules
from pursersd.rules.names import Entry

log = logging.getLogger(__name__)

SCHEMA = 1

FILE_LIMIT = 4 * 1024 * 1024
"""Bytes that are read; LIMIT names have about a third of a million."""


class _File(msgspec.Struct):
    schema: int
    names: list[Entry]


@dataclass(slots=True)
class Names:
    """All remembered names. The methods that change them write the file: call them in a thread, one at a time."""

    path: Path | None
    """None remembers nothing beyond this object."""
    clock: Callable[[], float] = time.time
    entries: list[Entry] = field(default_factory=list)
    """Only the methods below change them; a reader may take a copy at any time."""

    def __post_init__(self) -> None:
        if self.path is not None:
            self.entries = _load(self.path)

    def remember(self, entry: Entry) -> None:
        """Keep this entry, in the place of the one for the same door and name, as used now."""
        self.entries = rules.remember(self.entries, msgspec.structs.replace(entry, used_at=self.clock()))
        self._save()

    def is_held(self, url: str, board: str, name: str) -> bool:
        """Whether the seat is ours, or may be."""
        return any(entry.held for entry in rules.find(self.entries, url, board, name))

    def note(self, url: str, board: str, name: str, *, held: bool, foreign: bool = False) -> None:
        """Note what Central said of a seat; of no effect on names that are not remembered."""
        for entry in rules.find(self.entries, url, board, name):
            changed = msgspec.structs.replace(entry, held=held, foreign=foreign)
            if changed != entry:
                self.entries = [changed if e is entry else e for e in self.entries]
                self._save()

    def _save(self) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            files.replace(self.path, msgspec.json.encode(_File(SCHEMA, self.entries)) + b"\n")
        except OSError as error:
            log.warning("%s cannot be written, a restart will not know these names: %s", self.path, error.strerror)


def _load(path: Path) -> list[Entry]:
    try:
        found = msgspec.json.decode(files.read(path, FILE_LIMIT), type=_File)
    except FileNotFoundError:
        return []
    except OSError as error:
        log.warning("%s cannot be read, names are chosen anew: %s", path, error.strerror)
        return []
    except (msgspec.DecodeError, RecursionError) as error:
        _move_aside(path, str(error))
        return []
    if found.schema != SCHEMA:
        _move_aside(path, f"schema {found.schema}, not {SCHEMA}")
        return []
    return found.names[-rules.LIMIT :]


def _move_aside(path: Path, why: str) -> None:
    try:
        aside = Path(files.move_aside(path))
        log.warning("%s is damaged (%s); it is now %s, and names are chosen anew", path, why, aside.name)
    except OSError as error:
        log.warning("%s is damaged (%s) and cannot be moved aside: %s", path, why, error.strerror)
