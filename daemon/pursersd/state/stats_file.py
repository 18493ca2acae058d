"""Write what was counted into a bridge-stats.json, which other programs may write as well (bridge.md §7, §7.2).

Everything here blocks: call it in a thread.
"""

import errno
import logging
import os
from datetime import datetime

from pursersd import files
from pursersd.rules.stats import Changes, add, trim
from pursersd.rules.stats_document import SCHEMA, Damaged, Document, read, text
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

    A file that cannot be understood is moved aside. Raises Unwritten, also for one of a newer version, and then the file is
    as it was.
    """
    try:
        path = os.path.realpath(path)  # of a link the file behind it is replaced, as the bridge does
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with held(path + ".lock", LOCK_TIMEOUT):
            document = _read(path)
            add(document, changes)
            trim(document, now)
            files.replace(path, text(document))
    except OSError as error:
        raise Unwritten(error.strerror or str(error)) from error
    except ValueError as error:  # a path that no system takes
        raise Unwritten(str(error)) from error


def _read(path: str) -> Document:
    """What the file holds; nothing if there is none, or none that can be understood: that one is moved aside."""
    try:
        document = read(files.read(path, READ_LIMIT))
    except FileNotFoundError:
        return Document()
    except Damaged as error:
        why = str(error)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        why = str(error.strerror)
    else:
        if document.schema_version > SCHEMA:  # what it has and we do not know would be gone
            raise Unwritten(
                f"a newer version wrote it (schema {document.schema_version}): update pursersd, or move it away"
            )
        return document
    aside = files.move_aside(path)
    log.warning("%s is damaged (%s): a new one is begun, the old one lies in %s", path, why, aside)
    return Document()
