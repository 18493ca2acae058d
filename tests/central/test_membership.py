"""Who we are on a real Central: a first join takes nothing from anybody and never collides with itself, a seat without a
conversation is left alone, one that only listens is touched in time, and another Central than expected hears of nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio import to_thread

from central.feeding import Reader, eventually, listening, pool
from pursersd.central.client import CentralClient
from pursersd.central.pool import PoolKey
from pursersd.errors import InstanceMismatch, ToolFailed, Unreachable
from pursersd.feed import board as board_module
from pursersd.feed.centrals import Central as Pooled
from pursersd.feed.centrals import Centrals
from pursersd.ids import agent_id, agent_uri
from pursersd.rules.names import DoorId, Entry
from pursersd.seats.seat import SeatRequest
from pursersd.secret import Secret
from pursersd.state.names import Names
from rig.central import Central
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio

COLLISION = "seat name already active under this principal; choose another name or pass allow_takeover=true"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Held:
    """What seats/first asks for, in a file as the daemon keeps it."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.is_held = names.is_held

    async def note(self, url: str, board: str, name: str, *, held: bool, foreign: bool = False) -> None:
        self.names.note(url, board, name, held=held, foreign=foreign)


@asynccontextmanager
async def daemon(proxy: Proxy, token: str, board: str, names: Names) -> AsyncIterator[Pooled]:
    """A Central of a daemon that knows these names."""
    if not names.entries:
        names.remember(Entry(DoorId(proxy.url, board, "worker"), "ann"))
    async with anyio.create_task_group() as tasks:
        centrals = Centrals(Held(names))
        await tasks.start(centrals.run)
        yield await centrals.use(PoolKey(proxy.url, Secret(token), None), "c-1")
        tasks.cancel_scope.cancel()


def careful(board: str) -> SeatRequest:
    return SeatRequest(board, "ann", "worker", careful=True)


def takeovers(proxy: Proxy, since: int = 0) -> list[bool]:
    return [bool(seen.arguments.get("allow_takeover")) for seen in proxy.seen("board_join", since)]


# --- the first join ---------------------------------------------------------------------------------------------------


async def test_a_new_name_is_joined_without_a_takeover_and_is_ours_from_then_on(
    central: Central, proxy: Proxy, board: str
) -> None:
    token, names = central.worker("ann", board), Names(None)
    async with daemon(proxy, token, board, names) as ours:
        seat = await ours.seats.join(careful(board), "c-1")
        await ours.seats.keepalive(seat)
    async with daemon(proxy, token, board, names) as ours:  # the next daemon: the seat is active, and it is ours
        assert (await ours.seats.join(careful(board), "c-1")).agent_id == seat.agent_id
    assert takeovers(proxy) == [False, True, True]


async def test_a_seat_of_somebody_else_stays_somebody_elses(central: Central, proxy: Proxy, board: str) -> None:
    token, names = central.worker("ann", board), Names(None)
    central.call(token, "board_join", board_id=board, agent_name="ann", role="worker")
    async with daemon(proxy, token, board, names) as ours:
        for _ in range(2):
            with pytest.raises(ToolFailed) as refused:
                await ours.seats.join(careful(board), "c-1")
            assert str(refused.value) == COLLISION
    assert takeovers(proxy) == [False, False]
    assert names.entries[0].foreign


async def test_a_join_whose_answer_is_lost_is_our_own(central: Central, proxy: Proxy, board: str) -> None:
    token, names = central.worker("ann", board), Names(None)
    async with daemon(proxy, token, board, names) as ours:
        proxy.cut_after("board_join")
        assert (await ours.seats.join(careful(board), "c-1")).agent_name == "ann"
    assert takeovers(proxy) == [False, True]


async def test_a_refusal_whose_answer_is_lost_takes_nothing_over(central: Central, proxy: Proxy, board: str) -> None:
    token, names = central.worker("ann", board), Names(None)
    central.call(token, "board_join", board_id=board, agent_name="ann", role="worker")
    async with daemon(proxy, token, board, names) as ours:
        proxy.cut_after("board_join")
        with pytest.raises(Unreachable):
            await ours.seats.join(careful(board), "c-1")
        with pytest.raises(ToolFailed, match="already active"):
            await ours.seats.join(careful(board), "c-1")
    assert takeovers(proxy) == [False, False]


async def test_a_daemon_that_ends_before_the_answer_leaves_a_seat_that_the_next_one_knows(
    central: Central, proxy: Proxy, board: str
) -> None:
    token, names = central.worker("ann", board), Names(None)
    async with daemon(proxy, token, board, names) as ours:
        async with anyio.create_task_group() as tasks:
            proxy.hold("board_join")
            tasks.start_soon(ours.seats.join, careful(board), "c-1")
            await eventually(lambda: proxy.holding("board_join"))
            proxy.release("board_join")
            await eventually(lambda: proxy.count("board_join"))
            tasks.cancel_scope.cancel()
    async with daemon(proxy, token, board, names) as ours:
        assert (await ours.seats.join(careful(board), "c-1")).agent_name == "ann"
    assert takeovers(proxy) == [False, True]


# --- seats that live and seats that do not ----------------------------------------------------------------------------


def about(proxy: Proxy, board: str, uri: str, name: str, since: int) -> list[str | None]:
    """The requests that concern a seat: by its name, or by its place in a stream."""
    return [
        seen.name
        for seen in proxy.seen(None, since)
        if (seen.arguments.get("agent_name"), seen.arguments.get("board_id")) == (name, board) or uri in seen.uris
    ]


async def test_a_seat_without_a_conversation_is_left_alone(
    central: Central, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No join, no read, no place in a stream, although others wait on its board and their seats are kept alive."""
    monkeypatch.setattr(board_module, "SWEEP", 0.02)
    token = central.worker("ann", board)
    async with anyio.create_task_group() as tasks:
        centrals = Centrals()
        await tasks.start(centrals.run)
        key = PoolKey(proxy.url, Secret(token), None)
        ours = await centrals.use(key, "c-goes")
        await centrals.use(key, "c-stays")
        readers = {name: Reader(ours, board, name, user=f"c-{name}") for name in ("goes", "stays")}
        scopes = {name: anyio.CancelScope() for name in readers}

        async def wait(name: str, *, task_status: Any) -> None:
            with scopes[name]:
                await readers[name].run(task_status=task_status)

        for name in readers:
            await tasks.start(wait, name)
        await listening(ours, list(readers.values()))
        goes = readers["goes"].waiter
        assert goes is not None
        await eventually(lambda: about(proxy, board, goes.seat.uri, "goes", 0).count("board_join") > 2)

        scopes["goes"].cancel()
        centrals.release("c-goes")
        await eventually(lambda: goes.seat.uri not in ours.feed.seats.covered)
        mark = proxy.mark()
        await to_thread.run_sync(central.create_ticket, board, "for who is there")
        await eventually(lambda: len(about(proxy, board, "", "stays", mark)) > 5)
        assert about(proxy, board, goes.seat.uri, "goes", mark) == []
        tasks.cancel_scope.cancel()


async def test_every_waiting_seat_is_joined_in_turn(
    central: Central, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when waits end and begin again all the time, which changes their order: nobody goes stale by being unlucky."""
    token = central.worker("ann", board)
    names = [f"seat-{n}" for n in range(5)]
    async with pool(proxy.url, token) as ours:
        seats = [await ours.seats.join(SeatRequest(board, name, "worker"), "test") for name in names]
        mark = proxy.mark()
        monkeypatch.setattr(board_module, "SWEEP", 0.01)
        async with anyio.create_task_group() as tasks:

            async def rearm(number: int) -> None:
                while True:
                    with ours.feed.watch(seats[number], push=False):
                        await anyio.sleep(0.003 * (number + 1))

            for number in range(5):
                tasks.start_soon(rearm, number)
            await eventually(lambda: proxy.count("board_join", mark) >= 15)
            tasks.cancel_scope.cancel()
        joined = [seen.arguments["agent_name"] for seen in proxy.seen("board_join", mark)][:15]
    assert {joined.count(name) for name in names} == {3}, joined


# --- the right Central ------------------------------------------------------------------------------------------------

WRONG = "CI-" + "0" * 64


async def test_every_kind_of_request_insists_on_the_expected_central(central: Central, board: str) -> None:
    """Also those about boards, which the bridge sends without (D22): nothing may be done at another Central."""
    token = central.worker("ann", board)
    uri = agent_uri(board, agent_id(board, central.principal_id("ann"), "ann"))
    before = central.head(board)
    client = CentralClient(central.url, Secret(token), WRONG)
    try:
        for tool, arguments in {
            "board_list": {},
            "board_join": {"board_id": board, "agent_name": "ann", "allow_takeover": True},
            "board_catchup": {"board_id": board, "agent_name": "ann", "cursor": 0, "touch": False},
            "board_status": {"board_id": board},
            "board_state_get": {"board_id": board, "key": "project_registry"},
            "ticket_list": {"board_id": board},
            "lease_renew": {"board_id": board, "agent_name": "ann", "ticket_id": "TK-1"},
            "dispatch_my_offers": {"board_id": board, "agent_name": "ann"},
        }.items():
            with pytest.raises(InstanceMismatch):
                await client.call(tool, arguments)
        with pytest.raises(InstanceMismatch):
            async with client.listen([uri]):
                raise AssertionError("it was refused")
        assert await client.instance() == central.health()["instance_id"]
    finally:
        await client.aclose()
    assert central.head(board) == before
    status = central.call(central.admin, "board_status", board_id=board, include_retired=True)
    assert "ann" not in [agent["agent_name"] for agent in status["agents"]]


async def test_the_text_says_who_was_expected_and_who_answered(central: Central, board: str) -> None:
    async with pool(central.url, central.worker("ann", board), WRONG) as ours:
        with pytest.raises(InstanceMismatch) as refused:
            await ours.seats.join(careful(board), "c-1")
    assert f"Expected was {WRONG}, but the Central at {central.url} is {central.health()['instance_id']}." in str(
        refused.value
    )
