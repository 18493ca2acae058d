"""Fixtures for every test, and the promise that the suite leaves no process behind."""

from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from rig import canary, processes
from rig.central import Central
from rig.daemon import Home
from rig.proxy import Proxy

# Timings never fail a test, and every run tries the same examples.
settings.register_profile(
    "suite", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

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
    assert not canary.leaks, f"a credential was seen in: {canary.leaks}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test printed or logged is looked at, too; a failed one may show what it likes."""
    report = yield
    if report.passed:
        for name, text in report.sections:
            canary.look(f"{name} of {item.nodeid}", text.encode())
    return report


@pytest.fixture(autouse=True)
def no_leak() -> Iterator[None]:
    """Fails a test during which a token was seen somewhere (rig.canary)."""
    yield
    found = canary.leaks[:]
    canary.leaks.clear()
    assert not found, f"a credential was seen in: {found}"


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
