"""pursersctl stats: what it adds up, how it shows it, and that it needs no daemon."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len

from pursers_shim.paths import place
from pursersctl import client, printed
from pursersctl.render import plain
from pursersctl.render_stats import stats as render
from pursersctl.stats import _current
from pursersctl.tally import tally
from pursersd.rules.stats import Changes
from pursersd.rules.stats_document import Document, text
from rig.daemon import Home
from unit.ctl_daemon import ScriptedDaemon

DATA = Path(__file__).parents[1] / "data"
NOW = datetime(2026, 3, 8, 13, 30, tzinfo=UTC)
EMPTY = "Nothing has been counted in {} yet. The daemon writes it some seconds after the first call of a conversation."


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


def sample(now: datetime = NOW) -> Changes:
    found = Changes()

    def ago(**time: float) -> datetime:
        return now - timedelta(**time)

    for tool, count, size in (("board_catchup", 12, 3_000), ("ticket_list", 2, 40_000), ("board_join", 1, 1_100)):
        for _ in range(count):
            found.called(now, "demo", "ada", tool, request_bytes=160, response_bytes=size)
    found.called(ago(days=2), "demo", "ada", "board_catchup", request_bytes=160, response_bytes=500)
    found.called(
        now, "demo", "grace-who-has-a-very-long-name-indeed", "board_join", request_bytes=90, response_bytes=22
    )
    found.called(ago(days=3), "old", "linus", "board_join", request_bytes=90, response_bytes=1)
    for minutes, outcome, mode in (
        (170, "cue", "push"),
        (90, "error", "error"),
        (50, "timeout", "push"),
        (2, "cue", "poll"),
    ):
        found.returned(ago(minutes=minutes), "demo", "ada", 800, outcome=outcome, mode=mode, reason="journal")
    found.returned(
        ago(minutes=1),
        "demo",
        "grace-who-has-a-very-long-name-indeed",
        1_400_000,
        outcome="digest",
        mode="digest",
        reason="digest",
    )
    found.unavailable(
        ago(minutes=2),
        "demo",
        "ada",
        "subscription denied: principal is not authorized for resource board://demo/journal",
    )
    return found


def answer(**changes: Any) -> printed.Stats:
    rows = tally(sample().document, NOW)
    return printed.Stats(
        **{"file": "/home/me/bridge-stats.json", "seats": rows, "unwritten": True, "other_files": [], **changes}
    )


def row(name: str, document: Document, now: datetime = NOW) -> printed.SeatStats:
    (found,) = tally(document, now, seat=name)
    return found


def test_calls_are_added_up_for_today_and_the_week() -> None:
    found = row("ada", sample().document)
    assert found.today == printed.CallStats(calls=15, request_bytes=2400, response_bytes=117_100)
    assert found.week == printed.CallStats(calls=16, request_bytes=2560, response_bytes=117_600)
    assert found.tools == {"board_catchup": 12, "board_join": 1, "ticket_list": 2}


def test_returns_are_added_up_for_the_last_hour_and_day() -> None:
    found = row("ada", sample().document)
    nothing = {"digests": 0, "errors": 0}
    assert found.hour == printed.ReturnStats(returns=2, cues=1, timeouts=1, response_bytes=1600, **nothing)
    assert found.day == printed.ReturnStats(
        returns=4, cues=2, timeouts=1, response_bytes=3200, **{**nothing, "errors": 1}
    )
    assert (found.last_return_s, found.fallback_s) == (120.0, 120.0)


def test_a_day_is_24_hours_long() -> None:
    found = Changes()
    for hours in range(30):
        found.returned(NOW - timedelta(hours=hours), "b", "ann", 1, outcome="cue", mode="push", reason="x")
    assert row("ann", found.document).day.returns == 24


def test_an_hour_with_more_returns_than_are_kept_is_the_one_of_the_clock() -> None:
    found = Changes()
    for second in range(700):
        at = NOW - timedelta(seconds=700 - second)
        found.returned(at, "b", "ann", 1, outcome="cue", mode="push", reason="x")
    assert row("ann", found.document).hour.returns == 700


def test_a_seat_is_listed_whatever_is_known_of_it() -> None:
    found = Changes()
    found.unavailable(NOW, "b", "only-polled", "x")
    found.returned(NOW, "b", "only-waited", 1, outcome="cue", mode="push", reason="x")
    found.called(NOW - timedelta(days=1), "a", "only-called", "t", request_bytes=1, response_bytes=1)
    listed = [(one.board, one.seat) for one in tally(found.document, NOW)]
    assert listed == [("a", "only-called"), ("b", "only-polled"), ("b", "only-waited")]
    assert [one.seat for one in tally(found.document, NOW, board="b")] == ["only-polled", "only-waited"]
    assert tally(found.document, NOW, board="a", seat="only-polled") == []


def test_a_time_that_is_none_counts_nowhere() -> None:
    found = Changes()
    found.returned(NOW, "b", "ann", 1, outcome="cue", mode="push", reason="x")
    found.document.model_wait['["b","ann"]'].returns[0].at = "noon"
    assert (row("ann", found.document).hour.returns, row("ann", found.document).last_return_s) == (0, None)


@pytest.mark.parametrize("width", [60, 80, 120, 140])
def test_the_page(width: int) -> None:
    shown = plain(render(answer(other_files=["/elsewhere/bridge-stats.json"]), filtered=False, width=width))
    assert shown == (DATA / f"ctl_stats_{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [50, 60, 80, 100, 140])
def test_the_page_fits(width: int) -> None:
    lines = plain(render(answer(), filtered=False, width=width)).splitlines()
    assert max(cell_len(line) for line in lines) <= width


def test_a_page_with_nothing_on_it_says_why() -> None:
    assert (
        plain(render(answer(seats=[]), filtered=False, width=200)) == EMPTY.format("/home/me/bridge-stats.json") + "\n"
    )
    assert "nothing of such a seat" in plain(render(answer(seats=[]), filtered=True, width=200))
    old = [one for one in answer().seats if one.seat == "linus"]
    assert "in the last 24 hours" in plain(render(answer(seats=old), filtered=False, width=200))


def test_a_name_with_escapes_is_harmless() -> None:
    found = Changes()
    found.called(NOW, "b\x1b[31m", "a\nb", "t\x1b", request_bytes=1, response_bytes=1)
    found.unavailable(NOW, "b\x1b", "a\nb", "x\x1by")
    shown = plain(render(answer(seats=tally(found.document, NOW)), filtered=False))
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 5


# --- as a program -----------------------------------------------------------------------------------------------------


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def seats(home: Home, *arguments: str) -> dict[str, Any]:
    done = home.ctl("stats", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found = msgspec.json.decode(done.stdout, type=printed.Stats)
    assert found.schema == 1
    return {f"{row.board}/{row.seat}": row for row in found.seats}


def daemon_knows(path: Path, changes: Changes, *, writes: int = 1) -> dict[str, Any]:
    known = {
        "path": str(path),
        "writes": writes,
        "unwritten": msgspec.to_builtins(changes.document),
        "pushed": changes.pushed,
        "trouble": None,
        "trouble_s": None,
    }
    return {"stats": {"result": {"schema": 1, "files": [known]}}}


def test_without_file_and_daemon_it_says_so_and_creates_nothing(home: Home) -> None:
    done = home.ctl("stats")
    assert (done.returncode, done.stderr) == (0, "")
    assert " ".join(done.stdout.split()) == EMPTY.format(home.folder / "bridge-stats.json")
    assert seats(home) == {}
    assert files(home.folder) == []
    assert home.daemons() == []


def test_the_file_is_enough(home: Home) -> None:
    path = home.folder / "bridge-stats.json"
    path.write_bytes(text(sample(datetime.now(UTC)).document))
    before = files(home.folder)
    assert sorted(seats(home)) == ["demo/ada", "demo/grace-who-has-a-very-long-name-indeed", "old/linus"]
    assert sorted(seats(home, "--board", "demo", "--seat", "ada")) == ["demo/ada"]
    assert "ada" in home.ctl("stats").stdout
    assert files(home.folder) == before
    other = home.folder / "other.json"
    path.rename(other)
    assert sorted(seats(home, "--file", "other.json", "--board", "old")) == ["old/linus"]
    assert seats(home) == {}


@pytest.mark.parametrize(("content", "says"), [(b"half a fi", "is damaged"), (None, "Is a directory")])
def test_a_file_that_cannot_be_read_fails(home: Home, content: bytes | None, says: str) -> None:
    path = home.folder / "bridge-stats.json"
    path.mkdir() if content is None else path.write_bytes(content)
    done = home.ctl("stats", "--json")
    assert done.returncode == 1
    assert says in done.stderr
    assert json.loads(done.stdout)["error"]["code"] == "failed"


def test_a_daemon_adds_what_it_has_not_written_yet(home: Home) -> None:
    path = home.folder / "bridge-stats.json"
    now = datetime.now(UTC)
    path.write_bytes(text(sample(now).document))
    more = Changes()
    more.called(now, "demo", "ada", "board_catchup", request_bytes=1, response_bytes=1)
    more.pushes(now, "demo", "ada")
    with ScriptedDaemon(home.folder, answers=daemon_knows(path, more)):
        found = seats(home)["demo/ada"]
        elsewhere = home.ctl("stats", "--file", "none.json")
    assert (found.tools["board_catchup"], found.fallback) == (13, None)
    assert f"The daemon counts in {path}, too." in elsewhere.stdout.replace("\n", " ")


def test_what_the_daemon_wrote_while_we_read_is_not_counted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between our two questions the daemon writes what it had said was unwritten; then it counts once more."""
    path = tmp_path / "bridge-stats.json"
    first, second = Changes(), Changes()
    for changes in (first, second):
        changes.called(datetime.now(UTC), "b", "ann", "t", request_bytes=1, response_bytes=1)
    path.write_bytes(text(first.document))
    told = [daemon_knows(path, first), *[daemon_knows(path, second, writes=2)] * 2]
    asked: list[str] = []

    def ask(place: object, verb: str) -> bytes:
        asked.append(verb)
        return json.dumps(told.pop(0)[verb]["result"]).encode()

    monkeypatch.setattr(client, "ask", ask)
    document, known, trouble = _current(place({"PURSERSD_HOME": str(tmp_path)}), str(path))
    assert row("ann", document, datetime.now(UTC)).tools == {"t": 2}
    assert ([file.path for file in known], trouble, asked) == ([str(path)], None, ["stats"] * 3)


def test_a_daemon_that_does_not_know_the_question_is_named(home: Home) -> None:
    refusal = {"error": {"code": "unknown_verb", "text": "This pursersd does not know 'stats'."}}
    with ScriptedDaemon(home.folder, answers={"stats": refusal}):
        done = home.ctl("stats")
    assert done.returncode == 0
    assert "does not know 'stats'" in done.stderr
    assert os.listdir(home.folder / "run")
