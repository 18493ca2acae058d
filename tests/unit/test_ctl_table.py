"""pursersctl.table: what fits, what is cut, what is dropped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pursersctl.render_ps import COLUMNS
from pursersctl.table import Column, clean, cut, fit, table

TWO = (Column("NAME", keep=2, least=5), Column("N", keep=1, right=True))


def texts(lines: list[tuple[tuple[str, str], ...]]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def test_what_fits_is_shown_whole_with_wide_gaps() -> None:
    assert fit(TWO, [10, 2], 14) == ({0: 10, 1: 2}, 2)


def test_a_narrow_gap_comes_before_a_cut_name() -> None:
    assert fit(TWO, [10, 2], 13) == ({0: 10, 1: 2}, 1)


def test_a_cut_name_comes_before_a_dropped_column() -> None:
    assert fit(TWO, [10, 2], 8) == ({0: 5, 1: 2}, 1)


def test_the_column_to_keep_least_is_dropped_first() -> None:
    assert fit(TWO, [10, 2], 7) == ({0: 7}, 1)


def test_a_column_that_may_not_be_cut_keeps_its_width() -> None:
    widths, _ = fit((Column("PID", keep=9, right=True), Column("NAME", keep=5, least=4)), [7, 30], 20)
    assert widths == {0: 7, 1: 12}


def test_the_longest_name_gives_way_first() -> None:
    columns = (Column("A", keep=2, least=4), Column("B", keep=1, least=4))
    assert fit(columns, [30, 8], 21) == ({0: 12, 1: 8}, 1)


def test_numbers_stand_right_and_names_left() -> None:
    assert texts(table(TWO, [[("ab", ""), ("7", "")], [("abc", ""), ("123", "")]], 80)) == [
        "NAME    N",
        "ab      7",
        "abc   123",
    ]


def test_a_long_name_loses_its_middle() -> None:
    assert cut("bench-worker-01", 9) == "benc…r-01"
    assert cut("bench-worker-01", 15) == "bench-worker-01"
    assert cut("abc", 1) == "…"


def test_wide_characters_count_twice() -> None:
    assert cell_len(cut("見積もり担当者の席", 10)) <= 10
    lines = texts(table(TWO, [[("見積", ""), ("1", "")], [("abcd", ""), ("2", "")]], 80))
    assert cell_len(lines[1]) == cell_len(lines[2])


@pytest.mark.parametrize("evil", ["\x1b[2J", "a\nb", "a\rb", "a\tb", "\x07", "\u202ereversed", "\x9b1m"])
def test_a_name_cannot_steer_the_terminal(evil: str) -> None:
    assert clean(evil).isprintable()


@given(st.lists(st.integers(1, 40), min_size=len(COLUMNS), max_size=len(COLUMNS)), st.integers(40, 200))
def test_a_table_is_never_wider_than_the_terminal(natural: list[int], width: int) -> None:
    fitted, gap = fit(COLUMNS, natural, width)
    assert sum(fitted.values()) + gap * (len(fitted) - 1) <= width
    assert 0 in fitted
