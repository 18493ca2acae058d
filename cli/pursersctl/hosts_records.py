"""What we did to a configuration file, kept beside a copy of it, so that exactly that can be undone.

They lie in the daemon's state folder, in `hosts`: a host's folder may be shared, watched, or under version control.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pursersctl import hosts_files
from pursersctl.hosts_edit import Edit
from pursersctl.hosts_known import Path as Keys


class Step(msgspec.Struct, frozen=True):
    """An edit, as it is kept."""

    keys: tuple[str, ...]
    value: Any = None
    gone: bool = False


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One change of one entry."""

    action: str
    """added or migrated."""
    file: str
    keys: tuple[str, ...]
    """The entry."""
    after: str
    """Digest of the file after the change: if it is still that one, the copy is put back."""
    copy: str | None
    """The file as it was; None if there was none."""
    undo: list[Step]
    """What brings back the values as they were."""
    top: tuple[str, ...] = ()
    """The outermost object that was made for the entry; it goes with the entry if nothing else is in it then."""
    inserted: str | None = None
    """The text that was added in one place, if nothing else happened to the file."""
    folders: list[str] = []
    """Those that were made for the file, the innermost first."""

    def edits(self) -> list[Edit]:
        """`undo` as edits."""
        return [Edit(step.keys, step.value, step.gone) for step in self.undo]


class Records:
    """The records of this user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, file: Path, keys: Keys) -> Record | None:
        """The record of the last change of an entry."""
        return _read(self.folder / _name(file, keys))

    def of(self, file: Path, action: str) -> list[Record]:
        """The records of such changes of a file."""
        found = []
        for path in sorted(self.folder.glob("*.json")):
            record = _read(path)
            if record is not None and record.file == str(file) and record.action == action:
                found.append(record)
        return found

    def keep(self, file: hosts_files.ConfigFile) -> str | None:
        """Copy a file as it was read; returns where to, None if there was none."""
        if file.data is None:
            return None
        path = self.folder / f"{digest(os.fsencode(file.path))[:8]}-{digest(file.data)[:12]}-{file.path.name}.copy"
        self._write(path, file.data)
        return str(path)

    def put(self, record: Record) -> None:
        """Note a change."""
        self._write(self.folder / _name(Path(record.file), record.keys), msgspec.json.encode(record))

    def forget(self, record: Record) -> None:
        """Its change is undone. The copy stays: it may be the last one of something."""
        (self.folder / _name(Path(record.file), record.keys)).unlink(missing_ok=True)

    def _write(self, path: Path, data: bytes) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        hosts_files.replace(hosts_files.ConfigFile(path, _bytes(path), "", b""), data, mode=0o600)


def folder(environ: Mapping[str, str], home: str | None) -> Path:
    """Where the records lie: below the private instance `home`, else in the user's state folder."""
    if home:
        return Path(home, "state", "hosts")
    import platformdirs  # here, because most commands do not need it

    return Path(platformdirs.user_state_dir("pursersd", appauthor=False), "hosts")


def digest(data: bytes) -> str:
    """Which bytes a file holds."""
    return hashlib.sha256(data).hexdigest()


def insertion(before: str, after: str) -> str | None:
    """The text that makes `after` of `before` when it is inserted in one place, None if more happened."""
    size = len(after) - len(before)
    low, high = 0, len(before)
    while low < high:  # the longest common beginning
        middle = (low + high + 1) // 2
        low, high = (middle, high) if before[:middle] == after[:middle] else (low, middle - 1)
    return after[low : low + size] if size > 0 and after[low + size :] == before[low:] else None


def _name(file: Path, keys: Keys) -> str:
    return digest(os.fsencode(file) + b"\0" + "\0".join(keys).encode())[:24] + ".json"


def _read(path: Path) -> Record | None:
    """A record; one that cannot be read is none: the change can still be undone, though not to the last byte."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.DecodeError):
        return None


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
