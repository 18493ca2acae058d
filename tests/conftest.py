"""Fixtures for every test, and the promise that the suite leaves no process behind."""

from collections.abc import Iterator

import pytest

from rig import processes
from rig.central import Central
from rig.daemon import Home
from rig.proxy import Proxy

BOARD = "alpha"
SUBJECTS = ("ann", "bob", "cleo")
"""Members of BOARD in the `central` fixture; `central.worker(subject, BOARD)` gives a token."""


@pytest.fixture(scope="session", autouse=True)
def nothing_left() -> Iterator[None]:
    """Fails the run if a process that a test started is still alive at its end; ends it, too."""
    yield
    left = processes.of_this_run()
    described = processes.describe(left)
    processes.end(left)
    assert not left, f"the suite left processes behind: {described}"


@pytest.fixture(scope="module")
def central() -> Iterator[Central]:
    """A running Central with BOARD, of which SUBJECTS are members."""
    with Central() as central:
        central.create_board(BOARD, dict.fromkeys(SUBJECTS, "member"))
        yield central


@pytest.fixture
def board(central: Central) -> str:
    """A fresh board of the module's Central, of which SUBJECTS are members."""
    name = f"board-{central.board_count()}"
    central.create_board(name, dict.fromkeys(SUBJECTS, "member"))
    return name


@pytest.fixture
def proxy(central: Central) -> Iterator[Proxy]:
    """A fault proxy in front of the module's Central."""
    with Proxy(central.port) as proxy:
        yield proxy


@pytest.fixture
def home() -> Iterator[Home]:
    """A private PURSERSD_HOME; nothing of it is left afterwards."""
    with Home() as home:
        yield home
