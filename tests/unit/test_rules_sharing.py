"""rules/sharing: a page serves another seat only where Central would have shown it the same (central.md §6.6).

The properties compare each verdict with a model of Central: who sees which row (§6.3) and who is cued (§4.5).
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.sharing import Rows, is_for_everyone, verdict

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
            case "offer":
                row |= {"kind": "ticket_offered", "ticket_id": ticket_id, "offered_agent_id": about}
                row["recipients"] = frozenset({about}) - {actor}
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
KINDS += ["board_state_changed", "agent_lifecycle_changed", "offer", "offer"]
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


# --- rows that say for whom they are ----------------------------------------------------------------------------------


def row(seq: int, kind: str, actor: str = C, **fields: object) -> dict[str, object]:
    return {"seq": seq, "kind": kind, "actor": actor, **fields}


def rows(*events: dict[str, object], scanned: int | None = None, start: int = 4, **fields: object) -> Rows:
    after = start + (len(events) if scanned is None else scanned)
    return Rows(start, page(*events, **{"scanned": scanned, "next_cursor": after, **fields}))  # type: ignore[arg-type]


OPENED = row(5, "ticket_created", status_to="open")
OFFERED_A = row(6, "ticket_offered", "board-reaper:PR-1", offered_agent_id=A)
OFFERED_B = row(6, "review_offered", "board-reaper:PR-1", offered_agent_id=B)
EXPIRED_A = row(7, "offer_expired", "board-reaper:PR-1", offered_agent_id=A)
REVOKED_BY_B = row(5, "offer_revoked", B, offered_agent_id=B)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (rows(OPENED, OFFERED_A), [OPENED]),
        (rows(OPENED, OFFERED_B), [OPENED, OFFERED_B]),
        (rows(OPENED, OFFERED_A, EXPIRED_A), [OPENED]),
        (rows(OPENED), [OPENED]),
        (rows(OFFERED_A, start=5), []),
        (rows({**OPENED, "actor": B}, OFFERED_A), []),
        (rows(REVOKED_BY_B), []),
        (rows(OPENED, OFFERED_A, scanned=3), None),
        (rows(OPENED, OFFERED_A, has_more=True), None),
        (rows(OPENED, OFFERED_A, next_cursor=7), None),
        (rows(OPENED, OFFERED_A, next_cursor=None), None),
        (rows(OPENED, row(6, "ticket_offered", offered_agent_id=None)), None),
        (rows(OPENED, row(6, "ticket_annotated")), None),
        (rows(OPENED, row(6, "ticket_claim_refused", offered_agent_id=A)), None),
        (rows(), None),
        (rows(scanned=1), None),
    ],
)
def test_what_a_seat_sees_of_rows_that_say_for_whom_they_are(found: Rows, expected: list[object] | None) -> None:
    assert found.seen_by(B) == expected


def test_pages_of_several_seats_complete_each_other() -> None:
    found = rows(OPENED, scanned=2)
    assert found.seen_by(B) is None
    found.add(page(OPENED, OFFERED_A, row(7, "ticket_annotated"), next_cursor=7))
    assert found.seen_by(B) == [OPENED]
    assert found.end == 6


def test_rows_before_the_cursor_are_none_of_them() -> None:
    found = rows(row(6, "ticket_created", status_to="open"), scanned=2)
    found.add(page(row(4, "ticket_created", status_to="open"), next_cursor=6))
    assert found.seen_by(B) is None


@given(boards(), st.lists(st.sampled_from([A, C]), min_size=1, max_size=2))
def test_what_rows_tell_is_what_the_seat_would_have_read(drawn: tuple[Board, int], readers: list[str]) -> None:
    board, cursor = drawn
    found = Rows(cursor, board.page(readers[0], cursor, 1000))
    for reader in readers[1:]:
        found.add(board.page(reader, cursor, 1000))
    seen = found.seen_by(B)
    if seen is not None:
        own = board.page(B, cursor, 1000)
        assert (seen, found.end) == (own["events"], own["next_cursor"])
