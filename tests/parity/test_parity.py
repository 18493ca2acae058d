"""Scenario by scenario: ours gives what the bridge gives, but for the differences that stand in differences.py."""

import os
from collections.abc import Mapping

import pytest

from parity.company import Played
from parity.scenarios import ALL
from parity.verdict import problems

EVERYTHING = os.environ.get("PARITY") == "all"


@pytest.mark.parametrize("name", [name for name, scenario in ALL.items() if EVERYTHING or not scenario.extended])
def test_ours_answers_as_the_bridge_does(played: Mapping[str, Played], name: str) -> None:
    theirs, ours = played[name].outcomes("bridge"), played[name].outcomes("ours")
    found = list(problems(name, theirs, ours))
    assert not found, "\n".join(found)
