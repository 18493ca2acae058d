"""feed/digest: when journals are read for digests, by whom, and what is told to followers. On the real Central: system/."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any

import anyio
import pytest

from pursersd.central import streams
from pursersd.central.account import Account, charged_to
from pursersd.errors import ToolFailed, Unreachable
from pursersd.feed import digest as module
from pursersd.feed import feed as feed_module
from pursersd.feed.digest import DigestFeed
from pursersd.feed.feed import Feed
from pursersd.feed.place import Place
from pursersd.ids import journal_uri
from pursersd.rules.windows import LW_RESYNC
from pursersd.seats.seat import Seats
from pursersd.state.stats import StatsWriters
from unit.scripted_pool import ScriptedPool, seat

pytestmark = pytest.mark.anyio

PATIENCE = 30.0  # seconds for something that must happen
J = journal_uri("b")
REFUSED = Unreachable("connection refused", sent=False)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "SETTLE_JOURNALS", 0.0)
    monkeypatch.setattr(streams, "LAP", 0.0)


class Told:
    """A follower that notes what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def news(self, boards: frozenset[str]) -> None:
        self.heard.append(f"news of {' '.join(sorted(boards))}")

    def registry_changed(self) -> None:
        self.heard.append("registry")

    def ended(self) -> None:
        self.heard.append("ended")


class Pool(ScriptedPool):
    """With what only this feed looks at."""

    last_error = None
    registry_reads = 0

    async def read(
        self, tool: str, arguments: Mapping[str, Any], *, generation: str | None = None, background: bool = False
    ) -> dict[str, Any]:
        if tool != "board_state_get":
            return await super().read(tool, arguments, generation=generation, background=background)
        self.registry_reads += 1
        return {"state": {"value": '{"schema_version": 1, "projects": {}}'}}


class Scene:
    """A digest feed at work."""

    def __init__(self) -> None:
        self.pool, self.now = Pool(), 100.0
        self.seats = Seats(self.pool.as_pool)
        self.feed = Feed(self.pool.as_pool, self.seats)
        self.digest = DigestFeed(self.pool.as_pool, self.seats, lambda: self.feed, clock=lambda: self.now)
        self.feed.reader = self.digest

    @contextmanager
    def follow(self, name: str, told: Told | None = None) -> Iterator[Place]:
        with self.digest.follow(told or Told(), "b", [seat(name)]) as places:
            yield places["b"]

    def seqs(self, place: Place, since: int = 0) -> list[object]:
        return [event["seq"] for event in self.digest.events({"b": place}, {"b": since})]

    async def caught_up(self, *places: Place) -> None:
        with anyio.fail_after(PATIENCE):
            await self.digest.caught_up(places)

    async def until(self, condition: Callable[[], object]) -> None:
        with anyio.fail_after(PATIENCE):
            while not condition():
                await anyio.sleep(0.001)

    def cue(self) -> None:
        self.pool.stream.streams[J].cue(J)

    def asked(self) -> list[str]:
        """Who asked what since the last look."""
        asked, self.pool.asked = self.pool.asked, []
        return asked


@asynccontextmanager
async def running() -> AsyncIterator[Scene]:
    scene = Scene()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.feed.run)
        await scene.feed.started.wait()
        tasks.start_soon(scene.digest.run)
        yield scene
        tasks.cancel_scope.cancel()


async def test_nothing_is_asked_while_nothing_happens() -> None:
    """D13: no registry, no journal, and no stream of seats, which would make them live for offers."""
    async with running() as scene:
        scene.pool.write()
        with scene.follow("ann") as place:
            await scene.caught_up(place)
            assert scene.seqs(place) == [1]
            assert scene.feed.seats.wanted == frozenset()
            scene.asked()
            for _ in range(3):
                await scene.caught_up(place)
            await anyio.wait_all_tasks_blocked()
            assert scene.asked() == []
        await scene.until(lambda: not scene.feed.journals.covered)
        scene.pool.write()
        scene.digest.journal_cued("b")  # that of another reader of the board
        with scene.follow("bob") as bobs:
            await scene.caught_up(bobs)
            assert scene.asked() == ["bob from 0"], "nobody follows with ann's seat any more"


async def test_a_cue_is_read_once_for_a_seat_and_told_to_all_who_follow_with_it() -> None:
    async with running() as scene:
        one, two, other = Told(), Told(), Told()
        with scene.follow("ann", one) as place, scene.follow("ann", two), scene.follow("bob", other) as bobs:
            await scene.caught_up(place, bobs)
            scene.asked()
            scene.pool.write("ann")
            scene.cue()
            await scene.until(lambda: one.heard)
            await scene.caught_up(place, bobs)
            assert sorted(scene.asked()) == ["ann from 0", "bob from 0"]
            assert [told.heard.count("news of b") for told in (one, two, other)] == [1, 1, 0]
            assert (scene.seqs(place), scene.seqs(bobs)) == ([1], [])


async def test_who_comes_later_reads_for_itself_and_the_events_are_kept_once() -> None:
    async with running() as scene:
        scene.pool.write()
        scene.pool.write(actor="ann")
        with scene.follow("ann") as place:
            await scene.caught_up(place)
            with scene.follow("bob") as bobs:
                await scene.caught_up(bobs)
                assert (scene.seqs(place), scene.seqs(bobs)) == ([1], [1, 2])
        assert len(scene.digest.buffer) == 2


async def test_whoever_follows_again_goes_on_where_the_seat_was() -> None:
    async with running() as scene:
        scene.pool.write()
        with scene.follow("ann") as place:
            await scene.caught_up(place)
        scene.pool.write()
        scene.asked()
        with scene.follow("ann") as place:
            await scene.caught_up(place)
            assert scene.seqs(place) == [1, 2]
        assert scene.asked()[0] == "ann from 1"


async def test_a_central_that_does_not_answer_makes_it_stale_and_is_read_when_it_is_back() -> None:
    async with running() as scene:
        with scene.follow("ann") as place:
            await scene.caught_up(place)
            scene.pool.write()
            scene.pool.errors = [REFUSED]
            scene.pool.reach.lost(REFUSED)
            scene.cue()
            await scene.until(lambda: place.trouble is not None)
            await scene.until(lambda: scene.seqs(place) == [1])
            await scene.caught_up(place)
            assert place.trouble is None


async def test_a_refusal_is_kept_until_somebody_asks_again() -> None:
    async with running() as scene:
        scene.pool.errors = [ToolFailed("board_catchup", "board access denied")]
        with scene.follow("ann") as place:
            await scene.caught_up(place)
            assert str(place.trouble) == "board access denied"
            await scene.caught_up(place)
            assert place.trouble is None


async def test_a_compacted_journal_is_read_from_what_is_left_of_it() -> None:
    async with running() as scene:
        for _ in range(4):
            scene.pool.write()
        with scene.follow("ann") as place:
            await scene.caught_up(place)
            place.cursor = 1  # as if it had been away for long
            scene.pool.compacted_through = 3
            scene.pool.changes = {"compacted_through": 3}
            scene.pool.write()
            scene.cue()
            await scene.until(lambda: 5 in scene.seqs(place))
            assert scene.digest.missing(place, 1) == 3
            assert scene.digest.missing(place, 0) == 0
        opened = {w.name: w.count for w in scene.pool.windows.snapshot()}
        assert opened[LW_RESYNC] == 1


async def test_another_journal_is_read_from_its_beginning() -> None:
    """A board that was set back, or another Central: what was seen of the old one is not told any more."""
    async with running() as scene:
        told = Told()
        for _ in range(3):
            scene.pool.write()
        with scene.follow("ann", told) as place, scene.follow("bob") as bobs:
            await scene.caught_up(place, bobs)
            scene.pool.rows.clear()
            scene.pool.write()
            scene.cue()
            await scene.until(lambda: scene.seqs(place) == scene.seqs(bobs) == [1])
            assert "registry" in told.heard


async def test_a_journal_that_is_numbered_anew_is_read_from_its_beginning() -> None:
    """However long it is: where it goes on after our place is not where we were."""
    async with running() as scene:
        scene.pool.write()
        scene.pool.generation = "first"
        joined = await scene.seats.keepalive(seat("ann"))
        with scene.follow("ann") as place:
            await scene.caught_up(place)
            scene.pool.rows.clear()
            for _ in range(3):
                scene.pool.write(kind="ticket_created")
            scene.pool.generation = "second"
            await scene.seats.keepalive(joined)
            await scene.until(lambda: scene.seqs(place) == [1, 2, 3])
            events = scene.digest.events({"b": place}, {"b": 0})
            assert {event["kind"] for event in events} == {"ticket_created"}


async def test_a_page_that_leads_nowhere_is_an_error_and_no_loop() -> None:
    async with running() as scene:
        scene.pool.write()
        scene.pool.changes = {"has_more": True, "next_cursor": 0}
        with scene.follow("ann") as place:
            await scene.caught_up(place)
            assert "does not lead on" in str(place.trouble)


async def test_a_seat_that_only_follows_joins_once_in_a_while() -> None:
    """Central retires seats of which it hears nothing, and tells them nothing any more (central.md §5)."""
    async with running() as scene:
        with scene.follow("ann") as place:
            await scene.caught_up(place)
            scene.asked()
            scene.now += module.TOUCH
            scene.cue()
            await scene.until(lambda: any("joins as keepalive" in asked for asked in scene.pool.asked))
            scene.asked()
            scene.cue()
            await scene.caught_up(place)
            assert not [asked for asked in scene.asked() if "joins" in asked]


async def test_hidden_rows_cost_one_look_whether_the_seat_is_told_of_what_happens() -> None:
    async with running() as scene:
        scene.pool.write("bob")
        with scene.follow("ann") as place:
            await scene.caught_up(place)
            scene.asked()
            for _ in range(2):
                await scene.digest.confirm([place])
            assert scene.asked() == ["ann joins as keepalive"]


async def test_the_registry_is_read_again_only_after_something_that_may_have_changed_it() -> None:
    async with running() as scene:
        told = Told()
        scene.pool.write()
        with scene.follow("ann", told) as place:
            await scene.caught_up(place)
            for recipients, kind, again in (
                ((), "ticket_annotated", 0),
                (("bob",), "x", 1),
                ((), "board_state_changed", 1),
            ):
                await scene.digest.registry("b")
                await scene.digest.registry("b")
                told.heard.clear()
                scene.pool.registry_reads = 0
                scene.pool.write(*recipients, kind=kind)
                scene.cue()
                await scene.until(lambda: place.cursor == len(scene.pool.rows) and not place.is_dirty)
                await anyio.wait_all_tasks_blocked()
                assert told.heard.count("registry") == again
                await scene.digest.registry("b")
                assert scene.pool.registry_reads == again


async def test_followers_are_told_when_the_central_is_closed() -> None:
    async with running() as scene:
        told = Told()
        with scene.follow("ann", told):
            scene.digest.close()
        assert told.heard[-1] == "ended"


async def test_places_that_nobody_follows_are_kept_up_to_a_limit_and_of_followers_nothing() -> None:
    scene, account = Scene(), Account(StatsWriters(None).of({"HOME": "/nowhere"}, "/"), lambda: ("b", "ann"))
    with scene.follow("stays") as stays:
        for number in range(module.PLACES + 10):
            with charged_to(account), scene.follow(f"seat-{number}") as place:
                assert place.account is account
            assert place.account is None, "whoever paid has gone"
        assert repr(scene.digest).startswith(f"<DigestFeed 1 followers, {module.PLACES + 1} places")
        with scene.follow("stays") as again:
            assert again is stays, "one that is followed is never forgotten"


async def test_who_has_followed_longest_pays() -> None:
    scene, writer = Scene(), StatsWriters(None).of({"HOME": "/nowhere"}, "/")
    first, second = (Account(writer, lambda: ("b", "ann")) for _ in range(2))
    with ExitStack() as one, ExitStack() as other:
        with charged_to(first):
            place = one.enter_context(scene.follow("ann"))
        with charged_to(second):
            other.enter_context(scene.follow("ann"))
        assert place.account is first
        one.close()
        assert place.account is second
