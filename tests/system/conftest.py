"""Fixtures for tests with real processes: conversations in a private home."""

from collections.abc import Iterator

import pytest

from rig.central import Central
from rig.daemon import Home
from rig.shim import ShimProcess
from system.scene import Bystander, Converse


@pytest.fixture(scope="session")
def central() -> Iterator[Central]:
    """One running Central for all of these tests; each takes a fresh `board` of it."""
    with Central() as central:
        yield central


@pytest.fixture
def converse(central: Central, home: Home, board: str) -> Converse:
    """Starts a conversation through a shim and finishes its handshake; `home` ends it.

    converse(agent, subject="ann", url=None, hosted=False, **environment): `url` may be a proxy's.
    """
    tokens: dict[str, str] = {}

    def start(
        agent: str, subject: str = "ann", url: str | None = None, *, hosted: bool = False, **environment: str
    ) -> ShimProcess:
        if subject not in tokens:
            tokens[subject] = central.worker(subject, board)
        place = home.environment(url or central.url, tokens[subject], board, agent, extra=environment)
        shim = home.shim(place, hosted=hosted)
        shim.initialize()
        return shim

    return start


@pytest.fixture(scope="module")
def watched(central: Central) -> Iterator[Bystander]:
    """The module's bystander, in a home of its own."""
    board = f"watched-{central.board_count()}"
    central.create_board(board)
    with Home() as home:
        yield Bystander(central, home, board)


@pytest.fixture
def bystander(watched: Bystander) -> Iterator[Bystander]:
    """A conversation in the home under test that waits all the time; the test fails at its end if that was disturbed."""
    yield watched
    watched.assert_undisturbed()
