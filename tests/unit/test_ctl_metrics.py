"""pursersctl metrics: on stdout, or in a file that is always a whole one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pursersctl import metrics
from pursersctl.errors import Failed
from pursersd.api.measures import DOWN
from rig.daemon import Home
from unit.ctl_daemon import ScriptedDaemon

TEXT = "# TYPE pursersd_up gauge\n# HELP pursersd_up Whether.\npursersd_up 1\n# EOF\n"
OK = {"metrics": {"result": {"text": TEXT, "schema": 1}}}


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


def test_on_stdout(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=OK):
        done = home.ctl("metrics")
    assert (done.returncode, done.stdout, done.stderr) == (0, TEXT, "")


def test_without_a_daemon_they_say_that(home: Home) -> None:
    done = home.ctl("metrics")
    assert (done.returncode, done.stdout) == (3, DOWN)
    assert "not running" in done.stderr
    assert list(home.folder.iterdir()) == []


def test_a_file_is_replaced_as_a_whole_and_says_when_the_daemon_has_gone(home: Home) -> None:
    file = home.folder / "pursersd.prom"
    file.write_text("old")
    with file.open() as collector, ScriptedDaemon(home.folder, answers=OK):
        done = home.ctl("metrics", "--file", str(file))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (file.read_text(), collector.read()) == (TEXT, "old")
        assert file.stat().st_mode & 0o777 == 0o644
    assert home.ctl("metrics", "--file", "pursersd.prom").returncode == 3
    assert file.read_text() == DOWN
    assert [path.name for path in home.folder.iterdir() if path.name.startswith(".")] == []


def test_a_file_that_cannot_be_written_stays_and_nothing_is_left_beside_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = home.ctl("metrics", "--file", str(home.folder / "none" / "x.prom"))
    assert (done.returncode, done.stderr) == (
        1,
        f"Cannot write in {home.folder / 'none'}: No such file or directory.\n",
    )
    folder = home.folder / "x.prom"
    folder.mkdir()
    with pytest.raises(Failed, match="Cannot write"):
        metrics._put(TEXT, str(folder))
    file = home.folder / "y.prom"
    file.write_text("old")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(Failed, match="No space left on device"):
        metrics._put(TEXT, str(file))
    assert file.read_text() == "old"
    assert sorted(path.name for path in Path(home.folder).iterdir()) == ["x.prom", "y.prom"]
