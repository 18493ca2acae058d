"""conversation.witness: what is told of a conversation, and what is counted."""

import time
from dataclasses import dataclass
from typing import Any

import pytest

from pursersd.api import State
from pursersd.api.events import StateChanged, Woke
from pursersd.conversation.witness import Witness


@dataclass
class Seen:
    """A conversation, as far as its witness looks."""

    id: str = "c-1"
    last_tool: str | None = "a2a_wait"
    state: State = "idle"
    host: str = "zed"
    seat_name: str | None = "ada"
    board: str | None = "b"


def test_a_change_of_state_says_what_was_before_and_for_how_long() -> None:
    witness = Witness()
    with witness.events.listening() as listener:
        witness.state_changed(Seen(), "waiting", time.monotonic() - 60)
        (told,) = listener.take()
    assert isinstance(told, StateChanged)
    assert (told.state, told.before, told.tool, told.seat) == ("idle", "waiting", "a2a_wait", "ada")
    assert 60 <= told.before_s < 120


def test_an_answer_with_events_is_a_wake_and_one_that_a_cue_caused_is_measured() -> None:
    witness, now = Witness(), time.monotonic()
    result = {"events": [{}, {}], "reason": "journal"}
    with witness.events.listening() as listener:
        witness.answered(Seen(), "a2a_wait", result, began=now - 5, cued_at=now - 2)
        witness.answered(Seen(), "a2a_wait", result, began=now - 5, cued_at=None)
        for nothing in ({"events": []}, {"error": {"code": "x"}}, {"events": None}):
            witness.answered(Seen(), "a2a_wait", nothing, began=now, cued_at=now)
        told = listener.take()
    assert witness.wakes == 2
    assert [row.count for row in witness.timings.rows() if row.kind == "wake"] == [1]
    measured, other = told
    assert isinstance(measured, Woke)
    assert isinstance(other, Woke)
    assert (measured.events, measured.reason, other.wake_s) == (2, "journal", None)
    assert measured.wake_s is not None
    assert 2 <= measured.wake_s < 5 <= measured.waited_s


QUESTION = {"question_id": "CQ-1", "answer": "Yes."}


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"event": {"kind": "coordinator_question_answered"}, "question": QUESTION}, "coordinator_question_answered"),
        ({"event": None, "question": QUESTION}, None),
        ({"event": None, "question": None, "ended": {"code": "ticket_ended", "message": "…"}}, "ticket_ended"),
    ],
)
def test_a_question_or_its_end_is_a_wake_too(result: dict[str, Any], reason: str | None) -> None:
    witness, now = Witness(), time.monotonic()
    with witness.events.listening() as listener:
        witness.answered(Seen(), "ticket_question_wait", result, began=now - 5, cued_at=now - 2)
        nothing = {"event": None, "question": None, "timed_out": True}
        witness.answered(Seen(), "ticket_question_wait", nothing, began=now - 5, cued_at=now - 2)
        (told,) = listener.take()
    assert isinstance(told, Woke)
    assert (told.tool, told.events, told.reason) == ("ticket_question_wait", 1, reason)
    assert witness.wakes == 1
    assert [(row.tool, row.count) for row in witness.timings.rows()] == [("ticket_question_wait", 1)]
