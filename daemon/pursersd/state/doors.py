"""The stored doors of one folder: read when they changed, and changed under the lock that the bridge takes too.

Everything here blocks, a change for up to LOCK_TIMEOUT: the daemon calls what changes doors in a thread.
"""

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from pursersd import files
from pursersd.errors import DoorsError
from pursersd.rules import door_file, door_list
from pursersd.rules.bridge_files import FOLDER_VARIABLE, state_folder
from pursersd.rules.door import Door
from pursersd.rules.door_file import COORDINATING, SHARED, DoorFile
from pursersd.state.lock import held

LOCK_TIMEOUT = 5.0
"""Seconds that a change waits for another program to give the lock back."""

FILE_LIMIT = 4 * 1024 * 1024
"""Bytes that are read; a door has about one thousand."""

T = TypeVar("T")

Stamp = tuple[int, int, int] | None
"""Inode, time of change and size of a file; None when there is none."""


def folder(environ: Mapping[str, str], home: str | None, cwd: str = "/") -> Path:
    """Where the doors of a program with this environment lie: below the private instance `home`, else where the bridge
    keeps them (bridge.md §7). A relative path begins in `cwd`."""
    return Path(state_folder(environ, home, cwd))


class Doors:
    """The doors of one folder. Several programs may change them at once; each change is whole and never half seen."""

    def __init__(
        self, folder: Path, *, hostname: Callable[[], str] = socket.gethostname, lock_timeout: float = LOCK_TIMEOUT
    ) -> None:
        self.folder = folder
        self._hostname = hostname
        self._lock_timeout = lock_timeout
        self._known: dict[str, tuple[Stamp, tuple[Door, ...]]] = {}
        """What was read last, by the file's name, and of which file."""

    def __repr__(self) -> str:
        return f"<Doors {self.folder}>"

    @property
    def stamp(self) -> tuple[Stamp, ...]:
        """Differs from an earlier one when a program changed the doors meanwhile; costs a stat per file."""
        return tuple(_stamp(self.folder / file.name) for file in (SHARED, COORDINATING))

    def load(self) -> tuple[Door, ...]:
        """All doors; read again only when a file changed. No file means no door.

        Raises DoorsError with the bridge's text, the path and what to do; one bad entry makes its whole file bad.
        """
        return (*self._load(SHARED), *self._load(COORDINATING))

    def store(self, door: Door, *, rotate: bool = False, name: str | None = None) -> Door:
        """Keep a door, and with it the name of its first seat; returns it as stored.

        Raises DoorsError when the board and role have another token and `rotate` is false, or none and it is true, when
        the name is not safe, and when the file cannot be read, locked or written. Nothing has changed then.
        """
        joined_at = datetime.now(UTC).isoformat()

        def change(doors: tuple[Door, ...]) -> tuple[tuple[Door, ...], None]:
            doors = door_list.stored(doors, door, rotate=rotate, joined_at=joined_at)
            if name is not None:
                doors, _ = door_list.reserved(doors, door.board, door.role, name, "")
            return doors, None

        doors, _ = self._change(_file(door.role), change)
        kept = door_list.find(doors, door.board, door.role)
        assert kept is not None
        return kept

    def reserve(self, board: str, role: str, name: str | None = None) -> str:
        """Note a name as used by the door of a board and role, and return it: `name`, or the next automatic one.

        Raises DoorsError for a name that is not safe, when there is no such door, and like `store` for the file.
        """
        _, chosen = self._change(
            _file(role), lambda doors: door_list.reserved(doors, board, role, name, self._hostname())
        )
        return chosen

    def forget(self, board: str, role: str) -> bool:
        """Remove the door of a board and role; whether there was one. Raises DoorsError like `store` for the file."""
        if not self.folder.exists():
            return False

        def change(doors: tuple[Door, ...]) -> tuple[tuple[Door, ...], bool]:
            left = door_list.forgotten(doors, board, role)
            return left, left != doors

        _, was_there = self._change(_file(role), change)
        return was_there

    def _load(self, file: DoorFile) -> tuple[Door, ...]:
        path = self.folder / file.name
        known = self._known.get(file.name)
        if known is not None and known[0] == _stamp(path):
            return known[1]
        try:
            found, text = _read(path)
            doors = door_file.parse(text, file) if found is not None else ()
        except (OSError, UnicodeDecodeError) as error:
            why = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
            raise _unusable(path, f"doors.json is unreadable or invalid{why}") from None
        except DoorsError as error:
            raise _unusable(path, str(error)) from None
        self._known[file.name] = (found, doors)
        return doors

    def _change(
        self, file: DoorFile, change: Callable[[tuple[Door, ...]], tuple[tuple[Door, ...], T]]
    ) -> tuple[tuple[Door, ...], T]:
        """Read, change and write a file while nobody else does; it is written only if something changed."""
        with self._locked():
            before = self._load(file)
            after, result = change(before)
            if after != before:
                with _writing(self.folder / file.name):
                    files.replace(self.folder / file.name, door_file.serialise(after).encode())
                self._known.pop(file.name, None)
        return after, result

    @contextmanager
    def _locked(self) -> Iterator[None]:
        path = self.folder / f"{SHARED.name}.lock"
        with ExitStack() as stack:
            with _writing(path):
                _own(self.folder)
                try:
                    stack.enter_context(held(str(path), self._lock_timeout))
                except TimeoutError:
                    raise DoorsError(
                        f"Another program has held {path} for more than {self._lock_timeout:.0f} s. Try again; if that "
                        f"does not help, end the program that `lsof {path}` shows."
                    ) from None
            yield


class DoorFolders:
    """The doors of all conversations, one object for each folder: what several of them read is read once."""

    def __init__(self, home: str | None) -> None:
        self._home = home
        self._known: WeakValueDictionary[Path, Doors] = WeakValueDictionary()
        """Each as long as a conversation has it."""

    def __repr__(self) -> str:
        return f"<DoorFolders {len(self._known)}>"

    def of(self, environ: Mapping[str, str], cwd: str) -> Doors:
        """The doors of a conversation whose shim has this environment and working folder."""
        place = folder(environ, self._home, cwd)
        return self._known.setdefault(place, Doors(place))


def _file(role: str) -> DoorFile:
    return COORDINATING if role in COORDINATING.roles else SHARED


def _stamp(path: Path) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _read(path: Path) -> tuple[Stamp, str]:
    """The stamp and the text of a file; None and nothing when there is none."""
    try:
        stream = files.opened(path)
    except FileNotFoundError:
        return None, ""
    with stream:
        found = os.fstat(stream.fileno())
        if found.st_size > FILE_LIMIT:
            raise OSError(errno.EFBIG, f"more than {FILE_LIMIT} bytes")
        return (found.st_ino, found.st_mtime_ns, found.st_size), stream.read(FILE_LIMIT).decode()


def _own(folder: Path) -> None:
    """See to it that the folder exists and is ours alone."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    found = os.stat(folder)
    if found.st_uid != os.getuid() or found.st_mode & stat.S_ISVTX:
        raise OSError(errno.EPERM, "its folder is not yours alone")
    if stat.S_IMODE(found.st_mode) != 0o700:
        os.chmod(folder, 0o700)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DoorsError(
            f"{path} cannot be written: {error.strerror or error}. Make the folder {path.parent} yours and writable, or "
            f"choose another one with {FOLDER_VARIABLE}."
        ) from error


def _unusable(path: Path, text: str) -> DoorsError:
    return DoorsError(f"{text}: see {path}. Repair it, or move it away and join again with: pursersctl join")
