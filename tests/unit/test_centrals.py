"""feed/centrals: one pool per URL, credential and instance, for as long as somebody uses it, and how it is described."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from pursersd.central import pool as pool_module
from pursersd.central.pool import PoolKey
from pursersd.errors import CentralError, Forbidden, Overloaded, Unauthenticated, Unreachable
from pursersd.feed import centrals as centrals_module
from pursersd.feed.centrals import Central, Centrals
from pursersd.secret import Secret
from unit.scripted_pool import ScriptedPool, seat

pytestmark = pytest.mark.anyio

KEY = PoolKey("http://127.0.0.1:1/mcp", Secret("token-a"), None)
OTHER = PoolKey("http://127.0.0.1:2/mcp", Secret("token-a"), None)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs of the clients that were closed."""
    urls: list[str] = []
    close = pool_module.CentralClient.aclose

    async def note(self: pool_module.CentralClient) -> None:
        await close(self)
        urls.append(self.url)

    monkeypatch.setattr(pool_module.CentralClient, "aclose", note)
    return urls


@asynccontextmanager
async def running() -> AsyncIterator[Centrals]:
    async with anyio.create_task_group() as tasks:
        centrals = Centrals()
        await tasks.start(centrals.run)
        yield centrals
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    "other",
    [
        PoolKey("http://127.0.0.1:2/mcp", Secret("token-a"), None),
        PoolKey(KEY.url, Secret("token-b"), None),
        PoolKey(KEY.url, Secret("token-a"), "CI-" + "0" * 64),
    ],
)
async def test_what_differs_in_anything_shares_nothing(other: PoolKey) -> None:
    async with running() as centrals:
        first = await centrals.use(KEY, "c-1")
        assert await centrals.use(PoolKey(KEY.url, Secret("token-a"), None), "c-2") is first
        second = await centrals.use(other, "c-2")
        assert second is not first
        assert second.pool is not first.pool
        assert len(centrals.all()) == 2


async def test_it_is_closed_after_its_last_user(closed: list[str]) -> None:
    async with running() as centrals:
        first = await centrals.use(KEY, "c-1")
        await centrals.use(KEY, "c-2")
        await centrals.use(KEY, "c-2")
        centrals.release("c-2")
        centrals.release("nobody")
        await anyio.wait_all_tasks_blocked()
        assert (centrals.all(), closed) == ([first], [])
        centrals.release("c-1")
        assert centrals.all() == []
        with anyio.fail_after(30):
            while closed != [KEY.url]:
                await anyio.sleep(0.001)
        assert await centrals.use(KEY, "c-3") is not first


async def test_a_seat_is_left_when_nobody_uses_it_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it must leave the streams at once: being in them makes it a candidate for offers."""
    async with running() as centrals:
        central = await centrals.use(KEY, "c-1")
        for user in ("c-2", "c-3"):
            await centrals.use(KEY, user)
        left: list[str] = []
        monkeypatch.setattr(central.feed, "leave", lambda seat: left.append(seat.agent_name))
        monkeypatch.setattr(central.seats, "_pool", ScriptedPool())
        for user, names in {"c-1": ["shared", "of the first"], "c-2": ["shared"], "c-3": ["own"]}.items():
            for name in names:
                await central.seats.join(seat(name).request, user)
        centrals.release("c-3")
        assert left == ["own"]
        centrals.release("c-1")
        assert left == ["own", "of the first"]
        centrals.release("c-2")
        assert left == ["own", "of the first", "shared"]


async def test_a_conversation_goes_on_with_the_credential_that_replaced_its_own(closed: list[str]) -> None:
    async with running() as centrals:
        old = await centrals.use(KEY, "c-1")
        await centrals.use(KEY, "c-2")
        new = await centrals.use(OTHER, "c-1")
        centrals.release("c-1", but=OTHER)
        assert (old.users, new.users) == ({"c-2"}, {"c-1"})
        centrals.release("c-2", but=OTHER)
        assert centrals.all() == [new]


async def test_the_end_of_the_daemon_closes_all(closed: list[str]) -> None:
    async with running() as centrals:
        for number in range(3):
            await centrals.use(PoolKey(f"http://127.0.0.1:{number + 1}/mcp", Secret("t"), None), "c-1")
    assert len(closed) == 3


async def test_a_wait_that_ends_after_its_pool_hurts_nobody() -> None:
    """A conversation gives its Central back before the waits of its link have noticed."""
    async with running() as centrals:
        central = await centrals.use(KEY, "c-1")
        with central.feed.watch(seat("ann"), push=True):
            centrals.release("c-1")
            await anyio.wait_all_tasks_blocked()
        await centrals.use(KEY, "c-2")


async def test_a_user_that_comes_while_it_starts_waits_for_the_feed() -> None:
    async with running() as centrals:
        found: list[Central] = []

        async def use(name: str) -> None:
            central = await centrals.use(KEY, name)
            with central.feed.watch(seat("ann"), push=False):
                found.append(central)

        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(use, f"c-{number}")
        assert len({id(central) for central in found}) == 1


@pytest.mark.parametrize(
    ("error", "requests", "state"),
    [
        (None, 0, "connecting"),
        (None, 1, "ready"),
        (Unreachable("no answer"), 1, "unreachable"),
        (Overloaded("HTTP 503"), 1, "unreachable"),
        (Unauthenticated("HTTP 401"), 1, "refused"),
        (Forbidden("HTTP 403"), 1, "refused"),
    ],
)
async def test_its_state(error: CentralError | None, requests: int, state: str) -> None:
    async with running() as centrals:
        central = await centrals.use(KEY, "c-1")
        central.pool.last_error = error
        central.pool.counters.requests = requests
        status = central.status()
        assert (status.state, status.detail) == (state, None if error is None else str(error))


async def test_its_status() -> None:
    async with running() as centrals:
        central = await centrals.use(KEY, "c-1")
        with central.feed.watch(seat("ann"), push=False) as ann, central.feed.watch(seat("bob", "a"), push=False):
            ann.open(1)
            status = central.status()
        assert (status.url, status.credential) == (KEY.url, Secret("token-a").fingerprint)
        assert (status.boards, status.waits, status.streams, status.seats_listening) == (["a", "b"], 1, 0, 0)
        assert "token-a" not in repr(status)


async def test_a_feed_that_breaks_fails_its_waits_and_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in one feed must not end the daemon: its waits are told, and the next ones find a feed that works."""
    monkeypatch.setattr(centrals_module, "FEED_PAUSE", 0.0)
    async with running() as centrals:
        one, other = await centrals.use(KEY, "c-1"), await centrals.use(OTHER, "c-2")
        broken, healthy = one.feed, other.feed

        def mistake(*_: object) -> None:
            raise KeyError("a mistake")

        monkeypatch.setattr(broken.seats, "_wait_for_change", mistake)
        with broken.watch(seat("a"), push=True) as waiter:
            with pytest.raises(CentralError, match="pursersctl logs"), anyio.fail_after(30):
                await waiter.arrived()
        with anyio.fail_after(30):
            while one.feed is broken:
                await anyio.lowlevel.checkpoint()
        assert (await centrals.use(KEY, "c-3")).feed.started.is_set()
        assert other.feed is healthy


@pytest.mark.parametrize(
    ("kind", "what"), [("Leases", "the keeping of leases"), ("DigestFeed", "the reading for digests")]
)
async def test_leases_and_digests_go_on_after_a_mistake(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str, what: str
) -> None:
    """One error must not let every lease lapse, or every digest stand still, nor end the daemon."""
    monkeypatch.setattr(centrals_module, "FEED_PAUSE", 0.0)
    begun, again = [], anyio.Event()

    async def run(keeper: object) -> None:
        begun.append(keeper)
        if len(begun) == 1:
            raise KeyError("a mistake")
        again.set()
        await anyio.sleep_forever()

    monkeypatch.setattr(getattr(centrals_module, kind), "run", run)
    async with running() as centrals:
        central = await centrals.use(KEY, "c-1")
        with anyio.fail_after(30):
            await again.wait()
        assert begun == [central.leases if kind == "Leases" else central.digest] * 2
    assert f"{what} at " in caplog.text


async def test_trouble_is_counted_from_its_beginning() -> None:
    async with running() as centrals:
        central = await centrals.use(KEY, "c-1")
        assert central.status().trouble_s is None
        beginnings = []
        for _ in range(2):
            with pytest.raises(Unreachable):
                await central.pool.read("board_list", {})
            beginnings.append(central.pool.error_since)
        assert beginnings[0] == beginnings[1] > 0
        status = central.status()
        assert status.state == "unreachable"
        assert status.trouble_s is not None


async def test_after_a_sleep_every_central_is_doubted() -> None:
    async with running() as centrals:
        found = [await centrals.use(key, "c-1") for key in (KEY, OTHER)]
        centrals.woke()
        with anyio.fail_after(30):
            while any(central.pool.reach.is_up for central in found):
                await anyio.lowlevel.checkpoint()
