"""The daemon epoch: a counter on disk, raised at each start, that fences an older daemon (RB-OWN-001)."""

from pathlib import Path

from pursersd import files
from pursersd.errors import OwnershipError

DIGITS = 18
"""Longest count that a file can hold; a longer one was never counted by us."""


def raise_epoch(folder: Path, floor: int = 0) -> int:
    """Count this start and return the new epoch, above `floor`. Call it while holding the daemon lock.

    Raises OwnershipError for a file that is not a count, and for a folder that cannot be written.
    """
    file = folder / "epoch"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        epoch = max(_read(file) if file.exists() else 0, floor) + 1
    except OSError as error:
        raise _unusable(folder, error) from error
    restore_epoch(folder, epoch)
    return epoch


def read_epoch(folder: Path) -> int | None:
    """The count on disk; None if there is none that can be read."""
    try:
        return _read(folder / "epoch")
    except (OSError, OwnershipError):
        return None


def restore_epoch(folder: Path, epoch: int) -> None:
    """Write the count. Raises OwnershipError for a folder that cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.replace(folder / "epoch", b"%d\n" % epoch)
    except OSError as error:
        raise _unusable(folder, error) from error


def _unusable(folder: Path, error: OSError) -> OwnershipError:
    return OwnershipError(
        f"The state folder {folder} cannot be written: {error.strerror}. Make it writable for you and start again."
    )


def _read(file: Path) -> int:
    text = file.read_text(encoding="ascii", errors="replace").strip()
    if not text.isdigit() or len(text) > DIGITS:
        raise OwnershipError(f"{file} is damaged: it should hold a number. Move it away and start again.")
    return int(text)
