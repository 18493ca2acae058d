"""rules/human_form: a question as a flat form, and the answer in its own shape again."""

from typing import Any

import pytest
from mcp.server.elicitation import render_elicitation_schema
from pydantic import ValidationError

from pursersd.errors import ArgumentError
from pursersd.rules.human_form import form


def schema(*required: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required)}


def choices(*values: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "enum": list(values)}}


def answer(asked: Any, **content: Any) -> tuple[dict[str, Any], str]:
    return form(asked).model_validate({"disposition": "reopen", **content}).answer()


def test_every_kind_of_field_comes_back_as_it_was_asked() -> None:
    asked = schema(
        "a",
        a={"type": "string"},
        b={"type": "integer"},
        c={"type": "number"},
        d={"type": "boolean"},
        e={"type": "string", "enum": ["x", "y"]},
        f={"type": "string", "oneOf": [{"const": "s", "title": "small"}]},
        g=choices("one", "two", "three"),
    )
    content, disposition = answer(
        asked, a="é", b=1, c=0.5, d=False, e="y", f="s", _pursers_choice_6_0=True, _pursers_choice_6_2=True
    )
    assert content == {"a": "é", "b": 1, "c": 0.5, "d": False, "e": "y", "f": "s", "g": ["one", "three"]}
    assert disposition == "reopen"


def test_what_is_not_required_may_be_left_out() -> None:
    asked = schema("b", a={"type": "string"}, b=choices("x"), c=choices("x"), d={"type": "boolean", "default": True})
    assert answer(asked) == ({"b": [], "d": True}, "reopen")


def test_fields_never_share_a_name() -> None:
    asked = schema(
        disposition={"type": "string"},
        _pursers_choice_2_0={"type": "string"},
        list=choices("x"),
        field_0={"type": "string"},
    )
    content = {"disposition": "mine", "_pursers_choice_2_0": "mine", "_pursers_choice_2_0_2": True, "field_0": "0"}
    made = form(asked).model_validate({**content, "_pursers_disposition_2": "park"})
    assert made.answer() == (
        {"disposition": "mine", "_pursers_choice_2_0": "mine", "list": ["x"], "field_0": "0"},
        "park",
    )


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"a": "x" * 6},
        {"a": ""},
        {"a": "x", "b": 0},
        {"a": "x", "c": "z"},
        {"a": "x", "more": 1},
        {"a": "x", "disposition": "maybe"},
        {"a": 5},
    ],
)
def test_an_answer_that_does_not_fit_is_refused(content: dict[str, Any]) -> None:
    asked = schema(
        "a",
        a={"type": "string", "minLength": 1, "maxLength": 5},
        b={"type": "integer", "minimum": 1},
        c={"type": "string", "enum": ["x"]},
    )
    with pytest.raises(ValidationError):
        answer(asked, **content)


def test_the_disposition_is_required() -> None:
    with pytest.raises(ValidationError):
        form(None).model_validate({})
    assert form(None).model_validate({"disposition": "cancel"}).answer() == ({}, "cancel")


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ({"type": "array"}, "array fields must be string enums"),
        ({"type": "array", "items": {"enum": [1]}}, "array fields must be string enums"),
        ({"type": "object"}, "must be flat primitive values"),
        ({}, "must be flat primitive values"),
        (5, "must be flat primitive values"),
        ({"type": "string", "enum": []}, "choices must be strings"),
        ({"type": "string", "oneOf": [{"const": 1}]}, "choices must be strings"),
    ],
)
def test_what_no_form_can_ask(field: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        form(schema(a=field))


def test_the_form_is_one_that_the_protocol_knows_and_two_questions_do_not_mix() -> None:
    first, second = (
        form(schema(a=choices("x"))),
        form(schema("b", b={"type": "integer", "title": "B", "description": "d"})),
    )
    assert list(render_elicitation_schema(first)["properties"]) == ["_pursers_choice_0_0", "disposition"]
    shown = render_elicitation_schema(second)
    assert shown["properties"]["b"] == {"type": "integer", "title": "B", "description": "d"}
    assert shown["required"] == ["b", "disposition"]
