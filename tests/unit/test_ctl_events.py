"""pursersctl events: lines for people, JSON for programs, over a restart of the daemon, and when it is cut off."""

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pursersctl.events import GONE
from pursersctl.render import plain
from pursersctl.render_events import event
from pursersd import api
from pursersd.api import events
from rig.daemon import Home
from rig.wait import until
from unit.ctl_daemon import ScriptedDaemon
from unit.ctl_following import running
from unit.ctl_samples import SEATS, STATUS
from unit.ctl_terminal import PATIENCE

DATA = Path(__file__).parents[1] / "data"
AT = "2026-05-04T12:03:09.120+00:00"
WHO: dict[str, Any] = {"at": AT, "conversation": "c-5f0c8e21a9d4", "seat": "bench-w1", "board": "bench"}
SNAPSHOT = events.Snapshot(
    at=AT, version="0.1.0", epoch=7, seats=SEATS[:2], centrals=STATUS.centrals, warnings=STATUS.warnings
)
LEASE = events.LeaseChanged(**WHO, ticket="TK-6af3b5c804f6", kind="work", change="kept", left_s=840.0)
WOKE = events.Woke(**WHO, tool="a2a_wait", events=1, reason="ticket_submitted", waited_s=192.4, wake_s=0.0221)
ALL: list[events.Event] = [
    SNAPSHOT,
    events.Came(at=AT, row=SEATS[1]),
    events.StateChanged(**WHO, state="idle", before="waiting", before_s=192.4, tool="a2a_wait"),
    events.StateChanged(**{**WHO, "seat": None}, state="waiting", before="idle", before_s=0.4, tool=None),
    WOKE,
    msgspec.structs.replace(WOKE, wake_s=None, reason=None, events=3),
    LEASE,
    msgspec.structs.replace(LEASE, change="over", left_s=None, kind="review"),
    events.WarningChanged(at=AT, change="begun", warning=STATUS.warnings[0]),
    events.WarningChanged(at=AT, change="over", warning=STATUS.warnings[0]),
    events.CentralChanged(
        at=AT,
        url="http://127.0.0.1:1",
        credential="k-1",
        state="unreachable",
        before="ready",
        detail="connection refused",
    ),
    events.CentralChanged(
        at=AT, url="http://127.0.0.1:1", credential="k-1", state="closed", before="ready", detail=None
    ),
    events.Went(**WHO, host="zed", reason="the host ended \x1b[2J"),
]


def told(*happened: events.Event, more: str = "") -> str:
    """What a daemon answers to the request."""
    replies = [json.dumps({"id": 1, "result": msgspec.to_builtins(one)}) for one in happened]
    return "\n".join([*replies, *([more] if more else [])])


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


def test_lines_for_people() -> None:
    shown = plain([line for one in ALL for line in event(one, UTC)])
    assert shown == (DATA / "ctl_events.txt").read_text(encoding="utf-8")


def test_first_a_snapshot_then_what_happens_and_ctrl_c_leaves(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers={"events": told(SNAPSHOT, WOKE)}), running(home) as following:
        shown = plain([*event(SNAPSHOT, UTC), *event(WOKE, UTC)]).splitlines()
        assert following.says(len(shown)) == shown
        following.process.send_signal(signal.SIGINT)
        assert (following.ends(), following.err) == (0, b"")


def test_json_is_what_the_daemon_said_a_line_each(home: Home) -> None:
    unknown = {"event": "since_next_year", "at": AT, "field": [1]}
    answer = told(*ALL, more=json.dumps({"id": 1, "result": unknown}))
    with ScriptedDaemon(home.folder, answers={"events": answer}):
        with running(home, "--json") as following:
            lines = following.says(len(ALL) + 1)
        with running(home, "--kind", "lease", "--kind", "came", "--json") as following:
            some = following.says(3)
        with running(home, "--kind", "went") as following:
            assert following.says(1) == plain(event(ALL[-1], UTC)).splitlines()
    assert [json.loads(line) for line in lines] == [*msgspec.to_builtins(ALL), unknown]
    assert [msgspec.json.decode(line, type=events.Event) for line in lines[:-1]] == ALL
    assert [json.loads(line)["event"] for line in some] == ["came", "lease", "lease"]


def test_an_event_that_only_a_newer_one_knows_is_no_accident(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers={"events": told(SNAPSHOT, more='{"id":1,"result":{"event":"new"}}')}):
        with running(home) as following:
            assert following.says(5)[-1] == "(an event 'new' of a newer pursersd; see it with --json)"


def test_it_goes_on_with_the_next_daemon_and_starts_none(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers={"events": told(SNAPSHOT)}), running(home, "--json") as following:
        following.says(1)
        other = msgspec.structs.replace(SNAPSHOT, epoch=8)
        os.kill(home.daemon_pid(), signal.SIGKILL)
        until(lambda: following.read() and GONE.encode() in following.err, PATIENCE, "it says that the daemon has gone")
        assert home.daemons() == []
        with ScriptedDaemon(home.folder, answers={"events": told(other)}):
            lines = following.says(2)
    assert [json.loads(line)["epoch"] for line in lines] == [7, 8]


def test_one_that_is_cut_off_says_why(home: Home) -> None:
    cut = json.dumps({"id": 1, "error": {"code": "too_slow", "text": "pursersd cut this program off."}})
    with ScriptedDaemon(home.folder, answers={"events": told(SNAPSHOT, more=cut)}):
        done = home.ctl("events", "--json")
    first, last = done.stdout.split("\n", 1)
    assert (done.returncode, done.stderr) == (1, "pursersd cut this program off.\n")
    assert json.loads(first)["event"] == "snapshot"
    assert json.loads(last)["error"]["code"] == "too_slow"


def test_it_ends_when_nobody_reads_although_nothing_happens(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers={"events": told(SNAPSHOT)}), running(home, "--json") as following:
        following.says(1)
        assert following.process.stdout is not None
        following.process.stdout.close()
        until(lambda: following.process.poll() is not None, PATIENCE, "it ends")
        assert following.process.returncode == 0


def test_without_a_daemon_it_says_so_and_creates_nothing(home: Home) -> None:
    done = home.ctl("events")
    assert (done.returncode, done.stdout) == (3, "")
    assert "Start it with: pursersctl start" in done.stderr
    assert json.loads(home.ctl("events", "--json").stdout)["error"]["code"] == "not_running"
    assert list(home.folder.iterdir()) == []


def test_a_daemon_that_does_not_know_events(home: Home) -> None:
    old = {"error": {"code": "unknown_verb", "text": "This pursersd (0) does not know 'events'."}}
    with ScriptedDaemon(home.folder, answers={"events": old}):
        done = home.ctl("events")
    assert (done.returncode, done.stderr) == (1, "This pursersd (0) does not know 'events'.\n")


def test_the_kinds_to_choose_from_are_those_that_there_are() -> None:
    from pursersctl.seeing import Kind, State

    tags = {kind.__struct_config__.tag for kind in vars(events).values() if isinstance(kind, type(events.Came))}
    assert {kind.value for kind in Kind} == tags - {None}
    assert {state.value for state in State} == set(api.State.__args__)
