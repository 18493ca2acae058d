"""Small files of the local board, replaced as a whole and readable for nobody else."""

import os
from pathlib import Path

from pursersd.errors import LocalBoardError


def replace(file: Path, text: bytes) -> None:
    """Put `text` into the file, in a folder of our own, so that a crash leaves the old text or the new one.

    Raises LocalBoardError if it cannot be written.
    """
    fresh = file.with_name(file.name + ".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(fresh, file)
    except OSError as error:
        raise LocalBoardError(
            f"{file} cannot be written: {error.strerror or error}. Make its folder yours and writable.",
            code="local_folder",
        ) from error
