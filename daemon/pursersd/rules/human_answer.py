"""Answers to questions: what a human's response means, and whether Central has it already (bridge.md §4, central.md §8)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pursersd.errors import ArgumentError
from pursersd.rules.events import text
from pursersd.rules.human_question import ACTIONS, DISPOSITIONS, Question

CLOCKS = 5.0
"""Seconds by which the order of two things may be in doubt whose times different clocks tell."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What Central shall be told. A human who cancelled gave none."""

    action: str
    disposition: str
    content: Mapping[str, Any] | None = None

    @property
    def shown(self) -> dict[str, str]:
        """The part of it that results show."""
        return {"action": self.action, "disposition": self.disposition}


@dataclass(frozen=True, slots=True)
class Given:
    """The argument `answer` of board_human_requests, checked. `answer` None: the human wants to be asked later."""

    ticket_id: str
    answer: Answer | None
    board: str | None = None
    request_id: str | None = None

    def fits(self, question: Question) -> bool:
        """Whether it is meant for this question."""
        return (
            question.target.ticket_id == self.ticket_id
            and self.board in (None, question.target.board)
            and self.request_id in (None, question.target.request_id)
        )


def given(value: Mapping[str, Any]) -> Given:
    """Check the argument `answer`. Raises ArgumentError with the bridge's texts."""
    ticket_id, action, content = value.get("ticket_id"), value.get("action"), value.get("content")
    if not isinstance(ticket_id, str) or not ticket_id:
        raise ArgumentError("answer.ticket_id is required")
    if action not in ACTIONS:
        raise ArgumentError("answer.action must be accept, decline, or cancel")
    if action == "cancel":
        return Given(ticket_id, None)
    if content is not None and not isinstance(content, dict):
        raise ArgumentError("answer.content must be an object")
    answer = Answer(action, _disposition(action, value.get("disposition")), content or None)
    return Given(ticket_id, answer, text(value.get("board_id")), text(value.get("request_id")))


def response(value: object, disposition_field: str) -> Answer | None:
    """What the host's response to a form or a URL says; None if the human gave no answer, or the host none that counts."""
    action, content = getattr(value, "action", None), getattr(value, "content", None)
    if action not in ("accept", "decline"):
        return None
    given = dict(content) if isinstance(content, dict) else {}
    disposition = _disposition(action, given.pop(disposition_field, None))
    return Answer(action, disposition, given or None)


def is_recorded(question: Question, answer: Answer, principal_id: str) -> bool:
    """Whether it was resolved with this very answer, by this principal."""
    resolution = question.resolution or {}
    return (
        resolution.get("resolved_by_principal_id") == principal_id
        and resolution.get("action") == answer.action
        and (resolution.get("content") or None) == answer.content
    )


def recorded(question: Question, status: object, principal_id: str, *, since: float) -> Answer | None:
    """The answer that this principal gave to a question since then (by Central's clock), without its content."""
    resolution = question.resolution or {}
    action, at = resolution.get("action"), resolution.get("resolved_at")
    if resolution.get("resolved_by_principal_id") != principal_id or not isinstance(at, str) or action not in ACTIONS:
        return None
    if datetime.fromisoformat(at).timestamp() < since - CLOCKS:
        return None
    return Answer(str(action), {"needs_human": "park", "canceled": "cancel"}.get(str(status), "reopen"))


def _disposition(action: object, value: object) -> str:
    if isinstance(value, str) and value in DISPOSITIONS:
        return value
    return "reopen" if action == "accept" else "park"
