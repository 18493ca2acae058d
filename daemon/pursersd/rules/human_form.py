"""A question as a flat form of primitive fields, and its answer in the shape that Central takes (bridge.md §4.2).

Forms know no lists: a list of choices becomes one yes-or-no field for each. Names, titles and texts are the bridge's to the
letter, because a question that was asked in one program must be the same one in the other: its rendering is part of the
sealed request state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from pursersd.errors import ArgumentError
from pursersd.rules.human_question import DISPOSITIONS, disposition_name, required

_TYPES: Mapping[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
_LIMITS = {
    "string": (("minLength", "min_length"), ("maxLength", "max_length")),
    "integer": (("minimum", "ge"), ("maximum", "le")),
    "number": (("minimum", "ge"), ("maximum", "le")),
    "boolean": (),
}


@dataclass(frozen=True, slots=True)
class _Choices:
    """A list of the question: the form's field for each choice."""

    fields: Mapping[str, str]
    is_required: bool


class Form(BaseModel):
    """An answer to a form. `form` makes a subclass with the fields of one question."""

    model_config = ConfigDict(extra="forbid")

    disposition_field: ClassVar[str] = "disposition"
    lists: ClassVar[Mapping[str, _Choices]] = {}

    def answer(self) -> tuple[dict[str, Any], str]:
        """The content for Central, and what becomes of the ticket."""
        given = self.model_dump(by_alias=True, exclude_none=True)
        disposition = str(given.pop(self.disposition_field))
        chosen: dict[str, list[str]] = {}
        for name, choices in self.lists.items():
            picked = [choice for field, choice in choices.fields.items() if given.pop(field)]
            if picked or choices.is_required:
                chosen[name] = picked
        return given | chosen, disposition


def form(schema: Mapping[str, Any] | None) -> type[Form]:
    """The form of a question with this schema. Raises ArgumentError for a field that no form can have."""
    found = schema.get("properties") if schema is not None else None
    properties = found if isinstance(found, dict) else {}
    must = set(required(schema))
    fields: dict[str, Any] = {}
    lists: dict[str, _Choices] = {}
    taken = set(properties)
    for index, (name, raw) in enumerate(properties.items()):
        definition = raw if isinstance(raw, dict) else {}
        if definition.get("type") != "array":
            fields[f"field_{index}"] = _primitive(name, definition, is_required=name in must)
            continue
        choices: dict[str, str] = {}
        for number, choice in enumerate(_list_choices(definition)):
            alias = _free(f"_pursers_choice_{index}_{number}", taken)
            choices[alias] = choice
            fields[f"field_{index}_choice_{number}"] = (bool, _choice(alias, name, definition, choice))
        lists[name] = _Choices(choices, name in must)
    disposition = disposition_name(schema)
    fields["pursers_disposition"] = (_one_of(DISPOSITIONS), _disposition(disposition))
    made: type[Form] = create_model("NeedsHumanResponse", __base__=Form, **fields)
    made.disposition_field, made.lists = disposition, lists
    return made


def _primitive(name: str, definition: Mapping[str, Any], *, is_required: bool) -> tuple[Any, Any]:
    kind = str(definition.get("type"))
    if kind not in _TYPES:
        raise ArgumentError("human request fields must be flat primitive values")
    choices = _choices(definition) if kind == "string" else None
    limits = {} if choices is not None else {ours: definition[its] for its, ours in _LIMITS[kind] if its in definition}
    description = definition.get("description")
    field = Field(
        default=... if is_required else definition.get("default"),
        alias=name,
        title=definition.get("title") or name,
        description=description if isinstance(description, str) else None,
        **limits,
    )
    return (_TYPES[kind] if choices is None else _one_of(choices)), field


def _choices(definition: Mapping[str, Any]) -> list[str] | None:
    """What a text may be; None if it may be anything."""
    choices = definition.get("enum")
    if not isinstance(choices, list):
        titled = definition.get("oneOf")
        if not isinstance(titled, list):
            return None
        choices = [choice.get("const") for choice in titled if isinstance(choice, dict)]
    if not choices or not all(isinstance(choice, str) for choice in choices):
        raise ArgumentError("human request choices must be strings")
    return choices


def _list_choices(definition: Mapping[str, Any]) -> list[str]:
    items = definition.get("items")
    choices = items.get("enum") if isinstance(items, dict) else None
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        raise ArgumentError("human request array fields must be string enums")
    return choices


def _choice(alias: str, name: str, definition: Mapping[str, Any], choice: str) -> Any:
    title = f"{definition.get('title') or name}: {choice}"
    text = f"Select this option to include {choice!r} in {name!r}."
    return Field(default=False, alias=alias, title=title, description=text)


def _disposition(alias: str) -> Any:
    text = "reopen: resume with this answer; park: keep waiting; cancel: cancel the ticket"
    return Field(default=..., alias=alias, title="Disposition", description=text)


def _free(wanted: str, taken: set[str]) -> str:
    """A name that no field has yet."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def _one_of(choices: tuple[str, ...] | list[str]) -> Any:
    return Literal.__getitem__(tuple(choices))
