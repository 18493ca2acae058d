"""errors: what has been told holds on to nothing."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from pursersd.errors import PursersError, Unreachable, let_go


class Page:
    """What a call had read when it failed."""


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Circles stay."""
    gc.disable()
    yield
    gc.enable()


def failed_call(pages: list[weakref.ref[Page]]) -> None:
    """Fails with circles all along: each frame knows its error, and the error its frame."""
    page = Page()
    pages.append(weakref.ref(page))
    try:
        try:
            raise ConnectionResetError("reset")
        except ConnectionResetError as reset:
            cause = reset
            raise Unreachable("lost") from cause
    except Unreachable as error:
        failure = error
    raise PursersError("told") from failure


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("is_told", [True, False])
def test_an_error_that_was_told_holds_on_to_nothing(is_told: bool) -> None:
    pages: list[weakref.ref[Page]] = []
    try:
        failed_call(pages)
    except PursersError as error:
        if is_told:
            let_go(error)
    assert (pages[0]() is None) is is_told
