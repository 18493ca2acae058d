"""state/epoch: every start counts, and a file that is no count is left for a person to look at."""

import os
from pathlib import Path

import pytest

from pursersd.errors import OwnershipError
from pursersd.state.epoch import raise_epoch


def test_it_counts_starts(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "yet"
    assert [raise_epoch(folder) for _ in range(3)] == [1, 2, 3]
    assert (folder / "epoch").read_text() == "3\n"
    assert os.listdir(folder) == ["epoch"]
    assert folder.stat().st_mode & 0o777 == 0o700


def test_what_a_crash_left_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "epoch").write_text("7\n")
    (tmp_path / "epoch.new").write_text("8 and more than fits")
    assert raise_epoch(tmp_path) == 8
    assert os.listdir(tmp_path) == ["epoch"]


@pytest.mark.parametrize(
    "content", [b"", b"seven\n", b"-1", b"1.5", b"1 2", b"\xff\xff", "²".encode(), b"\x00", b"9" * 5000]
)
def test_a_damaged_file_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "epoch"
    file.write_bytes(content)
    with pytest.raises(OwnershipError, match=r"damaged.*Move it away") as caught:
        raise_epoch(tmp_path)
    assert str(file) in str(caught.value)
    assert file.read_bytes() == content


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(OwnershipError, match="cannot be written: File exists"):
        raise_epoch(tmp_path / "state")
    with pytest.raises(OwnershipError, match="cannot be written: Not a directory"):
        raise_epoch(tmp_path / "state" / "below")


def test_a_folder_in_the_files_place(tmp_path: Path) -> None:
    (tmp_path / "epoch").mkdir()
    with pytest.raises(OwnershipError, match="cannot be written"):
        raise_epoch(tmp_path)


@pytest.mark.skipif(os.getuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OwnershipError, match=r"cannot be written: Permission denied.*Make it writable"):
            raise_epoch(tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_a_write_that_fails_keeps_the_old_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that is read-only or full, also for root."""
    raise_epoch(tmp_path)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OwnershipError, match="cannot be written: No space left"):
        raise_epoch(tmp_path)
    monkeypatch.undo()
    assert raise_epoch(tmp_path) == 2
