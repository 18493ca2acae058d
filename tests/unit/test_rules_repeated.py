"""rules/repeated: a line that comes again and again costs a line a minute."""

from pursersd.rules.repeated import ALLOWED, KNOWN, WINDOW, Repeated


def test_some_are_written_and_the_others_counted() -> None:
    lines = Repeated()
    assert [lines.admit("refused", now=float(n)) for n in range(ALLOWED + 3)] == [0] * ALLOWED + [None] * 3
    assert lines.admit("another", now=3.0) == 0
    assert lines.admit("refused", now=WINDOW) is None
    assert lines.admit("refused", now=WINDOW + 1) == 4
    assert lines.admit("refused", now=WINDOW + 2) == 0


def test_a_day_of_equal_lines_every_second_is_few() -> None:
    lines = Repeated()
    written = sum(lines.admit("refused", now=float(second)) is not None for second in range(86_400))
    assert written <= (86_400 / WINDOW + 1) * ALLOWED


def test_what_is_remembered_is_bounded() -> None:
    lines = Repeated()
    for number in range(3 * KNOWN):
        assert lines.admit(f"line {number}", now=1.0) == 0
    assert repr(lines) == f"<Repeated {KNOWN} lines>"
