"""What goes into a digest: selection, tickets, counts, freshness, what is missing."""

from typing import Any

import pytest

from pursersd.errors import ArgumentError
from pursersd.rules.digest import MESSAGE_LIMIT, Sources, build, pending
from pursersd.rules.digest_arguments import Query, check, listed
from pursersd.rules.digest_buffer import Buffer
from pursersd.rules.digest_notes import notes_subset
from pursersd.rules.digest_record import Record
from pursersd.rules.digest_ticket import ends, told
from pursersd.rules.digest_tickets import Tickets

ALL = Query(boards=None, since=0)


def event(seq: int, ticket: str = "T", **fields: Any) -> dict[str, Any]:
    """A change of a ticket on board b."""
    at = f"2026-01-01T00:00:{seq:02}"
    kind = {"kind": "ticket_status_changed", "status_from": "open", "status_to": "claimed"}
    return (
        {"seq": seq, "id": f"EV-{seq}", "board_id": "b", "ticket_id": ticket, "actor": "x", "occurred_at": at}
        | kind
        | fields
    )


def digest(
    *events: dict[str, Any],
    tickets: dict[str, dict[str, Any]] | None = None,
    record: Record | None = None,
    query: Query = ALL,
    **sources: Any,
) -> dict[str, Any]:
    """The digest of board b."""
    rows = [("b", name, ticket) for name, ticket in (tickets or {}).items()]
    record = record or Record()
    given = {"connected": True, "cursors": {"b": 9}, **sources}
    return build(query, ["b"], query.places(["b"], record.cursors), Sources(events, rows, **given), record)


# --- freshness ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("connected", "since", "reasons"),
    [
        (True, 9, []),
        (True, 10, ["cursor_behind_request"]),
        (False, 9, ["subscription_disconnected"]),
        (False, 10, ["subscription_disconnected", "cursor_behind_request"]),
    ],
)
def test_it_says_whether_it_is_up_to_date(connected: bool, since: int, reasons: list[str]) -> None:
    found = digest(connected=connected, trouble="Central is away", query=Query(boards=None, since=since))
    status = "stale" if reasons else "current"
    assert (found["data_status"], found["stale"], found["stale_reasons"]) == (status, bool(reasons), reasons)
    behind = {"b": {"requested_cursor": 10, "available_cursor": 9}}
    assert found["lagging_boards"] == (behind if since == 10 else {})
    assert found["subscription"]["status"] == status
    assert ("detail" in found["subscription"]) is not connected


def test_a_board_that_is_not_followed_is_where_the_caller_is() -> None:
    found = build(ALL, ["b", "c"], {"b": 0, "c": 4}, Sources(cursors={"b": 9}, connected=True), Record())
    assert found["cursor_map"] == {"b": 9, "c": 4}
    assert not found["stale"]


@pytest.mark.parametrize(("since", "says"), [(4, True), (5, False)])
def test_a_place_before_the_oldest_event_is_named(since: int, says: bool) -> None:
    found = digest(missing={"b": 5}, query=Query(boards=None, since=since))
    assert [w["window"] for w in found.get("warnings", [])] == (["LW-DIGEST"] if says else [])


# --- tickets --------------------------------------------------------------------------------------------------------


def test_transitions_begin_with_the_creation_and_leave_annotations_out() -> None:
    item = digest(
        event(3), event(4, kind="ticket_annotated"), tickets={"T": {"created_at": "then", "created_by": "me"}}
    )
    begun = {"from": None, "to": "open", "actor": "me", "at": "then"}
    assert item["tickets"][0]["transitions"] == [
        begun,
        {"from": "open", "to": "claimed", "actor": "x", "at": event(3)["occurred_at"]},
    ]
    created = digest(
        event(3, kind="ticket_created", status_from=None, status_to=None), tickets={"T": {"created_at": "then"}}
    )
    assert [(t["from"], t["to"]) for t in created["tickets"][0]["transitions"]] == [(None, "open")]


@pytest.mark.parametrize(
    ("limit", "kept", "omitted"),
    [(None, "abcde", 0), (5, "abcde", 0), (4, "abde", 1), (3, "abe", 2), (2, "ae", 3), (1, "e", 4)],
)
def test_the_oldest_and_the_newest_transitions_are_kept(limit: int | None, kept: str, omitted: int) -> None:
    shown, left_out = ends([{"to": letter} for letter in "abcde"], limit)
    assert ("".join(str(t["to"]) for t in shown), left_out) == (kept, omitted)


def test_what_is_left_out_still_counts() -> None:
    found = digest(
        event(1, status_to="submitted"),
        event(2, status_to="closed"),
        event(3, status_to="canceled"),
        query=Query(boards=None, since=0, most_transitions=1),
    )
    counts = {
        name: found["counts"][name]
        for name in ("submitted", "closed", "cancelled", "transitions_omitted", "total_transitions")
    }
    assert counts == {"submitted": 1, "closed": 1, "cancelled": 1, "transitions_omitted": 2, "total_transitions": 1}
    assert found["tickets"][0]["closed_at"] == event(2)["occurred_at"]


def test_only_what_was_created_is_new() -> None:
    found = digest(event(1, "A", kind="ticket_created"), event(2, "B", status_from=None, kind="ticket_offered"))
    assert [ticket["ticket_id"] for ticket in found["new_tickets"]] == ["A"]


def test_what_is_watched_comes_first() -> None:
    record = Record(watched_ticket_ids=frozenset("C"), watched_tags=frozenset(["red"]))
    found = digest(event(1, "A"), event(2, "B"), event(3, "C"), tickets={"B": {"tags": ["red", 7]}}, record=record)
    assert [(t["ticket_id"], t["watched"]) for t in found["tickets"]] == [("B", True), ("C", True), ("A", False)]


def test_an_annotation_that_the_ticket_lost_is_told_without_its_text() -> None:
    events = [event(n, kind="ticket_annotated", annotation_id=f"AN-{n}", annotation_kind="note") for n in (1, 2)]
    kept = {"annotation_id": "AN-2", "text": "hello"}
    told_of = digest(*events, tickets={"T": {"annotations": [kept], "annotation_count": 2}})
    shown = [(a["annotation_id"], a["text"], a["omitted"], a["ticket_id"]) for a in told_of["annotations"]]
    assert shown == [("AN-1", None, True, "T"), ("AN-2", "hello", False, "T")]
    assert told_of["tickets"][0]["annotations"] == told_of["annotations"]
    assert told_of["tickets"][0]["annotation_count"] == 2


def test_what_the_ticket_does_not_say_is_taken_from_its_events() -> None:
    judged = event(2, review_verdict="reject", reviewed_by_agent_id="AI-r", rejection_count=2, title="Hello")
    one = told("b", "T", [event(1), judged], {}, notes_keys=(), most_transitions=None, watched=False).item
    assert one["review"] == {"verdict": "reject", "rejection_count": 2, "reviewer": "AI-r"}
    assert one["status_now"] == "claimed"
    known = {"review_verdict": "approve", "rejection_count": 3, "reviewed_by_agent_name": "rex"}
    one = told("b", "T", [judged], known, notes_keys=(), most_transitions=None, watched=False).item
    assert one["review"] == {"verdict": "approve", "rejection_count": 3, "reviewer": "rex"}


def test_requests_for_humans_are_told_until_they_are_acknowledged() -> None:
    requests = [
        {"request_id": "R-2", "message": "x" * 600, "asked_by": {"agent_name": "bob"}},
        {"request_id": "R-1", "resolution": {}},
        {"request_id": ""},
        "nonsense",
    ]
    ticket = {"status": "needs_human", "human_request": requests}
    (shown,) = digest(tickets={"T": ticket})["human_requests"]
    assert (shown["request_id"], shown["asked_by"], len(shown["message"])) == ("R-2", "bob", MESSAGE_LIMIT)
    assert not digest(tickets={"T": ticket}, record=Record(human_requests=frozenset(["R-2"])))["human_requests"]
    assert not pending({**ticket, "status": "open"})


def test_work_for_nobody_is_told() -> None:
    state = {"state": "unassignable", "reason": "no seat", "kind": "work"}
    found = digest(tickets={"B": {"dispatch_state": state}, "A": {"dispatch_state": {"state": "offered"}}})
    assert found["unassignable_tickets"] == [{"board_id": "b", "ticket_id": "B", "reason": "no seat", "kind": "work"}]


@pytest.mark.parametrize(
    ("ticket", "found"),
    [
        ({"size": 3, "notes": "size: 4"}, 3),
        ({"submission_history": [{"size": 1}, {"size": 2}, {"notes": "size: 5"}]}, 2),
        ({"notes": '{"size": null}'}, None),
        ({"notes": "Text.\n  Size = 4 m \n", "submission_history": [{"summary": "size: 5"}]}, "4 m"),
        ({"submission_history": [{"notes": "size: 5"}, {"summary": "size: 6"}]}, "6"),
    ],
)
def test_a_field_of_the_notes(ticket: dict[str, Any], found: object) -> None:
    assert notes_subset(ticket, ["size", "nothing"]) == {"size": found}


def test_the_commit_is_found_in_a_sentence() -> None:
    assert notes_subset({"summary": "Done, see branch_and_commit a/b @ 1"}, ["branch_and_commit"]) == {
        "branch_and_commit": "a/b @ 1"
    }


# --- arguments ------------------------------------------------------------------------------------------------------


def query(**given: Any) -> Query:
    """A checked call."""
    return check(
        **{"boards": "registry", "since": None, "include_notes_keys": None, "max_transitions_per_ticket": None, **given}
    )


def test_boards_and_places() -> None:
    assert query().boards is None
    assert query(boards=" a, b,,a").boards == ("a", "b")
    assert query(boards=[" a ", "b", "a"]).boards == ("a", "b")
    assert query(boards="").boards == ()
    assert query().places(["a", "b"], {"a": 3}) == {"a": 3, "b": 0}
    assert query(since=-4).places(["a"], {"a": 3}) == {"a": 0}
    assert query(since={"b": 2}).places(["a", "b"], {"a": 3}) == {"a": 0, "b": 2}
    assert listed(" a ,,b") == listed([" a", "", "b "]) == ["a", "b"]
    assert listed(None) == []


@pytest.mark.parametrize("wrong", [{"boards": []}, {"boards": ["a", " "]}, {"max_transitions_per_ticket": 0}])
def test_what_is_refused_is_said(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=r"must .*; received"):
        query(**wrong)


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_each_reader_sees_its_own_events_and_each_is_kept_once() -> None:
    buffer = Buffer()
    assert len(buffer.add("b", "ann", [event(1), event(3)])) == 2
    assert len(buffer.add("b", "bob", [event(1), event(2), event(3)])) == 3
    assert not buffer.add("b", "ann", [event(3)])
    assert len(buffer) == 3
    assert [e["seq"] for e in buffer.events({"b": "ann"}, {"b": 0})] == [1, 3]
    assert [e["seq"] for e in buffer.events({"b": "bob"}, {"b": 1})] == [2, 3]
    assert not buffer.events({"c": "ann"}, {"c": 0})


def test_the_oldest_events_give_way_and_that_is_known() -> None:
    buffer = Buffer(limit=3)
    buffer.add("b", "ann", [event(n) for n in (1, 2)])
    buffer.add("c", "ann", [event(n) for n in (7, 8)])
    assert buffer.dropped("b") == 1
    assert buffer.dropped("c") == 0
    assert [e["seq"] for e in buffer.events({"b": "ann", "c": "ann"}, {"b": 0, "c": 0})] == [2, 7, 8]
    buffer.forget("b")
    assert buffer.dropped("b") == 0
    assert len(buffer) == 2


def test_a_ticket_is_read_again_after_each_change_and_not_otherwise() -> None:
    tickets = Tickets()
    tickets.changed("b", "T", "ann")
    asked = tickets.stale("b")
    tickets.changed("b", "T", "bob")  # while Central answers
    tickets.read("b", "T", {"title": "old"}, asked["T"])
    assert tickets.stale("b").keys() == {"T"}
    tickets.read("b", "T", None, tickets.stale("b")["T"])
    assert not tickets.stale("b")
    assert list(tickets.seen({"b": "ann"})) == [("b", "T", {"title": "old"})]
    assert not list(tickets.seen({"b": "eve"}))
    assert not list(tickets.seen({"c": "ann"}))


def test_tickets_are_bounded() -> None:
    tickets = Tickets(limit=2)
    for name in "ABA":
        tickets.changed("b", name, "ann")
    tickets.changed("b", "C", "ann")
    assert [name for _, name, _ in tickets.seen({"b": "ann"})] == ["A", "C"]
    tickets.forget("b")
    assert not len(tickets)
