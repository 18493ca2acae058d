"""Which folders `pursersctl service install` made: `uninstall` takes away those, and none that was there before.

They are noted in the daemon's state folder, before they are made.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from pursersctl.errors import Failed


class MadeFolders:
    """The note of one service."""

    def __init__(self, state: str, name: str) -> None:
        self._note = Path(state, f"{name}-folders.json")

    def expect(self, file: Path) -> None:
        """Note the folders that writing `file` will make. Raises Failed."""
        missing = [str(folder) for folder in file.parents if not os.path.lexists(folder)]
        if not missing:
            return
        known = self._read()
        text = msgspec.json.encode([*known, *(folder for folder in missing if folder not in known)])
        try:
            self._note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._note.write_bytes(text)
        except OSError as error:
            raise Failed(f"Cannot write {self._note}: {error.strerror}.") from error

    def remove(self) -> None:
        """Take away those that are empty, and the note."""
        _remove_empty(self._read())
        self._note.unlink(missing_ok=True)

    def _read(self) -> list[str]:
        """Those that were made. A note that cannot be read is none: a folder too many does no harm."""
        try:
            return msgspec.json.decode(self._note.read_bytes(), type=list[str])
        except (OSError, msgspec.DecodeError):
            return []


def _remove_empty(folders: Iterable[str]) -> None:
    for folder in sorted(folders, key=len, reverse=True):  # what lies in another one first
        with suppress(OSError):  # somebody else uses it, or has taken it away
            os.rmdir(folder)
