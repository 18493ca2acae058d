"""Where two outcomes differ, and small patterns for what one of them must be."""

from collections.abc import Iterator, Mapping
from typing import Any

ABSENT = "(absent)"
"""Stands for a field that is not there."""


def differing(theirs: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The places where the data differ, as dotted paths, with both values. The order of fields does not count.

    Lists of different lengths differ as a whole.
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted({*theirs, *ours}):
            yield from differing(theirs.get(name, ABSENT), ours.get(name, ABSENT), f"{path}.{name}" if path else name)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, pair in enumerate(zip(theirs, ours, strict=True)):
            yield from differing(*pair, f"{path}.{number}" if path else str(number))
    elif theirs != ours or type(theirs) is not type(ours):
        yield path, theirs, ours


def value_at(found: Any, path: str) -> Any:
    """What is at a dotted path, or ABSENT."""
    for part in path.split("."):
        if isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        elif isinstance(found, dict) and part in found:
            found = found[part]
        else:
            return ABSENT
    return found


class Says:
    """Equal to a text that holds all these phrases."""

    def __init__(self, *phrases: str) -> None:
        self._phrases = phrases

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and all(phrase in other for phrase in self._phrases)

    def __hash__(self) -> int:
        return hash(self._phrases)

    def __repr__(self) -> str:
        return f"a text with {' and '.join(map(repr, self._phrases))}"


class Has:
    """Equal to an object that has these fields, and maybe others."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and all(other.get(name) == value for name, value in self._fields.items())

    def __hash__(self) -> int:
        return hash(tuple(self._fields))

    def __repr__(self) -> str:
        return f"an object with {self._fields!r}"
