"""Whether the two sides of a scenario give the same, but for the differences that are intended."""

from collections.abc import Iterator
from typing import Any

from parity.compare import differing, value_at
from parity.differences import DIFFERENCES, Difference


def problems(scenario: str, theirs: list[Any], ours: list[Any]) -> Iterator[str]:
    """What is wrong with ours: a difference that is not intended, or an intended one that has gone or changed."""
    expected = intended(scenario)
    found = {path: (bridge, our) for path, bridge, our in differing(theirs, ours)}
    for path, (bridge, our) in found.items():
        if path not in expected:
            yield f"{path}: not an intended difference.\nbridge: {bridge!r}\nours:   {our!r}"
    for path, (difference, value) in expected.items():
        our = value_at(ours, path)
        if our != value:
            yield f"{path}: {difference.id} says that ours gives {value!r}; it gives {our!r}"
        elif path not in found and difference.always:
            yield f"{path}: {difference.id} is no difference any more: both give the same"


def intended(scenario: str) -> dict[str, tuple[Difference, Any]]:
    """By path: which difference it is, and what ours must give there."""
    return {
        path: (difference, value)
        for difference in DIFFERENCES
        for path, value in difference.ours.get(scenario, {}).items()
    }
