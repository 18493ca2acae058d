"""Where the daemon is found, and the folders that are refused."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pursers_shim.dial import Dialer, connect
from pursers_shim.paths import SOCKET_LIMIT, PathError, check_folder, place
from pursersctl import client
from pursersctl.errors import Refused
from pursersd import __main__ as pursersd
from pursersd.ownership import take
from scripted_daemon import short_home


@pytest.fixture
def root() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


def test_the_place_depends_on_nothing_but_the_user() -> None:
    bare = place({})
    assert bare.folder == place({"HOME": "/x", "XDG_RUNTIME_DIR": "/y", "TMPDIR": "/z"}).folder
    assert bare.folder == f"/tmp/pursersd-{os.getuid()}"
    assert bare.home is None


def test_a_private_home_moves_everything_together(root: Path) -> None:
    mine = place({"PURSERSD_HOME": f"{root}/a/../b/"})
    assert mine.home == f"{root}/b"
    for path in (mine.socket, mine.lock, mine.start_lock, mine.start_log, mine.starts, mine.stopped):
        assert os.path.dirname(path) == mine.folder == f"{root}/b/run"


def test_a_relative_home_is_refused() -> None:
    with pytest.raises(PathError, match="absolute path"):
        place({"PURSERSD_HOME": "run/here"})


@pytest.mark.parametrize("letter", ["a", "é", "界"])
def test_the_limit_counts_bytes(letter: str) -> None:
    size = len(letter.encode())
    fitting = (SOCKET_LIMIT - len("//run/pursersd.sock")) // size
    assert len(os.fsencode(place({"PURSERSD_HOME": "/" + letter * fitting}).socket)) <= SOCKET_LIMIT
    with pytest.raises(PathError, match=f"limit is {SOCKET_LIMIT}") as wrong:
        place({"PURSERSD_HOME": "/" + letter * (fitting + 1)})
    assert "shorter" in str(wrong.value)


@pytest.mark.parametrize("letter", ["a", "界"])
def test_at_every_length_all_programs_meet_or_refuse_in_the_same_words(
    root: Path, letter: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["pursersd", "--foreground"])
    met: list[int] = []
    for length in range(60, 131):
        room = length - len(os.fsencode(root)) - 1
        size = len(letter.encode())
        home = f"{root}/{letter * (room // size)}{'x' * (room % size)}"
        assert len(os.fsencode(home)) == length
        monkeypatch.setenv("PURSERSD_HOME", home)
        words = Dialer(os.environ).trouble().text if length > 85 else ""
        if words:
            with pytest.raises(Refused, match=re.escape(words)):
                client.where(os.environ)
            before = os.umask(0o022)
            assert pursersd.main() == 1
            os.umask(before)
            assert capsys.readouterr().err == f"pursersd: {words}\n"
            assert f"{home}/run/pursersd.sock has {length + 18} bytes; the limit is {SOCKET_LIMIT}" in words
        else:
            where = client.where(os.environ)
            ours = take(where)
            connect(where).close()
            ours.release()
            met.append(length)
    assert met == list(range(60, 86))


def test_a_missing_folder_is_made_private_whatever_the_umask(root: Path) -> None:
    folder = str(root / "deep" / "run")
    assert check_folder(folder) is False
    before = os.umask(0)
    try:
        assert check_folder(folder, create=True) is True
    finally:
        os.umask(before)
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert check_folder(folder) is True
    assert check_folder(folder, create=True) is True


def test_a_symbolic_link_is_refused(root: Path) -> None:
    (root / "real").mkdir(mode=0o700)
    (root / "run").symlink_to(root / "real")
    for create in (False, True):
        with pytest.raises(PathError, match="symbolic link"):
            check_folder(str(root / "run"), create=create)


def test_a_file_is_refused(root: Path) -> None:
    (root / "run").touch()
    for create in (False, True):
        with pytest.raises(PathError, match="not a folder"):
            check_folder(str(root / "run"), create=create)


@pytest.mark.parametrize("mode", [0o770, 0o705, 0o720, 0o777])
def test_a_folder_open_to_others_is_refused_with_the_cure(root: Path, mode: int) -> None:
    folder = root / "run"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(PathError, match=f"chmod 700 {folder}"):
        check_folder(str(folder))


def test_a_foreign_folder_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "run").mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: os.stat(root).st_uid + 1)
    with pytest.raises(PathError, match="belongs to user"):
        check_folder(str(root / "run"))


def test_a_home_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(PathError, match="is not UTF-8"):
        place({"PURSERSD_HOME": os.fsdecode(b"/tmp/caf\xe9")})
