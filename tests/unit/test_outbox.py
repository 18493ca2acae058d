"""Lines into a descriptor that takes little."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursers_shim.outbox import Outbox


@given(st.lists(st.binary(min_size=1, max_size=30), max_size=10), st.lists(st.integers(0, 7), min_size=1).filter(any))
def test_every_byte_goes_out_once_and_in_order(lines: list[bytes], counts: list[int]) -> None:
    box, out, tags, takes = Outbox(), bytearray(), [], itertools.cycle(counts)
    for number, line in enumerate(lines):
        box.push(line, f"t{number}")

    def taking(piece: memoryview) -> int:
        count = min(next(takes), len(piece))
        out.extend(piece[:count])
        return count

    while box.size:
        tags += box.write(taking, 7)
        # A tag is told exactly when its line is complete.
        complete = sum(len(b"".join(lines[: n + 1])) <= len(out) for n in range(len(lines)))
        assert tags == [f"t{number}" for number in range(complete)]
    assert out == b"".join(lines)


def test_at_most_so_many_bytes_are_offered() -> None:
    box = Outbox()
    box.push(b"x" * 100)
    offered: list[int] = []

    def taking(piece: memoryview) -> int:
        offered.append(len(piece))
        return len(piece)

    while box.size:
        box.write(taking, 30)
    assert offered == [30, 30, 30, 10]


def test_it_knows_whether_a_line_is_cut_and_forgets_what_is_queued() -> None:
    box = Outbox()
    box.push(b"one\n")
    box.push(b"two\n")
    assert not box.is_cut
    box.write(lambda piece: 2, 10)
    assert box.is_cut
    box.write(lambda piece: 0, 10)
    assert box.is_cut
    box.write(len, 10)
    assert not box.is_cut
    box.clear()
    assert box.size == 0
    assert box.write(len, 10) == []


def test_it_forgets_all_but_what_has_a_tag() -> None:
    box = Outbox()
    for line, tag in ((b"one\n", None), (b"two\n", "kept"), (b"three\n", "other"), (b"four\n", "kept")):
        box.push(line, tag)
    box.clear(but="kept")
    assert box.size == 9
    assert [box.write(len, 10), box.write(len, 10), box.write(len, 10)] == [["kept"], ["kept"], []]


def test_a_failed_write_changes_nothing() -> None:
    box = Outbox()
    box.push(b"line\n", "tag")

    def failing(piece: memoryview) -> int:
        raise BlockingIOError

    with pytest.raises(BlockingIOError):
        box.write(failing, 10)
    assert box.size == 5
    assert box.write(len, 10) == ["tag"]
    assert box.write(len, 10) == []
