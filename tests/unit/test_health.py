"""health: what the daemon's state calls for, with a code, a text and something to do."""

import re
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from pursersd import health, own_health
from pursersd.api import CentralStatus, SeatRow, StatsFile
from pursersd.health import Machine, Since, changes, warnings

State = Literal["connecting", "ready", "unreachable", "refused"]


def central(state: State, detail: str | None = None, **fields: Any) -> CentralStatus:
    return CentralStatus(
        **fields,
        url="http://127.0.0.1:1/mcp",
        credential="kid/abc123",
        state=state,
        detail=detail,
        call_connections=0,
        streams=2,
        boards=["b"],
        seats_listening=1,
        waits=1,
        requests=1,
        cues=1,
        reconnects=0,
    )


def row(**fields: Any) -> SeatRow:
    common: dict[str, Any] = {
        "seat": "s",
        "board": "b",
        "role": "worker",
        "host": "codex",
        "host_pid": 1,
        "shim_pid": 2,
        "conversation": "c",
        "state": "waiting",
        "delivery": "push",
        "since_s": 1.0,
        "age_s": 1.0,
        "last_tool": "a2a_wait",
        "link_epoch": 1,
        "shared_by": 1,
        "central": "http://127.0.0.1:1/mcp",
        "cwd": "/",
        "shim_version": "1",
    }
    return SeatRow(**{**common, **fields})


def test_every_code_is_in_the_documentation() -> None:
    sources = [Path(module.__file__).read_text(encoding="utf-8") for module in (health, own_health)]
    codes = re.findall(r'code="([a-z_]+)"', "".join(sources))
    text = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z_]+)` \|", text.partition("## Warnings")[2].partition("\n## ")[0], re.MULTILINE)
    assert set(codes) == set(listed)
    assert len(listed) == len(set(listed))


def test_all_is_well() -> None:
    assert warnings([], []) == []
    assert (
        warnings([central("ready"), central("connecting")], [row(), row(delivery=None, seat=None, shared_by=0)]) == []
    )


@pytest.mark.parametrize(
    ("state", "code", "action"),
    [("refused", "credential_refused", "new token"), ("unreachable", "central_unreachable", "Start Central")],
)
def test_a_central_that_does_not_serve_us(state: State, code: str, action: str) -> None:
    (found,) = warnings([central("ready"), central(state, "because")], [])
    assert found.code == code
    assert "http://127.0.0.1:1/mcp (kid/abc123)" in found.text
    assert found.text.endswith("because")
    assert action in found.action


def test_a_polled_board_is_named_once_with_its_reason() -> None:
    polled = {"delivery": "poll", "poll_reason": "stream limit"}
    found = warnings([], [row(**polled), row(**polled, seat="t"), row(**polled, board="c"), row()])
    assert [w.code for w in found] == ["board_polled", "board_polled"]
    assert [w.text for w in found] == [
        "Board b is polled instead of pushed: stream limit",
        "Board c is polled instead of pushed: stream limit",
    ]


def test_polling_that_was_asked_for_is_no_warning() -> None:
    assert warnings([], [row(delivery="poll", poll_reason="PURSERS_WAIT_MODE=poll")]) == []


def test_a_shared_seat_is_named_once() -> None:
    (found,) = warnings([], [row(shared_by=2), row(shared_by=2), row(seat="alone")])
    assert found.code == "seat_shared"
    assert found.text.startswith("2 conversations use the seat s on b")
    assert "ONBOARD_AGENT_INSTANCE" in found.action


def test_the_most_urgent_comes_first() -> None:
    rows = [row(shared_by=2), row(delivery="poll", poll_reason="x")]
    codes = [w.code for w in warnings([central("unreachable", "x"), central("refused", "y")], rows)]
    assert codes == ["central_unreachable", "credential_refused", "board_polled", "seat_shared"]


def test_statistics_that_cannot_be_written() -> None:
    def file(trouble: str | None) -> StatsFile:
        age = None if trouble is None else 7.0
        unwritten = msgspec.Raw(b"{}")
        return StatsFile(path="/s.json", writes=0, unwritten=unwritten, pushed={}, trouble=trouble, trouble_s=age)

    (found,) = warnings([], [], [file(None), file("No space left on device")])
    assert (found.code, found.since_s) == ("stats_unwritten", 7.0)
    assert "/s.json: No space left on device." in found.text
    assert "PURSERS_BRIDGE_STATS" in found.action


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"replaced_s": 5.0}, "central_replaced", "ONBOARD_CENTRAL_INSTANCE_ID"),
        ({"expires_s": 200.0}, "credential_expires", "new token"),
        ({"clock_ahead_s": 3600.0}, "clock_differs", "ahead of"),
        ({"clock_ahead_s": 3600.0, "clock_wrong_s": 9.0}, "clock_differs", "ahead of"),
        ({"clock_ahead_s": -3600.0}, "clock_differs", "behind"),
    ],
)
def test_a_central_that_serves_us_and_is_to_be_watched(fields: dict[str, Any], code: str, words: str) -> None:
    (found,) = warnings([central("ready", **fields)], [])
    assert found.code == code
    assert words in found.text + found.action
    assert code != "clock_differs" or found.since_s == fields.get("clock_wrong_s", 0.0)


@pytest.mark.parametrize(
    "fields", [{"replaced_s": 3700.0}, {"expires_s": 400.0}, {"expires_s": -5.0}, {"clock_ahead_s": 59.0}]
)
def test_what_is_no_reason_to_warn(fields: dict[str, Any]) -> None:
    assert warnings([central("ready", **fields)], []) == []


@pytest.mark.parametrize(
    ("machine", "code", "words"),
    [
        (Machine(descriptors=60, descriptor_limit=64, refused_s=1.0), "descriptors_short", "60 of 64"),
        (Machine(log_error="No space left", log_lost=7, log_error_s=3.0), "log_unwritable", "No space left; 7 lines"),
        (Machine(suspensions=1, woke_s=3.0), "time_passed", "slept"),
    ],
)
def test_a_machine_in_trouble(machine: Machine, code: str, words: str) -> None:
    (found,) = warnings([], [], machine=machine)
    assert (found.code, words in found.text) == (code, True)
    assert found.action


def test_a_sleep_long_ago_is_no_warning() -> None:
    assert warnings([], [], machine=Machine(suspensions=1, woke_s=61.0)) == []


def test_conversations_that_cannot_work_are_named_once_for_each_problem() -> None:
    found = warnings([], [row(problem="no token"), row(problem="no token", age_s=9.0), row(problem="no board"), row()])
    assert [(w.code, w.since_s) for w in found] == [("settings_wrong", 1.0), ("settings_wrong", 9.0)]
    assert found[1].text.endswith("no token")


def test_what_begins_and_what_ends() -> None:
    first = warnings([central("unreachable", "refused")], [row(shared_by=2)])
    later = warnings([central("unreachable", "silent")], [row(problem="no token")])
    begun, ended = changes(first, later)
    assert [w.code for w in begun] == ["settings_wrong"]  # an unreachable Central stays the same one
    assert [w.code for w in ended] == ["seat_shared"]
    assert changes(later, later) == ([], [])


def test_each_problem_of_several_begins_and_ends_for_itself() -> None:
    one, both = [row(problem="no token")], [row(problem="no token"), row(problem="no board")]
    begun, ended = changes(warnings([], one), warnings([], both))
    assert [w.text for w in begun] == ["A conversation cannot work: no board"]
    assert ended == []
    settings = own_health.of_configuration(["line 1: what?"]), own_health.of_configuration(["line 2: what?"])
    assert [len(found) for found in changes(*settings)] == [1, 1]


def test_a_count_that_changes_is_the_same_warning() -> None:
    for count in (2, 3):
        skew = own_health.of_shims("1", [*[row(shim_version="2")] * count, row(shim_version="1")])
        assert changes(own_health.of_shims("1", [row(shim_version="2")]), skew) == ([], [])
        assert changes(warnings([], [row(shared_by=2)]), warnings([], [row(shared_by=count)])) == ([], [])


def test_since_when_is_told_although_nobody_noted_it() -> None:
    clock = iter([10.0, 12.0, 15.0, 16.0, 17.0])
    since = Since(lambda: next(clock))
    polled = warnings([], [row(delivery="poll", poll_reason="no stream left", since_s=99.0)])
    wrong = own_health.of_configuration(["line 1: what?"])
    away = warnings([central("unreachable", "refused", trouble_s=7.0)], [])
    times = [
        [(w.code, w.since_s) for w in since.told(present)]
        for present in (polled, [*polled, *wrong], [*away, *wrong], [], wrong)
    ]
    assert times == [
        [("board_polled", 0.0)],
        [("board_polled", 2.0), ("configuration_wrong", 0.0)],
        [("central_unreachable", 7.0), ("configuration_wrong", 3.0)],
        [],
        [("configuration_wrong", 0.0)],
    ]
