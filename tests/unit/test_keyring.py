"""state/keyring: the file of the keys that seal questions, shared with the bridge."""

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pursers_client import load_or_create_request_state_keys

from pursersd.errors import KeyringError
from pursersd.rules.bridge_files import keys_path
from pursersd.state import keyring
from pursersd.state.keyring import Keyring

OLD, NEW = b"o" * 32, b"n" * 43


def written(path: Path, *lines: bytes, mode: int = 0o600) -> Keyring:
    path.write_bytes(b"\n".join(lines))
    path.chmod(mode)
    return Keyring(str(path))


def test_it_is_made_when_it_is_first_needed(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "request-state.keys"
    umask = os.umask(0)
    try:
        (key,) = Keyring(str(path)).load()
    finally:
        os.umask(umask)
    assert len(key) == 43
    assert path.read_bytes() == key + b"\n"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert sorted(file.name for file in path.parent.iterdir()) == ["request-state.keys", "request-state.keys.lock"]
    assert Keyring(str(path)).load() == [key]


def test_the_bridge_reads_what_we_made_and_we_what_it_made(tmp_path: Path) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    assert Keyring(ours).load() == load_or_create_request_state_keys(ours)
    assert load_or_create_request_state_keys(theirs) == Keyring(theirs).load()


def test_all_who_need_it_at_once_get_the_same_keys(tmp_path: Path) -> None:
    path = str(tmp_path / "keys")
    with ThreadPoolExecutor(8) as threads:
        loads = [lambda: Keyring(path).load(), lambda: load_or_create_request_state_keys(path)] * 20
        found = {tuple(job.result()) for job in [threads.submit(load) for load in loads]}
    assert len(found) == 1


def test_the_first_one_seals_each_counts_once_and_a_new_file_counts_at_once(tmp_path: Path) -> None:
    keys = written(tmp_path / "keys", b"", OLD + b"\r", b"  " + NEW + b" ", b"", OLD)
    assert keys.load() == [OLD, NEW]
    written(tmp_path / "keys", NEW, OLD)
    assert keys.load() == [NEW, OLD]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o400, 0o700])
def test_others_must_not_read_it(tmp_path: Path, mode: int) -> None:
    with pytest.raises(KeyringError, match=r"permissions must be 0600.*chmod 600"):
        written(tmp_path / "keys", OLD, mode=mode).load()


@pytest.mark.parametrize("lines", [[b"short"], [OLD, b"x" * 31]])
def test_a_short_key_is_none(tmp_path: Path, lines: list[bytes]) -> None:
    with pytest.raises(KeyringError, match="every request-state key must contain at least 32 bytes"):
        written(tmp_path / "keys", *lines).load()


def test_an_empty_file_has_no_key_and_is_left_alone(tmp_path: Path) -> None:
    keys = written(tmp_path / "keys", b"", b"  ")
    with pytest.raises(KeyringError, match="at least one key"):
        keys.load()
    assert (tmp_path / "keys").read_bytes() == b"\n  "


def test_only_a_file_of_its_own_counts(tmp_path: Path) -> None:
    written(tmp_path / "real", OLD)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    (tmp_path / "folder").mkdir(mode=0o600)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "nowhere", "folder", "pipe"):
        with pytest.raises(KeyringError, match=f"must be a regular file: see .*{name}"):
            Keyring(str(tmp_path / name)).load()
    assert not (tmp_path / "missing").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(KeyringError, match=r"cannot be .*PURSERS_REQUEST_STATE_KEY_FILE|not readable"):
        Keyring(str(tmp_path / "file" / "keys")).load()


def test_who_makes_it_may_take_a_while_but_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "LOCK_TIMEOUT", 0.05)
    with (tmp_path / "keys.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(KeyringError, match="another program has held"):
            Keyring(str(tmp_path / "keys")).load()
    assert Keyring(str(tmp_path / "keys")).load()


def test_where_it_is() -> None:
    assert keys_path({}, "/state") == "/state/request-state.keys"
    assert keys_path({"PURSERS_REQUEST_STATE_KEY_FILE": " "}, "/state") == "/state/request-state.keys"
    assert keys_path({"PURSERS_REQUEST_STATE_KEY_FILE": "k", "HOME": "/h"}, "/state", "/cwd") == "/cwd/k"
    assert keys_path({"PURSERS_REQUEST_STATE_KEY_FILE": "~/k", "HOME": "/h"}, "/state") == "/h/k"
