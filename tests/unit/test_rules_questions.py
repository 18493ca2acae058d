"""rules/questions: what has become of a question, whatever order its events come in, and what a wait returns."""

from itertools import combinations, permutations

import pytest
from pursers_client.client import coordinator_host_binding

from pursersd.errors import ArgumentError, NotAllowed
from pursersd.rules import questions
from pursersd.rules.host_binding import host_binding
from pursersd.rules.questions import (
    ACCEPTED,
    ANSWERED,
    ASKED,
    ASKERS,
    RELEASED,
    Asked,
    Json,
    Verdict,
    standing,
    verdict,
    wait_result,
)
from pursersd.secret import Secret

MINE = Asked("TK-1", "CQ-1")
ME = "AI-me"


def event(kind: str, **fields: object) -> Json:
    return {"kind": kind, "ticket_id": "TK-1", "question_id": "CQ-1", **fields}


def status(to: str, ticket: str = "TK-1") -> Json:
    return {"kind": "ticket_status_changed", "ticket_id": ticket, "status_to": to}


STRENGTHS: dict[str, tuple[Json, Verdict]] = {
    "answered": (event(ANSWERED), Verdict.ANSWERED),
    "closed": (status("closed"), Verdict.TICKET_ENDED),
    "accepted": (event(ACCEPTED), Verdict.ACCEPTED),
    "asked": (event(ASKED), Verdict.PENDING),
    "released": (event(RELEASED), Verdict.PENDING),
    "of another question": (event(ANSWERED, question_id="CQ-2"), Verdict.UNCHANGED),
    "of another ticket": (status("closed", "TK-2"), Verdict.UNCHANGED),
    "the asker's turn ended": ({"kind": "turn_ended", "ticket_id": "TK-1"}, Verdict.UNCHANGED),
}


@pytest.mark.parametrize("size", range(1, 6))
def test_the_strongest_of_a_batch_counts_in_every_order(size: int) -> None:
    for names in combinations(STRENGTHS, size):
        expected = max(STRENGTHS[name][1] for name in names)
        for order in permutations(names):
            assert verdict([STRENGTHS[name][0] for name in order], MINE) is expected, order


def test_the_order_of_strength() -> None:
    assert [v.name for v in sorted(Verdict, reverse=True)] == [
        "ANSWERED",
        "TICKET_ENDED",
        "WITHDRAWN",
        "ACCEPTED",
        "PENDING",
        "UNCHANGED",
    ]
    assert [v.name for v in Verdict if v.is_final] == ["WITHDRAWN", "TICKET_ENDED", "ANSWERED"]


@pytest.mark.parametrize("end", ["closed", "rejected", "canceled", "terminated"])
def test_every_end_of_a_ticket_is_one(end: str) -> None:
    assert verdict([status(end)], MINE) is Verdict.TICKET_ENDED
    assert standing({"status": end, "coordinator_questions": []}, MINE) is Verdict.TICKET_ENDED


@pytest.mark.parametrize("going_on", ["open", "claimed", "in_progress", "submitted", "needs_human"])
def test_a_ticket_that_goes_on_is_none(going_on: str) -> None:
    assert verdict([status(going_on)], MINE) is Verdict.UNCHANGED


def test_nothing_is_unchanged() -> None:
    assert verdict([], MINE) is Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("state", "ticket", "expected"),
    [
        ("open", "claimed", Verdict.PENDING),
        ("accepted", "claimed", Verdict.ACCEPTED),
        ("answered", "claimed", Verdict.ANSWERED),
        (None, "claimed", Verdict.WITHDRAWN),
        ("open", "canceled", Verdict.TICKET_ENDED),
        ("accepted", "closed", Verdict.TICKET_ENDED),
        (None, "closed", Verdict.TICKET_ENDED),
        ("answered", "closed", Verdict.ANSWERED),
        ("of a later Central", "claimed", Verdict.PENDING),
    ],
)
def test_what_the_board_says_now_is_judged_by_the_same_order(state: str | None, ticket: str, expected: Verdict) -> None:
    asked = [] if state is None else [{"question_id": "CQ-1", "state": state}]
    other = {"question_id": "CQ-2", "state": "answered"}
    assert standing({"status": ticket, "coordinator_questions": [other, *asked]}, MINE) is expected


def test_a_ticket_that_is_gone_has_ended() -> None:
    assert standing(None, MINE) is Verdict.TICKET_ENDED
    assert standing({}, MINE) is Verdict.WITHDRAWN


def test_the_first_event_that_says_so_is_the_one() -> None:
    events = [event(ANSWERED, question_id="CQ-2"), event(ACCEPTED), event(ANSWERED, seq=7), event(ANSWERED, seq=8)]
    found = questions.first(events, MINE, Verdict.ANSWERED)
    assert found is not None
    assert found["seq"] == 7
    assert questions.first(events, MINE, Verdict.TICKET_ENDED) is None


def test_a_question_is_shown_without_its_binding() -> None:
    ticket = {"coordinator_questions": ["rubbish", {"question_id": "CQ-1", "binding": "b", "state": "open"}]}
    assert questions.question_of(ticket, "CQ-1") == {"question_id": "CQ-1", "state": "open"}
    assert questions.question_of(ticket, "CQ-2") is None
    assert questions.question_of({}, "CQ-1") is None


def test_only_the_very_seat_asked() -> None:
    assert questions.is_by({"asked_by": {"agent_id": ME}}, ME)
    assert not questions.is_by({"asked_by": {"agent_id": "AI-other"}}, ME)
    assert not questions.is_by({}, ME)
    assert not questions.is_by(None, ME)


def test_the_binding_is_the_one_that_central_knows() -> None:
    assert host_binding(Secret("eyJ.a.b"), ME) == coordinator_host_binding("eyJ.a.b", ME)


def test_a_role_that_may_not_is_told_which_may() -> None:
    questions.require_role("reviewer", ASKERS, "question ask")
    with pytest.raises(NotAllowed, match=r"^question ask requires role reviewer or worker$"):
        questions.require_role("coordinator", ASKERS, "question ask")


@pytest.mark.parametrize("since_seq", [-1, 2**63])
def test_what_no_journal_has_is_refused(since_seq: int) -> None:
    with pytest.raises(ArgumentError, match=f"received {since_seq}"):
        questions.check_cursor(since_seq)
    questions.check_cursor(2**63 - 1)
    questions.check_cursor(0)


@pytest.mark.parametrize(("given", "expected"), [(-5, 1), (0, 1), (1, 1), (559, 559), (560, 560), (10**9, 560)])
def test_the_timeout_gives_way(given: int, expected: int) -> None:
    assert questions.clamped(given, 560) == expected


@pytest.mark.parametrize(
    ("question", "action", "is_done"),
    [
        (None, "answer", False),
        ({"state": "open"}, "answer", False),
        ({"state": "open"}, "accept", False),
        ({"state": "accepted", "accepted_by": {"agent_id": ME}}, "accept", True),
        ({"state": "accepted", "accepted_by": {"agent_id": ME}}, "answer", False),
        ({"state": "accepted", "accepted_by": {"agent_id": "AI-other"}}, "accept", False),
        ({"state": "answered"}, "accept", True),
        ({"state": "answered"}, "answer", True),
    ],
)
def test_what_a_lost_answer_may_have_done(question: Json | None, action: str, is_done: bool) -> None:
    assert questions.has_been_done(question, action, ME) is is_done


def test_the_results_of_a_wait() -> None:
    nothing = {
        "ok": True,
        "timed_out": True,
        "new_seq": 4,
        "event": None,
        "question": None,
        "delivery": "no_matching_event",
        "model_continuation": "host_managed",
    }
    assert wait_result(4) == nothing
    found = {"timed_out": False, "event": {"seq": 4}, "question": {"q": 1}, "delivery": "protocol_delivered"}
    assert wait_result(4, event={"seq": 4}, question={"q": 1}) == nothing | found
    ended = wait_result(4, question={"q": 1}, ended=Verdict.TICKET_ENDED)
    assert ended.pop("ended") == {
        "code": "ticket_ended",
        "message": "The ticket was finished before the question was answered. Go on without the answer.",
    }
    assert ended == nothing | {"timed_out": False, "question": {"q": 1}}
    gone = wait_result(4, ended=Verdict.WITHDRAWN)["ended"]
    assert isinstance(gone, dict)
    assert gone["code"] == "withdrawn"
    assert wait_result(4, warnings=[{"code": "x"}]) == nothing | {"warnings": [{"code": "x"}]}
