"""The daemon epoch: a counter on disk, raised at each start, that fences an older daemon (RB-OWN-001)."""

import os
from pathlib import Path

from pursersd.errors import OwnershipError

DIGITS = 18
"""Longest count that a file can hold; a longer one was never counted by us."""


def raise_epoch(folder: Path) -> int:
    """Count this start and return the new epoch. Call it while holding the daemon lock.

    Written to a temporary file, flushed and renamed, so that a crash leaves the old count or the new one. Raises
    OwnershipError for a file that is not a count, and for a folder that cannot be written.
    """
    file = folder / "epoch"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        epoch = (_read(file) if file.exists() else 0) + 1
        fresh = folder / "epoch.new"
        with open(fresh, "w", encoding="ascii") as out:
            out.write(f"{epoch}\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(fresh, file)
    except OSError as error:
        raise OwnershipError(
            f"The state folder {folder} cannot be written: {error.strerror}. Make it writable for you and start again."
        ) from error
    return epoch


def _read(file: Path) -> int:
    text = file.read_text(encoding="ascii", errors="replace").strip()
    if not text.isdigit() or len(text) > DIGITS:
        raise OwnershipError(f"{file} is damaged: it should hold a number. Move it away and start again.")
    return int(text)
