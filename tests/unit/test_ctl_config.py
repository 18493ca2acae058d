"""`pursersctl config show` and `reload`: with a daemon that was told what to say, with none, and as people see it."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pursersctl import config
from pursersctl.render import plain
from pursersd import api
from rig.daemon import Home
from unit.ctl_daemon import ScriptedDaemon

DATA = Path(__file__).parents[1] / "data"
FILE = "/home/me/.config/pursersd/config.toml"


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


def row(key: str, value: float | str, origin: str = "default", **more: object) -> api.ConfigRow:
    fields = {"key": key, "value": value, "default": value, "origin": origin, "name": None, **more}
    return msgspec.convert(fields, api.ConfigRow)


SHOWN = api.Config(
    file=FILE,
    exists=True,
    rows=[
        row("daemon.idle_exit_s", 3600.0, "flag", name="--idle-exit"),
        row("log.level", "debug", "variable", name="PURSERSD_LOG_LEVEL"),
        row("log.max_bytes", 2097152, "default", pending=4194304),
        row("log.kept", 5, "file"),
    ],
    problems=[],
    notes=["PURSERSD_LOG_KEPT must be an integer from 1 to 100; it is ignored"],
)


@pytest.mark.parametrize("width", [80, 120])
def test_the_page_looks_as_agreed(width: int) -> None:
    text = plain(config.rendered(SHOWN, origin=True, is_running=True, width=width))
    assert text == (DATA / f"ctl_config_{width}.txt").read_text(encoding="utf-8")


def test_without_origin_there_is_one_column_less_and_mistakes_come_last() -> None:
    answer = api.Config(file=FILE, exists=False, rows=SHOWN.rows[:1], problems=[f"{FILE}, line 2: wrong"], notes=[])
    lines = plain(config.rendered(answer, origin=False, is_running=False)).splitlines()
    assert lines[0] == f"{FILE}  (does not exist)"
    assert "this is what the next one would go by" in lines[1]
    assert lines[3].split() == ["KEY", "VALUE"]
    assert lines[-1].endswith("line 2: wrong")


def test_what_a_reload_does_not_bring_is_said_to_need_a_restart() -> None:
    waits = row("daemon.descriptors", 8192, pending=1000, needs_restart=True)
    answer = msgspec.structs.replace(SHOWN, rows=[*SHOWN.rows, waits])
    assert plain(config.rendered(answer, origin=True, is_running=True)).endswith(": pursersctl restart\n")


def test_without_a_daemon_the_file_is_read_here(home: Home) -> None:
    (home.folder / "config.toml").write_text("[log]\nkept = 5\nlevle = 1\n")
    done = home.ctl("config", "show", "--json", PURSERSD_DRAIN_S="3")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    origins = {row["key"]: row["origin"] for row in found["rows"] if row["origin"] != "default"}
    assert origins == {"log.kept": "file", "daemon.drain_s": "variable"}
    assert found["file"] == str(home.folder / "config.toml")
    assert "line 3: there is no key 'levle'" in found["problems"][0]
    assert home.daemons() == []
    assert home.ctl("reload").returncode == 3


def test_a_daemon_is_asked_and_its_refusal_is_told(home: Home) -> None:
    changes = [
        {"key": "log.kept", "before": 3, "after": 5, "needs_restart": False},
        {"key": "daemon.descriptors", "before": 8192, "after": 512, "needs_restart": True},
    ]
    reloaded = {"file": FILE, "exists": True, "changes": changes, "schema": 1}
    refusal = {"error": {"code": "configuration", "text": f"{FILE}, line 1: no\nNothing was changed."}}
    with ScriptedDaemon(home.folder, answers={"reload": {"result": reloaded}}):
        done = home.ctl("reload")
        assert done.stdout.splitlines() == [
            f"{FILE} was read again:",
            "  log.kept 3 → 5",
            "  daemon.descriptors 8192 → 512  after: pursersctl restart",
        ]
    with ScriptedDaemon(home.folder, answers={"reload": refusal}):
        done = home.ctl("reload", "--json")
        assert done.returncode == 1
        assert json.loads(done.stdout)["error"]["code"] == "configuration"
        assert "Nothing was changed" in done.stderr
