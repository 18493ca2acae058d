"""Small files: read without ever waiting for somebody, replaced as a whole, moved aside when they cannot be used.

Everything here blocks for as long as the disk takes.
"""

import errno
import itertools
import os
import stat
from contextlib import suppress
from typing import BinaryIO

Path = str | os.PathLike[str]


def opened(path: Path, *, flags: int = 0) -> BinaryIO:
    """The file, open for reading; the caller closes it. `flags` are further ones for open(2).

    Raises OSError, also (EINVAL) for what is no regular file: reading a pipe could stop everything.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read(path: Path, limit: int) -> bytes:
    """All of a file. Raises OSError like `opened`, and (EFBIG) for one of more than `limit` bytes."""
    with opened(path) as file:
        found = file.read(limit + 1)
    if len(found) > limit:
        raise OSError(errno.EFBIG, f"more than {limit} bytes")
    return found


def replace(path: Path, content: bytes) -> None:
    """Put `content` in the place of the file, for nobody else to read, so that a crash leaves the old one or the new one.

    Its folder must be there. Of several who may replace a file one at a time does. Raises OSError; it is as it was then.
    """
    # One name for all times: what a kill leaves is overwritten by the next writer.
    fresh = f"{os.fspath(path)}.new"
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(handle, "wb") as out:
            os.fchmod(handle, 0o600)
            out.write(content)
            out.flush()
            os.fsync(handle)
        os.replace(fresh, path)
    except OSError:
        with suppress(OSError):
            os.unlink(fresh)
        raise
    _flush_folder(os.path.dirname(path))


def move_aside(path: Path) -> str:
    """Give a file that cannot be used another name, and return it. What was moved aside earlier stays. Raises OSError."""
    suffixes = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    names = (f"{os.fspath(path)}.damaged{suffix}" for suffix in suffixes)
    aside = next(name for name in names if not os.path.lexists(name))
    os.replace(path, aside)
    return aside


def _flush_folder(folder: str) -> None:
    """See to it that a power cut does not undo the renaming either."""
    with suppress(OSError):  # not every file system can; what was to be written is in its place all the same
        handle = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
