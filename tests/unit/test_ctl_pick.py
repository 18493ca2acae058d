"""pursersctl.pick: which rows, in which order."""

import pytest

from pursersctl.pick import SORTS, Wish, pick
from pursersd import api
from unit.ctl_samples import seat
from unit.test_ctl_render import left


def lease(left_s: float) -> api.LeaseRow:
    return api.LeaseRow(board="b", ticket="T", kind="work", state="kept", left_s=left_s)


ROWS = [
    seat(seat="w-2", board="web-1", host="codex", state="working", age_s=5, since_s=1, leases=[lease(9), lease(70)]),
    seat(seat="w-1", board="Web-2", host="zed", role="reviewer", state="idle", age_s=50, since_s=3, lag=4, wakes=2),
    seat(seat=None, board=None, host="zed", role=None, state="idle", age_s=7, since_s=2, lag=None),
    seat(seat="a-1", board="alpha", boards=["alpha", "web-1"], age_s=6, since_s=9, leases=[lease(20)], lag=9, wakes=1),
]


@pytest.mark.parametrize(
    ("wish", "wanted"),
    [
        (Wish(), [3, 0, 1, 2]),
        (Wish(states=("idle",)), [1, 2]),
        (Wish(states=("idle", "working")), [0, 1, 2]),
        (Wish(boards=("web-*",)), [3, 0, 1]),
        (Wish(boards=("alpha",)), [3]),
        (Wish(seats=("w-?",)), [0, 1]),
        (Wish(seats=("*",)), [3, 0, 1]),
        (Wish(hosts=("ZED",), states=("idle",), roles=("rev*",)), [1]),
        (Wish(hosts=("emacs",)), []),
        (Wish(reverse=True), [2, 1, 0, 3]),
        (Wish(sort="seat"), [3, 1, 0, 2]),
        (Wish(sort="seat", reverse=True), [0, 1, 3, 2]),
        (Wish(sort="board"), [3, 0, 1, 2]),
        (Wish(sort="age"), [1, 2, 3, 0]),
        (Wish(sort="age", reverse=True), [0, 3, 2, 1]),
        (Wish(sort="for"), [3, 1, 2, 0]),
        (Wish(sort="left"), [0, 3, 1, 2]),
        (Wish(sort="lag"), [3, 1, 0, 2]),
        (Wish(sort="wakes"), [1, 3, 0, 2]),
        (Wish(sort="state"), [1, 2, 3, 0]),
    ],
)
def test_rows(wish: Wish, wanted: list[int]) -> None:
    assert pick(ROWS, wish) == wanted


@pytest.mark.parametrize("sort", [None, *SORTS])
def test_every_order_has_every_row(sort: str | None) -> None:
    assert sorted(pick(ROWS, Wish(sort=sort))) == [0, 1, 2, 3]


def test_those_that_ended_stay_in_their_order() -> None:
    rows = [left(seat="b", ago_s=1.0, age_s=1.0), left(seat="a", ago_s=2.0, age_s=9.0), left(seat="b", host="zed")]
    assert pick(rows, Wish()) == [0, 1, 2]
    assert pick(rows, Wish(seats=("b",))) == [0, 2]
    assert pick(rows, Wish(sort="age")) == [2, 1, 0]
    assert pick(rows, Wish(sort="for", reverse=True)) == [0, 1, 2]
