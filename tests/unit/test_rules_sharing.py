"""rules/sharing: a page serves another seat only where Central would have shown it the same (central.md §6.6).

The properties compare each verdict with a model of Central: who sees which row (§6.3) and who is cued (§4.5).
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.sharing import is_for_everyone, verdict

A, B, C = "AI-a", "AI-b", "AI-c"
SEATS = (A, B, C)


def page(*events: dict[str, object], scanned: int | None = None, **fields: object) -> dict[str, object]:
    return {
        "events": list(events),
        "scan_count": len(events) if scanned is None else scanned,
        "has_more": False,
        "resync_required": False,
        **fields,
    }


CREATED: dict[str, object] = {"kind": "ticket_created", "status_to": "open", "actor": C}
REOPENED: dict[str, object] = {"kind": "ticket_status_changed", "status_to": "open", "actor": C}
CLAIMED: dict[str, object] = {"kind": "ticket_status_changed", "status_to": "claimed", "actor": C}
RETIRED: dict[str, object] = {"kind": "agent_lifecycle_changed", "actor": C, "payload_ref": f"board://b/agent/{B}"}


@pytest.mark.parametrize(
    ("read", "seat_cued", "expected"),
    [
        (page(), True, "nothing"),
        (page(), False, "nothing"),
        (page(CREATED), True, "deliver"),
        (page(CREATED), False, "deliver"),
        (page(REOPENED), False, "deliver"),
        (page({"kind": "board_state_changed", "actor": C}), False, "deliver"),
        (page(CLAIMED), True, "deliver"),
        (page(CLAIMED), False, "nothing"),
        (page({**CREATED, "actor": B}), True, "nothing"),
        (page({**CLAIMED, "actor": B}), False, "nothing"),
        (page(RETIRED), True, "read"),
        (page(RETIRED), False, "nothing"),
        (page(scanned=1), True, "read"),
        (page(scanned=1), False, "read"),
        (page(CREATED, scanned=2), False, "read"),
        (page(CREATED, REOPENED), True, "read"),
        (page(CREATED, has_more=True), True, "read"),
        (page(has_more=True), False, "read"),
        (page(resync_required=True), True, "read"),
        (page({"kind": "ticket_annotated", "status_to": "open", "actor": C}), False, "nothing"),
        (page(CREATED, scanned=0), True, "read"),
        ({}, True, "read"),
        ({"events": [], "scan_count": None}, True, "read"),
        ({"events": [5], "scan_count": 1}, True, "read"),
    ],
)
def test_verdicts(read: dict[str, object], seat_cued: bool, expected: str) -> None:
    assert verdict(read, B, seat_cued) == expected


@dataclass
class Board:
    """As much of Central as decides who sees what."""

    coordinates: bool
    rows: list[dict[str, Any]] = field(default_factory=list)
    open_tickets: set[str] = field(default_factory=set)

    def write(self, kind: str, actor: str, ticket_id: str, recipients: frozenset[str], about: str) -> None:
        row: dict[str, Any] = {
            "seq": len(self.rows) + 1,
            "kind": kind,
            "actor": actor,
            "recipients": recipients - {actor},
        }
        match kind:
            case "ticket_created" | "reopened":
                self.open_tickets.add(ticket_id)
                row |= {"kind": "ticket_created" if kind == "ticket_created" else "ticket_status_changed"}
                row |= {"ticket_id": ticket_id, "status_to": "open"}
            case "ticket_status_changed":
                self.open_tickets.discard(ticket_id)
                row |= {"ticket_id": ticket_id, "status_to": "claimed"}
            case "board_state_changed":
                row["recipients"] = frozenset()
            case "agent_lifecycle_changed":
                row["payload_ref"] = f"board://b/agent/{about}"
            case _:
                row |= {"ticket_id": ticket_id}
        self.rows.append(row)

    def sees(self, seat: str, row: dict[str, Any]) -> bool:
        opened = row["kind"] in ("ticket_created", "ticket_status_changed") and row.get("status_to") == "open"
        return row["actor"] != seat and (
            seat in row["recipients"]
            or (opened and row["ticket_id"] in self.open_tickets)
            or (row["kind"] == "board_state_changed" and self.coordinates)
        )

    def page(self, seat: str, cursor: int, limit: int) -> dict[str, Any]:
        scanned = self.rows[cursor : cursor + limit]
        shown = [row for row in scanned if self.sees(seat, row)]
        return {
            "events": [{key: value for key, value in row.items() if key != "recipients"} for row in shown],
            "scan_count": len(scanned),
            "next_cursor": cursor + len(scanned),
            "has_more": cursor + len(scanned) < len(self.rows),
            "resync_required": False,
        }

    def cued(self, seat: str, cursor: int) -> bool:
        about = f"board://b/agent/{seat}"
        return any(seat in row["recipients"] or row.get("payload_ref") == about for row in self.rows[cursor:])


KINDS = ["ticket_created", "reopened", "ticket_status_changed", "ticket_annotated", "ticket_offered"]
KINDS += ["board_state_changed", "agent_lifecycle_changed"]
seats = st.sampled_from(SEATS)
writes = st.tuples(
    st.sampled_from(KINDS), seats, st.sampled_from(["T", "U"]), st.frozensets(seats), st.sampled_from([*SEATS, "AI-z"])
)


@st.composite
def boards(draw: st.DrawFn) -> tuple[Board, int]:
    board = Board(draw(st.booleans()))
    for write in draw(st.lists(writes, max_size=4)):
        board.write(*write)
    # Mostly near the end, where pages can be shared at all.
    return board, max(0, len(board.rows) - draw(st.integers(0, 2)))


@given(boards(), st.integers(1, 3), st.booleans())
def test_what_is_delivered_is_what_the_seat_would_have_read(
    drawn: tuple[Board, int], limit: int, seat_cue_is_late: bool
) -> None:
    board, cursor = drawn
    read = board.page(A, cursor, limit)
    cued = board.cued(B, cursor) and not seat_cue_is_late
    if verdict(read, B, cued) == "deliver":
        own = board.page(B, cursor, 1000)
        assert own["events"] == read["events"]
        assert own["next_cursor"] == read["next_cursor"]


@given(boards(), st.integers(1, 3))
def test_nothing_means_that_the_seat_has_nothing_to_read(drawn: tuple[Board, int], limit: int) -> None:
    board, cursor = drawn
    read = board.page(A, cursor, limit)
    if verdict(read, B, board.cued(B, cursor)) == "nothing":
        assert board.page(B, cursor, 1000)["events"] == []


@given(boards())
def test_a_cue_that_came_too_late_for_its_own_read_loses_nothing(drawn: tuple[Board, int]) -> None:
    board, cursor = drawn
    read = board.page(A, cursor, 1000)
    own = board.page(B, cursor, 1000)["events"]
    found = verdict(read, B, True)
    shown = {"deliver": read["events"], "nothing": [], "read": own}[found]
    assert all(event in shown for event in own)


@given(boards())
def test_a_single_new_row_that_both_see_costs_one_read(drawn: tuple[Board, int]) -> None:
    board, _ = drawn
    cursor = len(board.rows) - 1
    if cursor < 0:
        return
    row = board.rows[cursor]
    read = board.page(A, cursor, 1000)
    if board.sees(A, row) and board.sees(B, row) and "payload_ref" not in row:
        assert verdict(read, B, board.cued(B, cursor)) == "deliver"
        assert verdict(read, B, False) == ("deliver" if is_for_everyone(row) else "nothing")
