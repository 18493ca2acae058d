"""descriptors: as many as the system allows, and some kept for those that are here."""

import resource
from collections.abc import Iterator

import pytest

from pursersd import descriptors as module
from pursersd.descriptors import RESERVE, Descriptors, raise_limit


@pytest.fixture
def limits() -> Iterator[None]:
    """The soft limit is put back."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def allow(count: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@pytest.mark.usefixtures("limits")
def test_the_limit_is_raised_and_never_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(256)  # as launchd gives it
    monkeypatch.setattr(module, "WANTED", 512)
    assert raise_limit() == Descriptors().limit == 512
    allow(600)
    assert raise_limit() == 600


@pytest.mark.usefixtures("limits")
def test_the_reserve_is_kept_from_new_conversations() -> None:
    now = [0.0]
    found = Descriptors(clock=lambda: now[0])
    before = found.in_use
    assert found.has_room()
    assert found.refused_s is None
    with open("/dev/null") as _:
        assert found.in_use == before + 1
    allow(before + RESERVE)
    assert found.has_room()
    allow(before + RESERVE - 1)
    assert not found.has_room()
    now[0] = 10.0
    assert found.refused_s == 10.0
    now[0] = 61.0
    assert found.refused_s is None
