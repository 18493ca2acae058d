"""rules/local_board: names, addresses, principals, and the pauses between two starts."""

from itertools import islice

import pytest

from pursersd.rules import local_board as rules
from rig.central import Central


@pytest.mark.parametrize("name", ["local", "a.b-c_D9", "x" * 80])
def test_a_name_that_central_takes(name: str) -> None:
    assert rules.is_board(name)


@pytest.mark.parametrize("name", ["", "x" * 81, "a b", "a/b", "local\n", "ä"])
def test_a_name_that_it_does_not_take(name: str) -> None:
    assert not rules.is_board(name)


def test_the_address_is_loopback_and_out_of_reach_of_outgoing_connections() -> None:
    assert rules.url(28700) == "http://127.0.0.1:28700/mcp"
    assert max(rules.PORTS) < 32768  # where Linux begins to lend; macOS begins later


def test_a_principal_is_the_one_that_central_derives() -> None:
    central = Central.__new__(Central)
    central.issuer = rules.issuer(28700)
    assert rules.principal("b", "worker", 28700) == central.principal_id("door:b:worker", "door-b-worker")


def pauses(*served_s: float) -> list[float]:
    found = rules.Pauses(lambda: 1.0)
    return [found.after(served) for served in served_s]


def test_it_is_started_ever_more_slowly() -> None:
    assert pauses(*[0.0] * 4) == [0.5, 1.0, 2.0, 4.0]
    assert pauses(*[0.0] * 20)[-1] == rules.LAST_PAUSE


def test_one_that_was_steady_begins_anew() -> None:
    assert pauses(0, 0, rules.STEADY, 0) == [0.5, 1.0, 0.5, 1.0]
    assert list(islice(pauses(0, 0, rules.STEADY - 1), 2, None)) == [2.0]
