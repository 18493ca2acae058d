"""health: what the daemon's state calls for, with a code, a text and something to do."""

from typing import Any, Literal

import msgspec
import pytest

from pursersd.api import CentralStatus, SeatRow, StatsFile
from pursersd.health import warnings

State = Literal["connecting", "ready", "unreachable", "refused"]


def central(state: State, detail: str | None = None) -> CentralStatus:
    return CentralStatus(
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
