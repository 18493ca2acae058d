"""errors: what has been told holds on to nothing."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import anyio
import pytest

from pursersd.errors import PursersError, Unreachable, let_go
from pursersd.feed.centrals import Central
from pursersd.rules import arguments
from pursersd.rules.denials import Denials
from pursersd.rules.suppression import Suppression, SyntheticGuard
from pursersd.settings import resolve
from pursersd.waits import engine
from pursersd.waits.board import Memory
from pursersd.waits.caller import Caller


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


class Lasting:
    """A credential that nobody replaces."""

    settings = resolve({}, lambda path: "")
    key = None

    def refused(self) -> bool:
        return False

    def until_renewed(self) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.mark.usefixtures("uncollected")
def test_a_wait_that_failed_lets_go_of_what_it_had_read() -> None:
    """While a Central is away, a hundred models try again and again, each with its history."""
    pages: list[weakref.ref[Page]] = []

    async def connect() -> Central:
        page = Page()
        pages.append(weakref.ref(page))
        failure = Unreachable("connection refused", sent=False)
        raise failure

    def nobody(*_: object) -> Any:
        raise AssertionError

    async def body() -> dict[str, object]:
        memory = Memory(Suppression(), SyntheticGuard())
        caller = Caller("c-1", Lasting.settings, Lasting(), memory, Denials(), connect, nobody, nobody, nobody)
        checked = arguments.check(
            since_seq=3,
            timeout_s=1,
            timeout_given=True,
            only_mine=True,
            project=None,
            agent_name=None,
            boards=None,
            wait_for="auto",
            block_limit_s=50,
        )
        return (await engine.wait(caller, checked)).result

    result = anyio.run(body)
    assert cast(dict[str, object], result["error"])["cause_class"] == "transport"
    assert [page() for page in pages] == [None]
