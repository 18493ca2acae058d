"""central/streams: one stream that follows its wishes, with a scripted opener in Central's place."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.lowlevel import checkpoint

from pursersd.central import streams
from pursersd.central.streams import KeptStream
from pursersd.errors import ProtocolRefused, Unauthenticated, Unreachable
from unit.scripted_streams import Script

pytestmark = pytest.mark.anyio

PATIENCE = 30.0  # seconds for something that must happen
OVERFLOW = None
REFUSED = Unreachable("connection refused", sent=False)
CUT = Unreachable("the connection was lost")


def denied(uri: str) -> ProtocolRefused:
    return ProtocolRefused(f"subscription denied: principal is not authorized for resource {uri}")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Heard:
    """A StreamListener that writes down."""

    def __init__(self) -> None:
        self.cues: list[str] = []
        self.changes: list[tuple[str, str]] = []
        """(gained, lost), without the changes that brought neither."""
        self.calls = 0

    def stream_cue(self, uri: str) -> None:
        self.cues.append(uri)

    def stream_changed(self, gained: frozenset[str], lost: frozenset[str]) -> None:
        self.calls += 1
        if gained or lost:
            self.changes.append((" ".join(sorted(gained)), " ".join(sorted(lost))))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Scene:
    """A kept stream at work."""

    def __init__(self, *, overlap: bool, reachable: Callable[[], Awaitable[None]] = checkpoint) -> None:
        self.script, self.heard, self.clock = Script(), Heard(), Clock()
        self.kept = KeptStream(
            "X", self.script.open, self.heard, overlap=overlap, settle=0.0, reachable=reachable, clock=self.clock
        )

    async def want(self, *uris: str) -> None:
        """Wish, and wait until exactly this is covered."""
        self.kept.want(uris)
        await self.until(lambda: self.kept.covered == frozenset(uris))

    async def until(self, condition: Callable[[], object]) -> None:
        with anyio.fail_after(PATIENCE):
            while not condition():
                await anyio.sleep(0.001)


@asynccontextmanager
async def running(*, overlap: bool = True) -> AsyncIterator[Scene]:
    scene = Scene(overlap=overlap)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.kept.run)
        await anyio.wait_all_tasks_blocked()
        yield scene
        tasks.cancel_scope.cancel()


@pytest.fixture
def no_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses so long that only a change of mind brings another attempt within a test."""
    monkeypatch.setattr(streams, "FIRST_RETRY", 1000.0)
    monkeypatch.setattr(streams, "LAST_RETRY", 1000.0)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pauses were made since each time that they began anew."""
    made: list[int] = []

    def delays(first: float, cap: float, rng: object) -> Iterator[float]:
        made.append(0)
        place = len(made) - 1
        while True:
            made[place] += 1
            yield 0.001

    monkeypatch.setattr(streams, "delays", delays)
    return made


async def test_it_opens_what_is_wanted_and_passes_cues_on() -> None:
    async with running() as scene:
        assert not scene.kept.is_open
        await scene.want("a", "b")
        assert scene.kept.is_open
        scene.script.streams["a b"].cue("b")
        scene.script.streams["a b"].cue("a")
        await scene.until(lambda: scene.heard.cues == ["b", "a"])
        assert scene.heard.changes == [("a b", "")]
    assert scene.script.log == ["open a b", "close a b"]


async def test_with_overlap_the_next_is_open_before_the_old_is_closed() -> None:
    async with running(overlap=True) as scene:
        await scene.want("a")
        await scene.want("a", "b")
        # Central may have cued the old stream alone while it was making the new one.
        scene.script.streams["a"].cue("a")
        await scene.until(lambda: "close a" in scene.script.log)
        assert scene.script.log == ["open a", "open a b", "close a"]
        assert scene.heard.cues == ["a"]
        assert scene.heard.changes == [("a", ""), ("b", "")]  # `a` was covered all the time


async def test_without_overlap_the_old_is_closed_before_the_next_is_asked_for() -> None:
    async with running(overlap=False) as scene:
        await scene.want("a")
        await scene.want("a", "b")
        assert scene.script.log == ["open a", "close a", "open a b"]
        assert scene.heard.changes == [("a", ""), ("", "a"), ("a b", "")]
        assert scene.kept.reconnects == 0


async def test_without_overlap_central_has_time_to_notice_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends after the next one began would take the liveness of its seats with it (central.md §4.4)."""
    pauses: list[float] = []
    sleep = anyio.sleep

    async def noted(seconds: float) -> None:
        if seconds > 0.01:
            pauses.append(seconds)
        await sleep(0)

    async with running(overlap=False) as scene:
        monkeypatch.setattr(anyio, "sleep", noted)
        scene.kept.want("a")
        await scene.until(lambda: scene.kept.covered == {"a"})
        assert pauses == []
        scene.kept.want(("a", "b"))
        await scene.until(lambda: scene.kept.covered == {"a", "b"})
        assert pauses == [pytest.approx(streams.APART)]
        assert scene.script.log == ["open a", "close a", "open a b"]


@pytest.mark.parametrize("overlap", [True, False])
async def test_several_wishes_in_a_moment_are_one_stream(overlap: bool) -> None:
    async with running(overlap=overlap) as scene:
        for count in range(1, 6):
            scene.kept.want("abcde"[:count])
        await scene.want(*"abcde")
        assert scene.script.log == ["open a b c d e"]


async def test_nothing_wanted_closes_the_stream() -> None:
    async with running() as scene:
        await scene.want("a")
        await scene.want()
        assert scene.script.log == ["open a", "close a"]
        assert scene.heard.changes == [("a", ""), ("", "a")]
        await scene.want("a")


async def test_a_denial_keeps_the_rest_and_the_old_stream() -> None:
    async with running(overlap=True) as scene:
        await scene.want("a")
        scene.script.errors.append(denied("no"))
        scene.kept.want(["a", "no"])
        await scene.until(lambda: scene.kept.denied)
        await anyio.wait_all_tasks_blocked()
        assert scene.kept.covered == {"a"}
        assert scene.script.log == ["open a", "fail a no"]
        assert "not authorized" in scene.kept.denied["no"]
        assert scene.kept.trouble is None
        scene.kept.want(["a", "b", "no"])
        await scene.until(lambda: scene.kept.covered == {"a", "b"})


async def test_a_denial_without_overlap_reopens_without_the_denied() -> None:
    async with running(overlap=False) as scene:
        await scene.want("a")
        scene.script.errors.append(denied("no"))
        scene.kept.want(["a", "no"])
        await scene.until(lambda: scene.kept.denied and scene.kept.covered == {"a"})
        assert scene.script.log == ["open a", "close a", "fail a no", "open a"]
        assert scene.kept.reconnects == 0


async def test_two_denials_are_found_one_after_the_other_without_a_pause(no_retry: None) -> None:
    async with running() as scene:
        scene.script.errors += [denied("no"), denied("never")]
        scene.kept.want(["a", "no", "never"])
        await scene.until(lambda: scene.kept.covered == {"a"})
        assert scene.kept.denied.keys() == {"no", "never"}


async def test_what_was_denied_is_asked_for_again_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "DENIED_RETRY", 0.02)
    async with running() as scene:
        scene.script.errors.append(denied("no"))
        scene.kept.want(["a", "no"])
        await scene.until(lambda: scene.kept.covered == {"a", "no"})
        assert not scene.kept.denied


async def test_retry_asks_for_the_denied_at_once() -> None:
    async with running() as scene:
        scene.script.errors.append(denied("no"))
        scene.kept.want(["a", "no"])
        await scene.until(lambda: scene.kept.covered == {"a"})
        scene.kept.retry()
        await scene.until(lambda: scene.kept.covered == {"a", "no"})


async def test_the_denial_of_something_never_asked_for_is_a_failure_with_a_pause(no_retry: None) -> None:
    async with running() as scene:
        scene.script.always = denied("<invalid-resource>")
        scene.kept.want(["a"])
        await scene.until(lambda: scene.kept.trouble)
        await anyio.wait_all_tasks_blocked()
        assert scene.script.log == ["fail a"]
        assert not scene.kept.denied


async def test_a_loss_is_told_and_the_stream_opened_again() -> None:
    async with running() as scene:
        await scene.want("a", "b")
        scene.script.errors.append(REFUSED)
        scene.script.streams["a b"].end(CUT)
        await scene.until(lambda: scene.kept.trouble is REFUSED)
        assert scene.heard.changes == [("a b", ""), ("", "a b")]
        await scene.until(lambda: scene.kept.covered == {"a", "b"})
        assert scene.kept.trouble is None
        assert scene.heard.changes[-1] == ("a b", "")
        assert scene.kept.reconnects == 1


async def test_an_overflow_is_a_loss(no_retry: None) -> None:
    """A stream that ends in order has dropped cues (central.md §4.3)."""
    async with running() as scene:
        await scene.want("a")
        scene.script.streams["a"].end(OVERFLOW)
        await scene.until(lambda: not scene.kept.covered)
        await anyio.wait_all_tasks_blocked()
        assert scene.script.log == ["open a", "close a"]  # after a pause: one that always ends must not spin
        assert scene.kept.reconnects == 1
        scene.kept.want(["a", "b"])
        await scene.until(lambda: scene.kept.covered == {"a", "b"})


async def test_the_old_stream_may_break_while_the_next_is_opened() -> None:
    async with running(overlap=True) as scene:
        await scene.want("a")
        scene.kept.want(["a", "b"])
        scene.script.streams["a"].end(CUT)
        await scene.until(lambda: scene.kept.covered == {"a", "b"})


async def test_a_failed_replacement_is_a_loss() -> None:
    async with running(overlap=True) as scene:
        await scene.want("a")
        scene.script.errors.append(REFUSED)
        await scene.want("a", "b")
        assert scene.script.log == ["open a", "fail a b", "close a", "open a b"]
        assert scene.heard.changes == [("a", ""), ("", "a"), ("a b", "")]


async def test_every_failure_tells_the_listener(no_retry: None) -> None:
    """Whoever waits for the stream must learn that it will not come now."""
    async with running() as scene:
        scene.script.always = REFUSED
        scene.kept.want(["a"])
        await scene.until(lambda: scene.heard.calls)
        assert scene.kept.trouble is REFUSED


async def test_a_stream_that_always_ends_at_once_is_not_hammered(pauses: list[int]) -> None:
    async with running() as scene:
        scene.kept.want(["a"])
        for count in range(1, 6):
            await scene.until(lambda: scene.kept.covered)
            scene.script.streams["a"].end(CUT)
            await scene.until(lambda count=count: scene.kept.reconnects == count)
        assert pauses == [5]


async def test_the_pauses_begin_anew_after_a_steady_stream(pauses: list[int]) -> None:
    async with running() as scene:
        scene.script.errors += [REFUSED, REFUSED]
        await scene.want("a")
        scene.clock.now += streams.STEADY
        scene.script.streams["a"].end(CUT)
        await scene.until(lambda: scene.kept.reconnects == 1 and scene.kept.covered)
        assert pauses == [2, 1]


async def test_drop_closes_at_once_and_opens_again() -> None:
    async with running() as scene:
        await scene.want("a")
        scene.script.errors.append(REFUSED)
        scene.kept.drop()
        await scene.until(lambda: scene.kept.trouble)
        assert scene.script.log == ["open a", "close a", "fail a"]
        await scene.until(lambda: scene.kept.covered)
        assert scene.heard.changes == [("a", ""), ("", "a"), ("a", "")]


async def test_drop_without_a_stream_does_nothing_later() -> None:
    async with running() as scene:
        scene.kept.drop()
        await scene.want("a")
        await anyio.wait_all_tasks_blocked()
        assert scene.script.log == ["open a"]


async def test_a_drop_because_of_the_refused_replacement_does_not_close_the_next_stream() -> None:
    """A refused connection makes the pool let go of both streams, also of the one that is being replaced."""
    async with running() as scene:
        await scene.want("a")
        scene.script.errors.append(REFUSED)
        scene.script.on_failure = scene.kept.drop
        await scene.want("a", "b")
        await scene.want("a", "b", "c")
        await scene.until(lambda: "close a b" in scene.script.log)
        assert scene.script.log == ["open a", "fail a b", "close a", "open a b", "open a b c", "close a b"]


async def test_retry_cuts_the_pause_short(no_retry: None) -> None:
    async with running() as scene:
        scene.script.errors.append(REFUSED)
        scene.kept.want(["a"])
        await scene.until(lambda: scene.kept.trouble)
        scene.kept.retry()
        await scene.until(lambda: scene.kept.covered)


async def test_retry_leaves_a_healthy_stream_alone() -> None:
    async with running(overlap=False) as scene:
        await scene.want("a")
        scene.kept.retry()
        await anyio.wait_all_tasks_blocked()
        assert scene.script.log == ["open a"]


async def test_trouble_ends_with_the_wish(no_retry: None) -> None:
    async with running() as scene:
        scene.script.always = REFUSED
        scene.kept.want(["a"])
        await scene.until(lambda: scene.kept.trouble)
        scene.kept.want([])
        await scene.until(lambda: scene.kept.trouble is None)


async def test_while_central_does_not_answer_nothing_is_opened(no_retry: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FIRST_RETRY", 0.0)
    answers = anyio.Event()
    scene = Scene(overlap=True, reachable=answers.wait)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.kept.run)
        await scene.want("a")
        scene.script.streams["a"].end(CUT)
        await scene.until(lambda: scene.kept.reconnects)
        await anyio.wait_all_tasks_blocked()
        assert scene.script.log == ["open a", "close a"]
        answers.set()
        await scene.until(lambda: scene.script.log == ["open a", "close a", "open a"])
        tasks.cancel_scope.cancel()


async def test_a_stream_that_nobody_wants_any_more_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FIRST_RETRY", 0.0)
    scene = Scene(overlap=True, reachable=anyio.Event().wait)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.kept.run)
        await scene.want("a")
        scene.script.streams["a"].end(CUT)
        await scene.until(lambda: scene.kept.trouble)
        scene.kept.want(())
        await scene.until(lambda: scene.kept.trouble is None)
        tasks.cancel_scope.cancel()


async def test_a_refused_credential_is_tried_again_when_somebody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FIRST_RETRY", 0.0)
    monkeypatch.setattr(streams, "LAST_RETRY", 0.0)
    async with running() as scene:
        scene.script.errors = [Unauthenticated("HTTP 401")]
        scene.kept.want("a")
        await scene.until(lambda: scene.kept.trouble)
        await anyio.wait_all_tasks_blocked()
        assert scene.script.log == ["fail a"]
        scene.kept.retry()
        await scene.until(lambda: scene.kept.is_open)
