"""Scenario by scenario: ours gives what the bridge gives, but for the differences that stand in differences.py."""

from collections.abc import Mapping
from typing import Any

import pytest

from parity.company import Played
from parity.compare import differing
from parity.differences import DIFFERENCES
from parity.scenarios import ALL


def intended(scenario: str) -> dict[str, tuple[str, Any]]:
    """By path: which difference it is, and what ours must give there."""
    return {
        path: (difference.id, value)
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
        difference, value = expected[path]
        assert our == value, f"{path}: {difference} says that ours gives {value!r}; it gives {our!r}"
    for path, (difference, _) in expected.items():
        assert path in found, f"{path}: {difference} is no difference any more: both give the same"
