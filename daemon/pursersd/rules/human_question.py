"""Questions that tickets put to a human: which are pending, what a caller is told of them, which may be a form (bridge.md §4).

A question is what `ticket_request_human` left on its ticket, in the shape in which Central reads it back.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ACTIONS = ("accept", "decline", "cancel")
DISPOSITIONS = ("reopen", "park", "cancel")
"""What becomes of the ticket."""

NEEDS_HUMAN = "needs_human"
"""The status of a ticket whose question is pending."""

MESSAGE_CHARS = 2000
SUMMARY_CHARS = 280

SENSITIVE = "This request requires secrets or credentials. Form elicitation is disabled; provide a trusted URL."

_SENSITIVE_WORDS = re.compile(
    r"\b(credentials?|passwords?|passphrases?|tokens?|secrets?|api\s*keys?|payments?)\b", re.IGNORECASE
)
_CASE_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Target:
    """Which question."""

    board: str
    ticket_id: str
    request_id: str

    def __str__(self) -> str:
        return f"{self.board}/{self.ticket_id}/{self.request_id}"

    @property
    def shown(self) -> dict[str, str]:
        """As results name it."""
        return {"board": self.board, "ticket_id": self.ticket_id, "request_id": self.request_id}


@dataclass(frozen=True, slots=True)
class Question:
    """One of them. `schema` and `resolution` are Central's own; without a schema any answer is one."""

    target: Target
    message: str
    kind: object
    asked_by: object
    schema: Mapping[str, Any] | None
    url: str | None
    resolution: Mapping[str, Any] | None = None

    @property
    def shown(self) -> str:
        """What the human reads."""
        return f"[{self.target.board}/{self.target.ticket_id}] {self.message}"[:MESSAGE_CHARS]

    @property
    def is_sensitive(self) -> bool:
        """Whether it asks for what no form may collect, by the names and titles of its fields."""
        return any(_SENSITIVE_WORDS.search(text) for text in _field_texts(self.schema))

    @property
    def summary(self) -> dict[str, object]:
        """What a caller is told of it who has to put it to a human in another way."""
        return {
            "board_id": self.target.board,
            "ticket_id": self.target.ticket_id,
            "request_id": self.target.request_id,
            "message": self.message,
            "kind": self.kind,
            "asked_by": self.asked_by,
            "schema_summary": _schema_summary(self.schema),
            "mode": "url" if self.url else "form",
            "url": self.url,
        }


def question(board: str, ticket: Mapping[str, Any]) -> Question | None:
    """The newest question of a ticket, whether it is pending or not; None if it never had one."""
    return next(iter(_questions(board, ticket)), None)


def pending(board: str, ticket: Mapping[str, Any]) -> list[Question]:
    """The questions of a ticket that nobody has answered."""
    if ticket.get("status", NEEDS_HUMAN) != NEEDS_HUMAN:
        return []
    return [found for found in _questions(board, ticket) if found.resolution is None]


def in_order(questions: Sequence[Question]) -> list[Question]:
    """As they are listed and asked."""
    return sorted(questions, key=lambda it: (it.target.board, it.target.ticket_id, it.target.request_id))


def disposition_name(schema: Mapping[str, Any] | None) -> str:
    """The name of the field that asks what becomes of the ticket: one that the question itself does not have."""
    names = set(_properties(schema))
    name, number = "disposition", 1
    while name in names:
        number += 1
        name = f"_pursers_disposition_{number}"
    return name


def with_disposition(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """The question's own schema as it is, and the field for what becomes of the ticket, which is required."""
    form: dict[str, Any] = dict(schema) if schema is not None and schema.get("type") == "object" else {"type": "object"}
    name = disposition_name(form)
    form["properties"] = {
        **_properties(form),
        name: {
            "type": "string",
            "enum": list(DISPOSITIONS),
            "title": "Disposition",
            "description": (
                "reopen: resume the ticket with this answer; "
                "park: keep the ticket waiting for a later answer; "
                "cancel: cancel the ticket"
            ),
        },
    }
    form["required"] = [*required(form), name]
    return form


def required(schema: Mapping[str, Any] | None) -> list[str]:
    """The names of the fields that an answer must have."""
    names = schema.get("required") if schema is not None else None
    return [str(name) for name in names] if isinstance(names, list) else []


def _questions(board: str, ticket: Mapping[str, Any]) -> Iterator[Question]:
    raw = ticket.get("human_request")
    for record in raw if isinstance(raw, list) else [raw]:
        if not isinstance(record, dict) or not isinstance(record.get("request_id"), str) or not record["request_id"]:
            continue
        asked_by, schema, resolution = record.get("asked_by"), record.get("requested_schema"), record.get("resolution")
        yield Question(
            target=Target(board, str(ticket["ticket_id"]), record["request_id"]),
            message=str(record.get("message") or "")[:MESSAGE_CHARS],
            kind=record.get("kind"),
            asked_by=asked_by.get("agent_name") if isinstance(asked_by, dict) else None,
            schema=schema if isinstance(schema, dict) else None,
            url=record["url"] if isinstance(record.get("url"), str) and record["url"] else None,
            resolution=resolution if isinstance(resolution, dict) else None,
        )


def _properties(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    found = schema.get("properties") if schema is not None else None
    return found if isinstance(found, dict) else {}


def _field_texts(schema: Mapping[str, Any] | None) -> Iterator[str]:
    """The names and titles of all fields, in words."""
    for name, definition in _properties(schema).items():
        title = definition.get("title") if isinstance(definition, dict) else None
        for text in (name, title):
            if isinstance(text, str):
                yield _CASE_BORDER.sub(" ", re.sub(r"[_\-/]+", " ", text))


def _schema_summary(schema: Mapping[str, Any] | None) -> str:
    if schema is None:
        return "no schema"
    must = set(required(schema))
    fields = [f"{name}{'*' if name in must else ''}:{_type(it)}" for name, it in _properties(schema).items()]
    summary = ", ".join(fields) or "empty schema"
    return summary if len(summary) <= SUMMARY_CHARS else f"{summary[: SUMMARY_CHARS - 1]}…"


def _type(definition: object) -> str:
    if not isinstance(definition, dict):
        return "any"
    if definition.get("enum") or isinstance(definition.get("oneOf"), list):
        return "enum"
    if isinstance(definition.get("type"), str):
        return str(definition["type"])
    return "multi-enum" if isinstance(definition.get("items"), dict) else "any"
