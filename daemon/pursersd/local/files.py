"""Small files of the local board, replaced as a whole and readable for nobody else."""

from pathlib import Path

from pursersd import files
from pursersd.errors import LocalBoardError


def replace(file: Path, text: bytes) -> None:
    """Put `text` into the file, in a folder of our own (see files.replace). Raises LocalBoardError if it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.replace(file, text)
    except OSError as error:
        raise LocalBoardError(
            f"{file} cannot be written: {error.strerror or error}. Make its folder yours and writable.",
            code="local_folder",
        ) from error
