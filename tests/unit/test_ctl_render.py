"""pursersctl.render: structs in, lines out, compared with template files."""

from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from pursersctl import render_ps
from pursersctl.pick import Wish, pick
from pursersctl.render import duration, ended, plain, reap, size, status
from pursersctl.table import Line
from pursersd import api
from unit.ctl_samples import SEATS, STATUS, seat

DATA = Path(__file__).parents[1] / "data"


def ps(answer: api.Ps, width: int = 80, *, wide: bool = False) -> list[Line]:
    """The table in the usual order."""
    ordered = [answer.seats[i] for i in pick(answer.seats, Wish())]
    return render_ps.ps(msgspec.structs.replace(answer, seats=ordered), width, wide=wide)


def same_as(name: str, lines: list[Line]) -> None:
    assert plain(lines) == (DATA / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 80, 120, 140])
def test_ps(width: int) -> None:
    same_as(f"ctl_ps_{width}.txt", ps(api.Ps(seats=SEATS), width))


def test_ps_without_conversations() -> None:
    assert plain(ps(api.Ps(seats=[]))).startswith("No conversations. Each chat of a host that starts pursers-shim")
    nobody = plain(render_ps.ps(api.Ps(seats=[]), 100, of=7))
    assert nobody == "None of the 7 conversations is meant by these options. All of them: pursersctl ps\n"


def test_on_a_low_terminal_the_warnings_of_ps_come_before_its_last_rows() -> None:
    many = [seat(seat=f"s-{n:03}", conversation=f"c-{n:012}") for n in range(50)]
    warning = api.Warning(code="central_unreachable", since_s=1, text="It does not answer", action="Start it.")
    answer = api.Ps(seats=many, warnings=[warning])
    lines = plain(render_ps.ps(answer, 80, height=24)).splitlines()
    shown = sum(line.startswith("s-") for line in lines)
    assert len(lines) == 24
    assert lines[-3:] == [f"… {50 - shown} more", "", "central_unreachable: It does not answer → Start it."]
    for height in range(6, 12):
        assert len(render_ps.ps(answer, 40, height=height)) == height
    assert len(render_ps.ps(answer, 80, height=60)) == 53


def holding() -> list[api.SeatRow]:
    """Conversations that hold something, or are behind."""
    ticket = {"board": "bench", "ticket": "TK-6af3b5c804f6d34f6c07", "kind": "work", "state": "kept", "left_s": 611.4}
    kept = api.LeaseRow(**ticket)
    other = api.LeaseRow(**{**ticket, "ticket": "TK-000000000000000000ab", "left_s": 42.0})
    paused = api.LeaseRow(**{**ticket, "state": "paused", "kind": "review"})
    return [
        seat(leases=[kept, other], lag=0, wakes=31, state="working"),
        seat(seat="bench-r1", role="reviewer", leases=[paused], lag=12, conversation="c-000000000007", host="codex"),
        seat(seat="bench-w2", lag=None, conversation="c-000000000008", delivery=None, state="idle"),
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_ps_shows_what_is_held_and_who_is_behind(width: int) -> None:
    same_as(f"ctl_ps_held_{width}.txt", ps(api.Ps(seats=holding()), width))


def test_ps_wide_cuts_nothing_and_leaves_nothing_out() -> None:
    same_as("ctl_ps_wide.txt", ps(api.Ps(seats=[*holding(), *SEATS], version="0.1.0"), 40, wide=True))


@pytest.mark.parametrize("width", [50, 60, 80, 100, 140])
def test_ps_fits(width: int) -> None:
    assert all(cell_len(line) <= width for line in plain(ps(api.Ps(seats=SEATS), width)).splitlines())


def test_ps_sorts_by_board_seat_and_conversation_and_the_unknown_last() -> None:
    rows = [line.split()[0] for line in plain(ps(api.Ps(seats=SEATS), 200)).splitlines()[1:6]]
    assert rows == ["the-seat-of-somebody-who-likes-long-names", "bench-r1", "bench-w1", "bench-w1", "–"]
    shims = [line.split()[6] for line in plain(ps(api.Ps(seats=SEATS), 200)).splitlines()[3:5]]
    assert shims == ["1020420", "20419"]


def test_ps_counts_the_other_boards_of_a_wait() -> None:
    assert "alpha +2" in plain(ps(api.Ps(seats=[seat(board="alpha", boards=["alpha", "beta", "gamma"])]), 200))


def test_ps_says_why_a_link_was_cut() -> None:
    cut = seat(shim_pid=4711, state="detached", cut_reason="its shim took nothing for 30 s")
    text = plain(ps(api.Ps(seats=[cut]), 200))
    assert (
        "The link of shim 4711 was cut: its shim took nothing for 30 s. It is served again when it comes back." in text
    )


def test_a_name_with_escapes_is_harmless() -> None:
    assert "\x1b" not in plain(ps(api.Ps(seats=[seat(host="\x1b[31mred", seat="a\nb")])))


@pytest.mark.parametrize("width", [80, 120])
def test_status(width: int) -> None:
    same_as(f"ctl_status_{width}.txt", status(STATUS, stopped=False, version="0.1.0", width=width))


def test_what_may_have_been_lost_is_shown() -> None:
    never = api.LossyWindow(name="LW-A", counter="as", count=0, last_s=None, text="May be lost: a.")
    once = api.LossyWindow(name="LW-B", counter="bs", count=2, last_s=7200.0, text="May be lost: b.")
    shown = plain(status(msgspec.structs.replace(STATUS, lossy_windows=[never, once]), stopped=False, version="0.1.0"))
    assert shown.endswith("May have been lost\n  LW-B: 2  last 2h ago\n    May be lost: b.\n")
    assert "LW-A" not in shown


def test_warnings_are_below_the_table_of_ps() -> None:
    warning = api.Warning(code="time_passed", since_s=1.0, text="The machine slept.", action="Nothing.")
    seen = api.Warning(code="seat_shared", since_s=1.0, text="Shared.", action="See the table.")
    shown = plain(ps(api.Ps(seats=[seat()], warnings=[warning, seen])))
    assert shown.endswith("time_passed: The machine slept. → Nothing.\n")
    assert "seat_shared" not in shown


def test_status_says_that_automatic_start_is_off() -> None:
    assert "Turn it on with: pursersctl start" in plain(status(STATUS, stopped=True, version="0.1.0"))


def test_status_says_that_the_versions_differ() -> None:
    text = plain(status(STATUS, stopped=False, version="0.2.0", width=120))
    assert "The daemon is version 0.1.0, pursersctl is 0.2.0. Run: pursersctl restart" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0s"), (0, "0s"), (12.9, "12s"), (59.99, "59s"), (60, "1m"), (7199, "1h"), (7200, "2h"), (86400 * 5, "5d")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_sizes() -> None:
    assert (size(1023), size(1024)) == ("1023 B", "1 KiB")
    assert (size(512 * 1024), size(58 * 1024 * 1024)) == ("512 KiB", "58 MiB")


def test_ps_shows_versions_when_a_shim_has_another_one() -> None:
    same = plain(ps(api.Ps(seats=[seat()], version="0.1.0"), 200))
    assert "VERSION" not in same
    assert "VERSION" not in plain(ps(api.Ps(seats=[seat(shim_version="9")], version=""), 200))  # an older daemon
    mixed = plain(ps(api.Ps(seats=[seat(), seat(shim_version="0.0.9")], version="0.1.0"), 200)).splitlines()
    assert [line.split()[-1] for line in mixed] == ["VERSION", "0.1.0", "0.0.9"]


def left(**changes: object) -> api.EndedRow:
    row: dict[str, object] = {name: getattr(seat(), name) for name in api.EndedRow.__struct_fields__ if name not in NEW}
    return api.EndedRow(**{**row, "reason": "the host ended", "ago_s": 200.0, **changes})


NEW = ("reason", "ago_s")


def test_ended() -> None:
    assert plain(ended(api.Ended(ended=[left()]), 120)).splitlines() == [
        " ENDED  SEAT      BOARD  HOST           PID   SHIM  LIVED  LAST      WHY",
        "3m ago  bench-w1  bench  claude-code  20411  20419     2h  a2a_wait  the host ended",
    ]
    assert plain(ended(api.Ended(ended=[left()]), 80)).splitlines() == [
        " ENDED SEAT     BOARD HOST          PID  SHIM LIVED LAST     WHY",
        "3m ago bench-w1 bench claude-code 20411 20419    2h a2a_wait the host ended",
    ]
    assert plain(ended(api.Ended(ended=[]))) == "No conversation has ended since this daemon started.\n"
    assert plain(ended(api.Ended(ended=[]), of=2)).startswith("None of the 2 that ended is meant by these options.")


@pytest.mark.parametrize("width", [50, 80, 120])
def test_ended_fits_and_keeps_the_reason(width: int) -> None:
    text = plain(ended(api.Ended(ended=[left(seat="s" * 60, reason="the link was lost and did not come back")]), width))
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert "WHY" in text


def test_reap() -> None:
    row = api.ReapRow(
        kind="shim",
        why="its host has ended",
        seat=None,
        board="b",
        host="zed",
        host_pid=7,
        shim_pid=8,
        conversation="c",
    )
    assert plain(reap(api.Reap(found=[row], ending=False), 100)).splitlines() == [
        "WHAT  SEAT  BOARD  HOST  PID  SHIM  WHY",
        "shim  –     b      zed     7     8  its host has ended",
        "",
        "Nothing was ended. End them with: pursersctl reap --yes",
    ]
    assert "They are being ended." in plain(reap(api.Reap(found=[row], ending=True)))
    assert "Nothing to end" in plain(reap(api.Reap(found=[], ending=True)))
