"""Small files: whole or as they were, and never waited for."""

import os
import stat
from pathlib import Path

import pytest

from pursersd import files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def test_what_is_replaced_is_read_again_and_nobody_elses(file: Path) -> None:
    file.write_bytes(b"old")
    file.chmod(0o644)
    files.replace(file, b"new")
    assert files.read(file, 3) == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(file.parent) == ["file"]


def test_half_a_file_of_a_killed_writer_is_in_nobodys_way(file: Path) -> None:
    Path(f"{file}.new").write_bytes(b"much more than is written now")
    files.replace(file, b"new")
    assert os.listdir(file.parent) == ["file"]
    assert file.read_bytes() == b"new"


def test_a_file_that_cannot_be_replaced_is_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.replace(file, b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(file.parent) == ["file"]


def test_a_folder_that_cannot_be_flushed_undoes_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = os.fsync

    def of_files_only(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(22, "Invalid argument")
        flush(handle)

    monkeypatch.setattr(os, "fsync", of_files_only)
    files.replace(file, b"new")
    assert file.read_bytes() == b"new"


def test_the_link_of_somebody_else_is_not_followed(file: Path) -> None:
    other = file.parent / "other"
    other.write_bytes(b"other")
    Path(f"{file}.new").symlink_to(other)
    with pytest.raises(OSError, match="symbolic links"):
        files.replace(file, b"new")
    assert other.read_bytes() == b"other"


def test_a_pipe_is_not_waited_for(file: Path) -> None:
    os.mkfifo(file)
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(OSError, match="not a regular file"):
        files.read(file, 100)
    assert len(os.listdir("/dev/fd")) == before


def test_more_than_the_limit_is_not_read(file: Path) -> None:
    file.write_bytes(b"1234")
    with pytest.raises(OSError, match="more than 3 bytes"):
        files.read(file, 3)
    with pytest.raises(FileNotFoundError):
        files.read(file.parent / "none", 3)


def test_what_was_moved_aside_before_stays(file: Path) -> None:
    names = []
    for text in ("first", "second", "third"):
        file.write_text(text)
        names.append(Path(files.move_aside(file)).name)
    assert names == ["file.damaged", "file.damaged-2", "file.damaged-3"]
    assert (file.parent / "file.damaged").read_text() == "first"
    assert not file.exists()
