"""pursersctl.render_top: the page at several sizes, compared with template files; what fits and what is said of the rest."""

from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from pursersctl.render import plain
from pursersctl.render_top import Rates, brief, rates, top
from pursersd import api
from unit.ctl_samples import SEATS, STATUS, seat

DATA = Path(__file__).parents[1] / "data"
RATES = Rates(calls=12.3, cues=0.42, wakes=0.02)


def latency(kind: str, tool: str, host: str, *numbers: float) -> api.LatencyRow:
    count, p50, p95, p99, most = numbers
    fields = {"kind": kind, "tool": tool, "host": host, "count": int(count)}
    return api.LatencyRow(**fields, p50_s=p50, p95_s=p95, p99_s=p99, max_s=most)


BUSY = msgspec.structs.replace(
    STATUS,
    daemon=msgspec.structs.replace(STATUS.daemon, descriptors=41, descriptor_limit=8192),
    latency=[
        latency("call", "project_registry_get", "codex", 4, 0.0056, 0.012, 0.012, 0.0119),
        latency("wait", "a2a_wait", "claude-code", 40, 180, 600, 600, 600.2),
        latency("wake", "a2a_wait", "claude-code", 31, 0.022, 0.047, 0.068, 0.0711),
        latency("wake", "a2a_wait", "codex", 2, 0.0004, 1.2, 1.2, 42.0),
    ],
)
LEASE = api.LeaseRow(board="bench", ticket="TK-6af3b5c804f6d34f6c07", kind="work", state="kept", left_s=611.4)
PS = api.Ps(seats=[*SEATS, seat(seat="bench-w9", leases=[LEASE], conversation="c-000000000004")])


@pytest.mark.parametrize("width", [80, 120])
def test_the_page(width: int) -> None:
    page = plain(top(BUSY, PS, RATES, width, 40))
    assert page == (DATA / f"ctl_top_{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("height", [6, 10, 14, 24, 60])
def test_it_fits(width: int, height: int) -> None:
    lines = plain(top(BUSY, PS, RATES, width, height)).splitlines()
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)


def test_what_has_no_room_is_counted() -> None:
    many = api.Ps(seats=[seat(seat=f"s-{n:03}", conversation=f"c-{n:012}") for n in range(50)])
    lines = plain(top(BUSY, many, None, 80, 24)).splitlines()
    shown = sum(line.startswith("s-") for line in lines)
    assert lines[-1] == f"… {50 - shown} more"
    assert shown > 3


def test_nothing_is_there_yet() -> None:
    nothing = msgspec.structs.replace(STATUS, centrals=[], warnings=[], conversations=0)
    page = plain(top(nothing, api.Ps(seats=[]), None, 80, 24))
    for said in ("no conversations", "No Central in use", "No call has ended yet.", "No conversations."):
        assert said in page


def test_rates_are_of_one_daemon() -> None:
    def look(uptime_s: float, epoch: int, calls: int) -> tuple[api.Status, api.Ps]:
        daemon = msgspec.structs.replace(STATUS.daemon, uptime_s=uptime_s, epoch=epoch)
        central = msgspec.structs.replace(STATUS.centrals[0], requests=calls, cues=calls // 10)
        status = msgspec.structs.replace(STATUS, daemon=daemon, centrals=[central])
        return status, api.Ps(seats=[seat(wakes=calls // 20)])

    assert rates(look(10, 1, 100), look(20, 1, 200)) == Rates(10, 1, 0.5)
    assert rates(look(10, 1, 200), look(20, 1, 100)) == Rates(0, 0, 0), "a pool was closed"
    assert rates(look(10, 1, 100), look(2, 2, 5)) is None
    assert rates(look(10, 1, 100), look(10, 1, 100)) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0ms"), (0.0004, "0.4ms"), (0.022, "22ms"), (0.9994, "999ms"), (1.2, "1.2s"), (42, "42s"), (611, "10m")],
)
def test_short_times(seconds: float, text: str) -> None:
    assert brief(seconds) == text
