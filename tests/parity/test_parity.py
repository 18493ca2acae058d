"""Scenario by scenario: ours gives what the bridge gives, but for the differences that stand in differences.py."""

from collections.abc import Mapping

import pytest

from parity.company import Played
from parity.scenarios import ALL
from parity.verdict import problems


@pytest.mark.parametrize("name", ALL)
def test_ours_answers_as_the_bridge_does(played: Mapping[str, Played], name: str) -> None:
    theirs, ours = played[name].outcomes("bridge"), played[name].outcomes("ours")
    found = list(problems(name, theirs, ours))
    assert not found, "\n".join(found)
