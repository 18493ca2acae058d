"""Scenario by scenario: ours gives what the bridge gives, but for the differences that stand in differences.py."""

from collections.abc import Mapping
from typing import Any

import pytest

from parity.company import Played
from parity.compare import differing, value_at
from parity.differences import DIFFERENCES, Difference
from parity.scenarios import ALL


def intended(scenario: str) -> dict[str, tuple[Difference, Any]]:
    """By path: which difference it is, and what ours must give there."""
    return {
        path: (difference, value)
        for difference in DIFFERENCES
        for path, value in difference.ours.get(scenario, {}).items()
    }


@pytest.mark.parametrize("name", ALL)
def test_ours_answers_as_the_bridge_does(played: Mapping[str, Played], name: str) -> None:
    theirs, ours = played[name].outcomes("bridge"), played[name].outcomes("ours")
    expected = intended(name)
    found = {path: (bridge, our) for path, bridge, our in differing(theirs, ours)}
    for path, (bridge, our) in found.items():
        assert path in expected, f"{path}: not an intended difference.\nbridge: {bridge!r}\nours:   {our!r}"
    for path, (difference, value) in expected.items():
        our = value_at(ours, path)
        assert our == value, f"{path}: {difference.id} says that ours gives {value!r}; it gives {our!r}"
        gone = f"{path}: {difference.id} is no difference any more: both give the same"
        assert path in found or not difference.always, gone
