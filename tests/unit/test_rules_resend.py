"""rules/resend: what a second sending means, by tool, and what becomes of a call that was lost on the way."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.errors import (
    ArgumentError,
    CentralError,
    ConfigurationError,
    NotAllowed,
    Overloaded,
    ProtocolRefused,
    ToolFailed,
    Unauthenticated,
    UnknownBoard,
    Unreachable,
)
from pursersd.rules import resend
from pursersd.rules.resend import PATIENCE, TOOLS, Resend, Step, first_step, next_step, read_only

READ, WAIT, KEYED, VERIFY, MUTATING = Resend
REFUSED = Unreachable("refused", sent=False)
KEPT_BACK = Unreachable("nothing came", sent=False, silent=True)
LOST = Unreachable("lost")
GARBLED = ProtocolRefused("<html>", is_answer=False)
ANSWER = ToolFailed("t", "no")

CLASSES = {
    "project_registry_get": READ,
    "board_digest": READ,
    "board_digest_ack": KEYED,
    "board_watch": KEYED,
    "board_unwatch": KEYED,
    "board_human_request": VERIFY,
    "board_human_requests": VERIFY,
    "ticket_question_ask": KEYED,
    "board_question_inbox": READ,
    "ticket_question_answer": VERIFY,
    "board_question_wait": WAIT,
    "ticket_question_wait": WAIT,
    "a2a_wait": WAIT,
}
"""The thirteen tools of the bridge (bridge.md §1.4)."""


def test_every_tool_has_its_class_with_a_reason_and_a_way_to_look() -> None:
    assert {name: tool.resend for name, tool in TOOLS.items()} == CLASSES
    assert all(tool.why and tool.check.endswith(".") for tool in TOOLS.values())
    assert resend.tool("something_else").resend is MUTATING


def test_the_documented_table_is_this_one() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", text, re.MULTILINE)
    assert {name: (kind, why) for name, kind, why in rows} == {
        name: (tool.resend.value, tool.why) for name, tool in TOOLS.items()
    }


@pytest.mark.parametrize("name", [*CLASSES, "something_else"])
def test_what_may_change_a_board_is_not_called_read_only(name: str) -> None:
    assert read_only(name) is (resend.tool(name).resend in (READ, WAIT))


@pytest.mark.parametrize(
    ("kind", "before", "step"),
    [
        *((kind, False, Step.SEND) for kind in Resend),
        (READ, True, Step.SEND),
        (WAIT, True, Step.SEND),
        (KEYED, True, Step.SEND),
        (VERIFY, True, Step.LOOK),
        (MUTATING, True, Step.UNKNOWN),
    ],
)
def test_a_call_that_comes_again(kind: Resend, before: bool, step: Step) -> None:
    assert first_step(kind, sent_before=before) is step


@pytest.mark.parametrize(
    ("kind", "error", "attempt", "before", "step"),
    [
        # a lost answer
        (READ, LOST, 1, False, Step.SEND),
        (WAIT, LOST, 1, False, Step.SEND),
        (KEYED, LOST, 1, False, Step.SEND),
        (VERIFY, LOST, 1, False, Step.LOOK),
        (MUTATING, LOST, 1, False, Step.UNKNOWN),
        (MUTATING, Overloaded("502"), 1, False, Step.UNKNOWN),
        (MUTATING, GARBLED, 1, False, Step.UNKNOWN),
        # no connection: certainly not carried out this time
        (READ, REFUSED, 1, False, Step.SEND),
        (KEYED, REFUSED, 1, False, Step.SEND),
        (VERIFY, REFUSED, 1, False, Step.SEND),
        (VERIFY, REFUSED, 1, True, Step.LOOK),
        (MUTATING, REFUSED, 1, False, Step.SEND),
        (MUTATING, REFUSED, 2, False, Step.FAIL),
        (MUTATING, Overloaded("429", sent=False), 1, False, Step.SEND),
        # no patience left
        (READ, LOST, 3, True, Step.FAIL),
        (WAIT, REFUSED, 3, True, Step.FAIL),
        (KEYED, LOST, 3, False, Step.UNKNOWN),
        (KEYED, REFUSED, 3, True, Step.UNKNOWN),
        (KEYED, REFUSED, 3, False, Step.FAIL),
        (VERIFY, LOST, 3, False, Step.UNKNOWN),
        (VERIFY, REFUSED, 3, False, Step.FAIL),
        # kept back from a silent Central, after a patient probe
        (READ, KEPT_BACK, 1, False, Step.FAIL),
        (KEYED, KEPT_BACK, 1, False, Step.FAIL),
        (KEYED, KEPT_BACK, 2, True, Step.UNKNOWN),
        (VERIFY, KEPT_BACK, 1, False, Step.FAIL),
        (VERIFY, KEPT_BACK, 1, True, Step.UNKNOWN),
        (MUTATING, KEPT_BACK, 1, False, Step.FAIL),
        # an answer
        *((kind, ANSWER, 1, False, Step.FAIL) for kind in Resend),
        (READ, ANSWER, 2, True, Step.FAIL),
        (KEYED, ANSWER, 2, True, Step.LOOK),
        (VERIFY, ANSWER, 2, True, Step.LOOK),
        (KEYED, Unauthenticated("401"), 1, True, Step.LOOK),
        (READ, ProtocolRefused("-32602"), 1, False, Step.FAIL),
    ],
)
def test_a_sending_that_failed(kind: Resend, error: CentralError, attempt: int, before: bool, step: Step) -> None:
    assert next_step(kind, error, attempt=attempt, sent_before=before) is step


ERRORS = st.sampled_from([REFUSED, LOST, KEPT_BACK, ANSWER, Overloaded("503"), GARBLED, Unauthenticated("401")])


@given(st.sampled_from(Resend), ERRORS, st.integers(1, 5), st.booleans())
def test_no_call_that_may_have_run_fails_as_if_it_had_not(
    kind: Resend, error: CentralError, attempt: int, before: bool
) -> None:
    step = next_step(kind, error, attempt=attempt, sent_before=before)
    may_have_run = before or (error.sent and resend.is_loss(error))
    if resend.is_loss(error) and may_have_run and kind in (KEYED, VERIFY, MUTATING):
        assert step is not Step.FAIL
    if kind is MUTATING and may_have_run:
        assert step is not Step.SEND
    if not may_have_run:
        assert step is not Step.UNKNOWN
    if attempt >= PATIENCE[kind].attempts and resend.is_loss(error):
        assert step in (Step.FAIL, Step.UNKNOWN)


@pytest.mark.parametrize(
    ("error", "is_open"),
    [
        *((error, True) for error in (REFUSED, LOST, GARBLED, Overloaded("503"), Unauthenticated("401"))),
        (ToolFailed("board_join", "board access denied"), True),
        (UnknownBoard("no member"), True),
        (ConfigurationError("the door was forgotten"), True),
        (ANSWER, False),
        (ProtocolRefused("-32602"), False),
        (NotAllowed("requires role worker"), False),
        (ArgumentError("wrong"), False),
        (None, False),
    ],
)
def test_what_failed_before_anybody_could_look_is_open_if_it_had_been_sent_and_changes_something(
    error: BaseException | None, is_open: bool
) -> None:
    for kind in Resend:
        is_changing = kind in (KEYED, VERIFY, MUTATING)
        assert resend.leaves_open(kind, error, sent_before=True) is (is_open and is_changing)
        assert not resend.leaves_open(kind, error, sent_before=False)


@pytest.mark.parametrize(("asked", "pause"), [(None, 0.5), (0.0, 0.5), (7.0, 7.0), (3600.0, 30.0)])
def test_central_may_ask_for_a_longer_pause(asked: float | None, pause: float) -> None:
    assert resend.pause(Overloaded("503", retry_after_s=asked), 0.5) == pause
    assert resend.pause(LOST, 0.5) == 0.5


def test_a_key_is_the_same_for_the_same_call_and_fits_central() -> None:
    arguments = {"ticket_id": "TK-1", "message": "Grüße"}
    key = resend.key("c-1", 7, "ask", arguments)
    assert key == resend.key("c-1", 7, "ask", dict(reversed(arguments.items())))
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,80}", key)
    others = [
        resend.key("c-2", 7, "ask", arguments),
        resend.key("c-1", "7", "ask", arguments),
        resend.key("c-1", 8, "ask", arguments),
        resend.key("c-1", 7, "tell", arguments),
        resend.key("c-1", 7, "ask", {**arguments, "message": "Gruß"}),
        resend.key("c-1", 7, "ask", arguments, nth=1),
    ]
    assert len({key, *others}) == 7


def test_the_target_is_what_a_call_names() -> None:
    assert resend.target("ticket_question_ask", {"ticket_id": "TK-1", "message": "x", "message_id": None}) == {
        "ticket_id": "TK-1"
    }
    assert resend.target("something_else", {"ticket_id": "TK-1"}) == {}
