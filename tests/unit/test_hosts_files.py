"""A configuration file is replaced as a whole, with its permissions and owner, or stays as it was."""

import os
import stat
from pathlib import Path

import pytest

from pursersctl import hosts_files
from pursersctl.hosts_files import Unusable


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o640])
def test_permissions_are_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "f"
    path.write_text("a")
    path.chmod(mode)
    hosts_files.replace(hosts_files.read(path), b"b", mode=0o600)
    assert path.read_text() == "b"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert names(tmp_path) == ["f"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can have files of others")
def test_the_owner_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("a")
    os.chown(path, 4321, 1234)
    hosts_files.replace(hosts_files.read(path), b"b", mode=0o600)
    assert (path.stat().st_uid, path.stat().st_gid) == (4321, 1234)


def test_a_new_file_has_the_given_permissions_and_its_folders_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "f"
    made = hosts_files.replace(hosts_files.read(path), b"x", mode=0o600)
    assert made == [tmp_path / "a" / "b", tmp_path / "a"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    hosts_files.remove(hosts_files.read(path), made)
    assert names(tmp_path) == []


def test_a_folder_that_is_used_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "f"
    made = hosts_files.replace(hosts_files.read(path), b"x", mode=0o600)
    (tmp_path / "a" / "other").write_text("")
    hosts_files.remove(hosts_files.read(path), made)
    assert names(tmp_path / "a") == ["other"]


def test_links_are_followed_to_the_last_one(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "f"
    real.parent.mkdir()
    real.write_text("a")
    (tmp_path / "middle").symlink_to("dotfiles/f")
    (tmp_path / "link").symlink_to(tmp_path / "middle")
    file = hosts_files.read(tmp_path / "link")
    hosts_files.replace(file, b"b", mode=0o600)
    assert real.read_text() == "b"
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "dotfiles") == ["f"]


def test_a_link_to_nothing_gets_its_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "dotfiles" / "f")
    hosts_files.replace(hosts_files.read(tmp_path / "link"), b"b", mode=0o600)
    assert (tmp_path / "dotfiles" / "f").read_text() == "b"


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("a")
    path.chmod(0o444)
    with pytest.raises(Unusable, match="read-only") as caught:
        hosts_files.replace(hosts_files.read(path), b"b", mode=0o600)
    assert caught.value.code == "read_only"
    assert "chmod u+w" in caught.value.action
    assert path.read_text() == "a"


def test_a_file_that_changed_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("a")
    file = hosts_files.read(path)
    path.write_text("of somebody else")
    with pytest.raises(Unusable, match="changed meanwhile"):
        hosts_files.replace(file, b"b", mode=0o600)
    assert path.read_text() == "of somebody else"
    assert names(tmp_path) == ["f"]


def test_a_file_that_came_since_is_left_alone(tmp_path: Path) -> None:
    file = hosts_files.read(tmp_path / "f")
    (tmp_path / "f").write_text("of somebody else")
    with pytest.raises(Unusable, match="changed meanwhile"):
        hosts_files.replace(file, b"b", mode=0o600)
    assert (tmp_path / "f").read_text() == "of somebody else"


@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod"])
def test_a_failure_on_the_way_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "f"
    path.write_text("a")
    file = hosts_files.read(path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(Unusable, match="No space left on device"):
        hosts_files.replace(file, b"b", mode=0o600)
    assert path.read_text() == "a"
    assert names(tmp_path) == ["f"]


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="Is a directory"):
        hosts_files.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unusable, match="no regular file"):
        hosts_files.read(tmp_path / "pipe")


def test_a_file_that_is_too_large_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts_files, "SIZE_LIMIT", 3)
    (tmp_path / "f").write_text("four")
    with pytest.raises(Unusable, match="too large"):
        hosts_files.read(tmp_path / "f")
