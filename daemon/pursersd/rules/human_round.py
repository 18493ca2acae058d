"""A round of many questions: what is asked, what is not and why, and what the next call of it brings back (bridge.md §4.3).

What goes from one round to the next is the bridge's JSON, so that either program finishes what the other began.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitRequestURLParams

from pursersd.rules.elicitation import NO_FORM, NO_URL, Declared
from pursersd.rules.human_question import SENSITIVE, Question, Target, disposition_name, with_disposition

INSTRUCTIONS = (
    "This MCP client did not declare elicitation (form or url), so the "
    "questions were not rendered. Answer each request by calling "
    "board_human_requests again with answer={'ticket_id': ..., 'action': "
    "'accept'|'decline'|'cancel', 'content': {...}, 'disposition': "
    "'reopen'|'park'|'cancel'}, or use the fleet dashboard 'Waiting for "
    "you' panel."
)


@dataclass(frozen=True, slots=True)
class Expected:
    """A question that was asked, and the field of its answer that says what becomes of the ticket."""

    target: Target
    disposition_field: str


@dataclass(frozen=True, slots=True)
class Round:
    """What was asked, by the key of the answer, and what was not."""

    expected: Mapping[str, Expected]
    unasked: Sequence[Mapping[str, object]]


def obstacle(question: Question, declared: Declared) -> str | None:
    """Why this client cannot be asked this question; None if it can."""
    if question.url:
        return None if declared.url else NO_URL
    if question.is_sensitive:
        return SENSITIVE
    return None if declared.form else NO_FORM


def expected(question: Question) -> Expected:
    """What is expected of its answer."""
    return Expected(question.target, "disposition" if question.url else disposition_name(question.schema))


def request(question: Question) -> ElicitRequest:
    """The question for the host."""
    if question.url:
        return ElicitRequest(params=ElicitRequestURLParams(mode="url", message=question.shown, url=question.url))
    schema = with_disposition(question.schema)
    return ElicitRequest(params=ElicitRequestFormParams(mode="form", message=question.shown, requested_schema=schema))


def to_state(asked: Round) -> str:
    """What the next call must bring back."""
    targets = {
        key: {**one.target.shown, "disposition_field": one.disposition_field} for key, one in asked.expected.items()
    }
    return json.dumps({"targets": targets, "unasked": list(asked.unasked)}, separators=(",", ":"))


class _Target(msgspec.Struct):
    ticket_id: str
    request_id: str
    board: str = ""
    disposition_field: str = "disposition"


class _State(msgspec.Struct):
    targets: dict[str, _Target]
    unasked: list[dict[str, object]] = []


def from_state(state: str | None, home: str) -> Round:
    """What was asked, by the state that came back; nothing if it is none. `home` is the board where it names none."""
    try:
        found = msgspec.convert(json.loads(state or ""), _State)
    except ValueError:  # msgspec's errors are such
        return Round({}, ())
    return Round(
        {
            key: Expected(Target(one.board or home, one.ticket_id, one.request_id), one.disposition_field)
            for key, one in found.targets.items()
        },
        found.unasked,
    )
