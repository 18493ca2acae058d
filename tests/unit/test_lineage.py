"""conversation/lineage: what a shim remembers of the processes behind it."""

import pytest

from pursersd.conversation.identity import ProcessIdentity
from pursersd.conversation.lineage import KEPT, Lineage, as_kept, to_keep

SHIM, HOST, SHELL = ProcessIdentity(3, 30.0), ProcessIdentity(1001, 10.5), ProcessIdentity(1002, 20.0)


@pytest.mark.parametrize("wrappers", [(), (SHELL,)])
def test_what_is_kept_is_understood(wrappers: tuple[ProcessIdentity, ...]) -> None:
    assert as_kept(to_keep(Lineage(SHIM, HOST, "/", "1", wrappers)), SHIM) == (HOST, wrappers)


def test_of_an_unknown_host_nothing_is_kept() -> None:
    assert to_keep(Lineage(SHIM, None, "/", "1")) == {}


@pytest.mark.parametrize("kept", [None, [], {}, "x", [[1]], [["1", 2.0]], [[1, 2.0, 3]], [None], [[3, 30.0]]])
def test_what_cannot_be_read_is_looked_for_anew(kept: object) -> None:
    assert as_kept({KEPT: kept}, SHIM) is None
    assert as_kept({}, SHIM) is None


def test_what_is_of_another_container_is_looked_for_anew() -> None:
    assert as_kept(to_keep(Lineage(SHIM, HOST, "/", "1")), ProcessIdentity(4, 30.0)) is None
