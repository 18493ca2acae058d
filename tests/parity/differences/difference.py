"""What a difference is, and words for what ours gives."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, Any]
"""Dotted paths into the outcomes of a scenario (the first part is the number of the outcome), and what ours has there."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One intended difference."""

    id: str
    reason: str
    ours: Mapping[str, Fields]
    """By scenario."""
    always: bool = True
    """Whether the bridge always differs; if not, it depends on the speed of the machine."""


FAILED = {"mode": "error", "reason": "push_unavailable", "timed_out": False, "waited_s": "(some)"}
"""A wait that failed."""


def at(number: int, **fields: Any) -> dict[str, Any]:
    """Fields of the data of one outcome; two underscores stand for a dot."""
    return {f"{number}.data.{name.replace('__', '.')}": value for name, value in fields.items()}


def told(number: int, *events: Any, reason: str) -> dict[str, Any]:
    """Ours returns these events at its entry, where the bridge has nothing and waits."""
    return at(number, events=list(events), mode="poll", reason=reason, timed_out=False, waited_s="nothing")


def silent(number: int) -> dict[str, Any]:
    """Ours has nothing and waits, where the bridge returns events at its entry."""
    return at(number, events=[], mode="push", reason="timeout", timed_out=True, waited_s="all of timeout_s")


def silent_many(number: int, *boards: str) -> dict[str, Any]:
    """The same of a wait on many boards."""
    return silent(number) | {f"{number}.data.mode_by_board.<{board}>": "push" for board in boards}


def both(**fields: Any) -> dict[str, Any]:
    """The same in the first and the second outcome."""
    return at(0, **fields) | at(1, **fields)


def in_both_eras(scenario: str, fields: Fields) -> dict[str, Fields]:
    """The same in the scenario of each era."""
    return {f"{scenario}-{era}": fields for era in ("legacy", "modern")}
