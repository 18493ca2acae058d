"""rules/human_question: which questions there are, what is told of them, and which no form may ask."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pursers_client import human_form_safety

from pursersd.rules.human_question import (
    DISPOSITIONS,
    MESSAGE_CHARS,
    Question,
    Target,
    disposition_name,
    in_order,
    pending,
    question,
    with_disposition,
)


def record(request_id: str = "HR-1", **fields: Any) -> dict[str, Any]:
    return {
        "request_id": request_id,
        "message": "Which?",
        "kind": "decision",
        "requested_schema": None,
        "url": None,
        "asked_by": {"agent_name": "ann"},
        "resolution": None,
        **fields,
    }


def ticket(human_request: Any, status: str = "needs_human") -> dict[str, Any]:
    return {"ticket_id": "TK-1", "status": status, "human_request": human_request}


def of(schema: Any) -> Question:
    found = question("alpha", ticket(record(requested_schema=schema)))
    assert found is not None
    return found


def form(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


@pytest.mark.parametrize(
    ("found", "ids"),
    [
        (ticket(record()), ["HR-1"]),
        (ticket([record(), record("HR-2")]), ["HR-1", "HR-2"]),
        (ticket([record(resolution={"action": "accept"}), record("HR-2")]), ["HR-2"]),
        (ticket(record(resolution={"action": "decline"})), []),
        (ticket(record(), status="open"), []),
        (ticket(record("")), []),
        (ticket({**record(), "request_id": 5}), []),
        (ticket(None), []),
        (ticket("HR-1"), []),
    ],
)
def test_what_is_pending(found: dict[str, Any], ids: list[str]) -> None:
    assert [each.target.request_id for each in pending("alpha", found)] == ids


def test_a_question_is_known_when_it_was_answered_too() -> None:
    found = question("alpha", ticket(record(resolution={"action": "accept"}), status="closed"))
    assert found is not None
    assert found.target == Target("alpha", "TK-1", "HR-1")
    assert found.resolution == {"action": "accept"}


def test_questions_have_one_order() -> None:
    made = [
        question(board, {"ticket_id": name, "human_request": record(number)})
        for board, name, number in [
            ("b", "TK-1", "HR-1"),
            ("a", "TK-2", "HR-1"),
            ("a", "TK-1", "HR-9"),
            ("a", "TK-1", "HR-2"),
        ]
    ]
    found = in_order([each for each in made if each is not None])
    assert [str(each.target) for each in found] == ["a/TK-1/HR-2", "a/TK-1/HR-9", "a/TK-2/HR-1", "b/TK-1/HR-1"]


def test_what_the_human_reads_is_bounded() -> None:
    found = question("alpha", ticket(record(message="x" * 3000)))
    assert found is not None
    assert found.shown.startswith("[alpha/TK-1] xxx")
    assert (len(found.shown), len(found.message)) == (MESSAGE_CHARS, MESSAGE_CHARS)


@pytest.mark.parametrize(
    ("schema", "summary"),
    [
        (None, "no schema"),
        ({"type": "object"}, "empty schema"),
        (form(), "empty schema"),
        (form(a={"type": "string"}, b={"enum": ["x"]}, c={"oneOf": []}), "a:string, b:enum, c:enum"),
        (form(a={"type": "array"}, b={"items": {}}, c=5, d={}), "a:array, b:multi-enum, c:any, d:any"),
        ({**form(a={"type": "number"}, b={"type": "boolean"}), "required": ["b"]}, "a:number, b*:boolean"),
        (form(**{"x" * 300: {}}), "x" * 279 + "…"),
    ],
)
def test_the_fields_in_short(schema: Any, summary: str) -> None:
    assert of(schema).summary["schema_summary"] == summary


@pytest.mark.parametrize(
    ("names", "name"),
    [
        ([], "disposition"),
        (["colour"], "disposition"),
        (["disposition"], "_pursers_disposition_2"),
        (["disposition", "_pursers_disposition_2"], "_pursers_disposition_3"),
    ],
)
def test_the_disposition_has_a_name_of_its_own(names: list[str], name: str) -> None:
    schema = form(**{each: {"type": "string"} for each in names})
    assert disposition_name(schema) == name
    asked = with_disposition(schema)
    assert list(asked["properties"]) == [*names, name]
    assert asked["properties"][name]["enum"] == list(DISPOSITIONS)
    assert asked["required"] == [name]
    assert list(schema["properties"]) == names


@pytest.mark.parametrize("schema", [None, {"type": "array"}, {"type": "object", "properties": 5, "required": 5}])
def test_without_fields_only_the_disposition_is_asked(schema: Any) -> None:
    asked = with_disposition(schema)
    assert asked["type"] == "object"
    assert list(asked["properties"]) == asked["required"] == ["disposition"]


WORDS = [
    "password",
    "Token",
    "apiKey",
    "API_key",
    "APIKeys",
    "pass-phrase",
    "credentials",
    "payment/card",
    "tokenise",
    "name",
]


@given(
    st.dictionaries(
        st.sampled_from(WORDS) | st.text(), st.fixed_dictionaries({}, optional={"title": st.sampled_from([*WORDS, 5])})
    )
)
def test_what_is_sensitive_is_what_the_bridge_takes_for_it(fields: dict[str, Any]) -> None:
    schema = form(**fields)
    safe, reason = human_form_safety("", schema)
    assert of(schema).is_sensitive is not safe
    assert safe or reason


def test_other_texts_are_not_sensitive() -> None:
    found = question(
        "alpha", ticket(record(message="the password", requested_schema=form(a={"description": "a token"})))
    )
    assert found is not None
    assert not found.is_sensitive
