"""rules/compaction: a long catch-up, or one from an omitted cursor (bridge.md §2.5)."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.compaction import compact


def event(seq: int, ticket_id: str | None = "T", kind: str = "ticket_annotated") -> dict[str, object]:
    return {"kind": kind, "seq": seq, "ticket_id": ticket_id}


@pytest.mark.parametrize(
    ("read", "cursor_omitted", "compacted"),
    [(0, True, False), (1, True, True), (200, False, False), (201, False, True)],
)
def test_when(read: int, cursor_omitted: bool, compacted: bool) -> None:
    events = [event(seq) for seq in range(read)]
    assert (compact(events, events, cursor_omitted=cursor_omitted) is not None) is compacted


def test_one_event_from_an_omitted_cursor_is_compacted_to_itself() -> None:
    found = compact([event(1)], [event(1)], cursor_omitted=True)
    assert found is not None
    assert (found.events, found.dropped, found.event_counts) == ([event(1)], 0, {"ticket_annotated": 1})


def test_latest_per_ticket_and_one_without_a_ticket_in_order() -> None:
    read = [
        event(1, "A"),
        event(2, None),
        event(3, "B"),
        event(4, None),
        event(5, "A"),
        event(6, "C", "memory_written"),
    ]
    found = compact(read, read[:5], cursor_omitted=True)
    assert found is not None
    assert [shown["seq"] for shown in found.events] == [3, 4, 5]
    assert found.dropped == 3
    assert found.event_counts == {"memory_written": 1, "ticket_annotated": 5}


def test_only_the_last_ones_are_kept_and_counts_cover_all() -> None:
    read = [event(seq, f"T{seq}") for seq in range(300)] + [{"seq": 300}]
    found = compact(read, read[:300], cursor_omitted=False)
    assert found is not None
    assert [shown["seq"] for shown in found.events] == list(range(100, 300))
    assert found.dropped == 101
    assert found.event_counts == {"ticket_annotated": 300, "unknown": 1}


@given(st.lists(st.tuples(st.sampled_from(["A", "B", None]), st.sampled_from(["x", "y"]), st.booleans())))
def test_the_newest_of_each_ticket_survives(rows: list[tuple[str | None, str, bool]]) -> None:
    read = [event(seq, ticket, kind) for seq, (ticket, kind, _) in enumerate(rows, 1)]
    relevant: list[dict[str, Any]] = [shown for shown, (_, _, wanted) in zip(read, rows, strict=True) if wanted]
    found = compact(read, relevant, cursor_omitted=True)
    if not read:
        assert found is None
        return
    assert found is not None
    newest = {shown["ticket_id"]: shown["seq"] for shown in relevant}
    assert [shown["seq"] for shown in found.events] == sorted(newest.values())
    assert found.dropped == len(read) - len(found.events)
    assert found.event_counts == Counter(kind for _, kind, _ in rows)
