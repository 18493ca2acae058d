"""What is wanted of the local board, on disk: it holds for every daemon that comes."""

from pathlib import Path

import msgspec

from pursersd import files
from pursersd.errors import LocalBoardError
from pursersd.local.files import replace

SCHEMA = 1
FILE_LIMIT = 64 * 1024


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The local board as its user wants it."""

    board: str
    port: int
    wanted: bool
    """Whether it is to be served."""
    doors: list[str] = []
    """Folders in which its doors were stored."""
    schema: int = SCHEMA


def record_file(folder: Path) -> Path:
    """Where the record lies in the folder of the local board."""
    return folder / "local.json"


def load(file: Path) -> Record | None:
    """The record; None if there is none. Raises LocalBoardError for one that cannot be used."""
    try:
        found = msgspec.json.decode(files.read(file, FILE_LIMIT), type=Record)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise _damaged(file, str(why)) from None
    if found.schema != SCHEMA:
        raise _damaged(file, f"schema {found.schema}, not {SCHEMA}")
    return found


def save(file: Path, record: Record) -> None:
    """Replace the record as a whole. Raises LocalBoardError if it cannot be written."""
    replace(file, msgspec.json.encode(record) + b"\n")


def _damaged(file: Path, why: str) -> LocalBoardError:
    return LocalBoardError(
        f"{file} cannot be used: {why}. Repair it, or begin anew with: pursersctl local down --reset",
        code="local_damaged",
    )
