"""rules/human_round and rules/elicitation: whom a question may be put to, and what one round leaves for the next."""

import json
from typing import Any

import pytest
from mcp_types import ClientCapabilities

from pursersd.rules.elicitation import NO_FORM, NO_URL, Declared, declared
from pursersd.rules.human_question import SENSITIVE, Question, Target
from pursersd.rules.human_round import Expected, Round, expected, from_state, obstacle, request, to_state

TARGET = Target("alpha", "TK-1", "HR-1")


def question(schema: Any = None, url: str | None = None) -> Question:
    return Question(TARGET, "Which?", "decision", "ann", schema, url)


PLAIN, URL = question(), question(url="https://a.example/")
SECRET = question({"properties": {"password": {}}})


@pytest.mark.parametrize(
    ("capabilities", "found"),
    [
        (None, Declared()),
        ({}, Declared()),
        ({"elicitation": {}}, Declared(form=True, raw={})),
        ({"elicitation": {"form": {}}}, Declared(form=True, raw={"form": {}})),
        ({"elicitation": {"url": {}}}, Declared(url=True, raw={"url": {}})),
        ({"elicitation": {"form": {}, "url": {}}}, Declared(form=True, url=True, raw={"form": {}, "url": {}})),
        ({"elicitation": {"form": None}}, Declared(raw={"form": None})),
    ],
)
def test_what_a_host_declares(capabilities: Any, found: Declared) -> None:
    assert declared(None if capabilities is None else ClientCapabilities.model_validate(capabilities)) == found
    assert found.any is (found.form or found.url)


@pytest.mark.parametrize(
    ("asked", "host", "reason"),
    [
        (PLAIN, Declared(form=True), None),
        (PLAIN, Declared(url=True), NO_FORM),
        (PLAIN, Declared(), NO_FORM),
        (URL, Declared(url=True), None),
        (URL, Declared(form=True), NO_URL),
        (SECRET, Declared(form=True, url=True), SENSITIVE),
        (question({"properties": {"password": {}}}, "https://a.example/"), Declared(url=True), None),
    ],
)
def test_a_question_goes_only_to_a_host_that_can_show_it(asked: Question, host: Declared, reason: str | None) -> None:
    assert obstacle(asked, host) == reason


def test_how_a_question_is_put() -> None:
    assert request(URL).params.model_dump(exclude_none=True, by_alias=True) == {
        "mode": "url",
        "message": "[alpha/TK-1] Which?",
        "url": "https://a.example/",
    }
    form = request(PLAIN).params.model_dump(exclude_none=True, by_alias=True)
    assert (form["mode"], list(form["requestedSchema"]["properties"])) == ("form", ["disposition"])


def test_what_comes_back_is_what_was_asked() -> None:
    schema = {"type": "object", "properties": {"disposition": {"type": "string"}}}
    made = Round({"r0": expected(question(schema)), "r2": expected(URL)}, [{"ticket_id": "TK-2", "reason": "é"}])
    assert made.expected == {"r0": Expected(TARGET, "_pursers_disposition_2"), "r2": Expected(TARGET, "disposition")}
    assert from_state(to_state(made), "home") == made
    assert json.loads(to_state(made))["targets"]["r2"] == {
        "board": "alpha",
        "ticket_id": "TK-1",
        "request_id": "HR-1",
        "disposition_field": "disposition",
    }


@pytest.mark.parametrize("state", [None, "", "{", "[]", "{}", '{"targets": []}', '{"targets": {"r0": {}}}'])
def test_a_state_that_is_none_has_no_questions(state: str | None) -> None:
    assert from_state(state, "home").expected == {}


def test_what_a_state_leaves_out() -> None:
    found = from_state('{"targets": {"r0": {"ticket_id": "TK-1", "request_id": "HR-1"}}}', "home")
    assert found == Round({"r0": Expected(Target("home", "TK-1", "HR-1"), "disposition")}, [])
