"""Read and replace a configuration file that belongs to somebody else: whole or not at all, and as it was but for the text."""

import codecs
import contextlib
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from pursersctl.errors import Failed

SIZE_LIMIT = 64 * 1024 * 1024
"""Bytes that are read; a file of Claude Code with a long history has a few million."""

NEW_MODE = {"user": 0o600, "local": 0o600, "project": 0o644}
"""Permissions of a file that did not exist: a user's own may hold secrets, a project's is for everybody who works there."""


class Unusable(Failed):
    """A file that cannot be read or written, with what to do about it."""

    def __init__(self, text: str, action: str, *, code: str) -> None:
        super().__init__(f"{text}\n{action}", code=code)
        self.what = text
        self.action = action


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file as it was read."""

    path: Path
    """Behind symbolic links: the one that is replaced."""
    data: bytes | None
    """None if there is no such file."""
    text: str
    mark: bytes
    """The byte order mark, which is no part of the text."""

    @property
    def exists(self) -> bool:
        """Whether it was there."""
        return self.data is not None

    def encoded(self, text: str) -> bytes:
        """Another text in the encoding of this file."""
        return self.mark + text.encode()


def read(path: Path) -> ConfigFile:
    """The file at `path`, or behind the links there. Raises Unusable for one that is no text in UTF-8."""
    real = Path(os.path.realpath(path))
    try:
        data = _data(real)
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}.", f"See: ls -l {real}", code="unreadable") from error
    if data is None:
        return ConfigFile(real, None, "", b"")
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        text = data[len(mark) :].decode()
    except UnicodeDecodeError as error:
        raise Unusable(
            f"{path} is not UTF-8 (byte {error.start}).", "Save it as UTF-8, then try again.", code="unreadable"
        ) from None
    return ConfigFile(real, data, text, mark)


def check_writable(file: ConfigFile) -> None:
    """Raise Unusable for a file, or a folder, that somebody wants to stay as it is."""
    if file.exists and not file.path.stat().st_mode & 0o222:
        raise Unusable(
            f"{file.path} is read-only.",
            f"If it is made by a tool (home-manager, chezmoi, …), change it there; else: chmod u+w {file.path}",
            code="read_only",
        )
    folder = _existing(file.path.parent)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Unusable(f"{folder} does not let us write.", f"Whose it is tells: ls -ld {folder}", code="read_only")


def replace(file: ConfigFile, data: bytes, *, mode: int) -> list[Path]:
    """Put `data` in the place of a file, with its permissions and owner; returns the folders that had to be made.

    Nothing is written if the file is not as it was read any more. Raises Unusable; the file is then as it was.
    """
    check_writable(file)
    made = _make_folders(file.path.parent)
    fresh = file.path.with_name(f".{file.path.name}.{secrets.token_hex(6)}")
    try:
        _write(fresh, data, file, mode)
        if _data(file.path) != file.data:
            raise Unusable(f"{file.path} was changed meanwhile.", "Try again.", code="changed")
        os.replace(fresh, file.path)
    except OSError as error:
        raise Unusable(
            f"{file.path} cannot be replaced: {error.strerror}.", "Nothing was changed.", code="unwritable"
        ) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
    _sync(file.path.parent)
    return made


def remove(file: ConfigFile, folders: list[Path]) -> None:
    """Remove a file that we made, and those of the folders that we made for it that are empty."""
    try:
        file.path.unlink()
        for folder in folders:
            with contextlib.suppress(OSError):  # somebody uses it
                folder.rmdir()
    except OSError as error:
        raise Unusable(
            f"{file.path} cannot be removed: {error.strerror}.", "Nothing was changed.", code="unwritable"
        ) from error


def read_bytes(path: Path) -> bytes | None:
    """What a file of our own holds; None if it is not there, or cannot be read."""
    try:
        return _data(path)
    except OSError:
        return None


def _data(path: Path) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe is no reason to wait
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(0, "it is no regular file")
            data = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        return None
    if len(data) > SIZE_LIMIT:
        raise OSError(0, "it is too large")
    return data


def _write(fresh: Path, data: bytes, file: ConfigFile, mode: int) -> None:
    """A new file beside the old one, with its permissions and its owner."""
    target = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(target, "wb") as output:
        if file.exists:
            old = file.path.stat()
            new = os.fstat(target)
            if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
                os.fchown(target, old.st_uid, old.st_gid)
            mode = stat.S_IMODE(old.st_mode)
        os.fchmod(target, mode)
        output.write(data)
        output.flush()
        os.fsync(target)


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder; returns those that were missing, the innermost first."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        try:
            new.mkdir(mode=0o755)
        except OSError as error:
            raise Unusable(
                f"{new} cannot be made: {error.strerror}.", "Nothing was changed.", code="unwritable"
            ) from error
    return missing


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
