"""rules/human_answer: what a response means, and whether Central has it already."""

from typing import Any

import pytest
from mcp_types import ElicitResult

from pursersd.errors import ArgumentError
from pursersd.rules.human_answer import Answer, given, is_recorded, recorded, response
from pursersd.rules.human_question import Question, Target

TARGET = Target("alpha", "TK-1", "HR-1")
AT = 1_800_000_000.0
ISO = "2027-01-15T08:00:00+00:00"


def question(**resolution: Any) -> Question:
    made = {"resolved_by_principal_id": "PR-1", "resolved_at": ISO, "content": None, **resolution}
    return Question(TARGET, "Which?", "decision", "ann", None, None, made if resolution else None)


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ({"action": "accept"}, Answer("accept", "reopen")),
        ({"action": "decline"}, Answer("decline", "park")),
        ({"action": "accept", "disposition": "cancel"}, Answer("accept", "cancel")),
        ({"action": "decline", "disposition": "maybe"}, Answer("decline", "park")),
        ({"action": "accept", "content": {"a": 1}}, Answer("accept", "reopen", {"a": 1})),
        ({"action": "accept", "content": {}}, Answer("accept", "reopen")),
        ({"action": "cancel", "content": 5}, None),
    ],
)
def test_the_callers_own_answer(value: dict[str, Any], answer: Answer | None) -> None:
    assert given({"ticket_id": "TK-1", **value}).answer == answer


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "answer.ticket_id is required"),
        ({"ticket_id": 5}, "answer.ticket_id is required"),
        ({"ticket_id": "TK-1"}, "answer.action must be accept, decline, or cancel"),
        ({"ticket_id": "TK-1", "action": ["accept"]}, "answer.action must be"),
        ({"ticket_id": "TK-1", "action": "accept", "content": []}, "answer.content must be an object"),
    ],
)
def test_an_answer_that_is_none(value: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        given(value)


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({}, True),
        ({"board_id": "alpha", "request_id": "HR-1"}, True),
        ({"board_id": ""}, True),
        ({"board_id": "beta"}, False),
        ({"request_id": "HR-2"}, False),
        ({"ticket_id": "TK-2"}, False),
    ],
)
def test_which_question_it_is_meant_for(more: dict[str, Any], fits: bool) -> None:
    assert given({"ticket_id": "TK-1", "action": "decline", **more}).fits(question()) is fits


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (None, None),
        (ElicitResult(action="cancel"), None),
        (ElicitResult(action="decline"), Answer("decline", "park")),
        (ElicitResult(action="accept"), Answer("accept", "reopen")),
        (ElicitResult(action="accept", content={"d": "park", "a": 1}), Answer("accept", "park", {"a": 1})),
        (ElicitResult(action="accept", content={"d": "maybe"}), Answer("accept", "reopen")),
        ({"action": "accept"}, None),
    ],
)
def test_what_a_response_says(said: object, answer: Answer | None) -> None:
    assert response(said, "d") == answer


def test_the_same_answer_by_the_same_principal_is_recorded() -> None:
    accepted = Answer("accept", "reopen", {"a": 1})
    assert is_recorded(question(action="accept", content={"a": 1}), accepted, "PR-1")
    assert not is_recorded(question(action="accept", content={"a": 1}), accepted, "PR-2")
    assert not is_recorded(question(action="accept", content={"a": 2}), accepted, "PR-1")
    assert not is_recorded(question(action="decline", content={"a": 1}), accepted, "PR-1")
    assert not is_recorded(question(), accepted, "PR-1")
    assert is_recorded(question(action="decline"), Answer("decline", "park"), "PR-1")


@pytest.mark.parametrize(
    ("status", "disposition"),
    [("needs_human", "park"), ("canceled", "cancel"), ("open", "reopen"), ("claimed", "reopen")],
)
def test_what_became_of_a_question_after_a_call_was_made(status: str, disposition: str) -> None:
    assert recorded(question(action="decline"), status, "PR-1", since=AT - 60) == Answer("decline", disposition)


@pytest.mark.parametrize(
    "found",
    [
        question(),
        question(action="decline", resolved_by_principal_id="PR-2"),
        question(action="decline", resolved_at=None),
        question(action="decline", resolved_at="2027-01-15T07:58:00+00:00"),
        question(action=None),
    ],
)
def test_others_answers_and_older_ones_are_not_this_calls(found: Question) -> None:
    assert recorded(found, "open", "PR-1", since=AT) is None
