"""Write what was counted into a bridge-stats.json, which other programs may write as well (bridge.md §7, §7.2).

Everything here blocks: call it in a thread.
"""

import errno
import logging
import os
import stat
from contextlib import suppress
from datetime import datetime

from pursersd.rules.stats import Changes, add, trim
from pursersd.rules.stats_document import Damaged, Document, read, text
from pursersd.state.lock import held

log = logging.getLogger(__name__)

LOCK_TIMEOUT = 2.0
"""Seconds that another writer may keep us waiting; the next try comes soon."""

READ_LIMIT = 16 * 1024 * 1024
"""Bytes of a file that is read; a larger one is none of ours and none of a bridge's."""


class Unwritten(Exception):
    """Nothing was written; the text says why, for people."""


def write(path: str, changes: Changes, now: datetime) -> None:
    """Add `changes` to the file at `path`, under its lock; it is whole at any time. Makes the folder if there is none.

    A file that cannot be understood is moved aside. Raises Unwritten, and then the file is as it was.
    """
    try:
        path = os.path.realpath(path)  # of a link the file behind it is replaced, as the bridge does
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with held(path + ".lock", LOCK_TIMEOUT):
            document = _read(path)
            add(document, changes)
            trim(document, now)
            _replace(path, text(document))
    except OSError as error:
        raise Unwritten(error.strerror or str(error)) from error
    except ValueError as error:  # a path that no system takes
        raise Unwritten(str(error)) from error


def _read(path: str) -> Document:
    """What the file holds; nothing if there is none, or none that can be understood: that one is moved aside."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Document()
    with open(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        found = stream.read(READ_LIMIT + 1)
    try:
        if len(found) > READ_LIMIT:
            raise Damaged(f"it has more than {READ_LIMIT} bytes")
        return read(found)
    except Damaged as error:
        aside = path + ".damaged"
        os.replace(path, aside)
        log.warning("%s is damaged (%s): a new one is begun, the old one lies in %s", path, error, aside)
        return Document()


def _replace(path: str, content: bytes) -> None:
    """Put `content` in the place of the file, so that a crash leaves the old one or the new one."""
    # One name for all times: what a kill leaves is overwritten by the next writer. The lock is ours meanwhile.
    fresh = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.new")
    try:
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(file, "wb") as out:
            os.fchmod(file, 0o600)
            out.write(content)
            out.flush()
            os.fsync(file)
        os.replace(fresh, path)
    except OSError:
        with suppress(OSError):
            os.unlink(fresh)
        raise
