"""central/pool: how many calls at once, what is sent again, and what the pool says of its Central."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import jwt
import pytest

from pursersd.central import pool as module
from pursersd.central.client import Admit
from pursersd.central.pool import CALLS, RESENDS, SHARE, Pool, PoolKey, credential_name
from pursersd.central.turns import on_behalf_of
from pursersd.errors import (
    CentralError,
    Forbidden,
    InstanceMismatch,
    Overloaded,
    ProtocolRefused,
    ToolFailed,
    Unauthenticated,
    UnknownBoard,
    Unreachable,
)
from pursersd.secret import Secret

pytestmark = pytest.mark.anyio

REFUSED = Unreachable("connection refused", sent=False)
CUT = Unreachable("the connection was lost")
SILENT = Unreachable("nothing came", silent=True)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Client:
    """In the place of CentralClient: answers what the test says."""

    def __init__(self, url: str, token: Secret, instance_id: str | None, admit: Admit) -> None:
        self.asked: list[str] = []
        self.errors: list[CentralError] = []
        """What the next requests fail with."""
        self.running = 0
        self.most = 0
        self.go = anyio.Event()
        self.go.set()
        self.boards = ["b"]
        self.answering: str | None = None
        self.probe = anyio.Event()
        self.probe.set()

    async def call(self, tool: str, arguments: Mapping[str, Any], *, generation: str | None = None) -> dict[str, Any]:
        self.asked.append(tool)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.go.wait()
        finally:
            self.running -= 1
        if self.errors:
            raise self.errors.pop(0)
        return {"boards": [{"board_id": board} for board in self.boards], "generation": generation}

    async def ask(self) -> None:
        self.asked.append("probe")
        await self.probe.wait()

    async def instance(self) -> str | None:
        self.asked.append("who is there")
        return self.answering

    @asynccontextmanager
    async def listen(self, uris: Iterable[str]) -> AsyncIterator[object]:
        if self.errors:
            raise self.errors.pop(0)
        yield object()

    async def aclose(self) -> None:
        self.asked.append("closed")


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    monkeypatch.setattr(module, "CentralClient", Client)
    return Pool(PoolKey("http://127.0.0.1:1/mcp", Secret("token-abcdef"), None))


@pytest.fixture
def client(pool: Pool) -> Client:
    client: Any = pool._client
    assert isinstance(client, Client)
    return client


async def fails(pool: Pool, error: CentralError, client: Client, times: int = 1) -> None:
    client.errors += [error] * times
    with pytest.raises(type(error)):
        await pool.read("board_status", {"board_id": "b"})


async def test_reads_in_the_background_leave_room_for_calls(pool: Pool, client: Client) -> None:
    client.go = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(lambda: pool.read("board_catchup", {}, background=True))
        await anyio.wait_all_tasks_blocked()
        assert client.running == SHARE
        for _ in range(10):
            tasks.start_soon(pool.call, "ticket_create", {})
        await anyio.wait_all_tasks_blocked()
        assert client.running == pool.counters.in_flight == CALLS
        assert client.asked.count("ticket_create") == CALLS - SHARE
        client.go.set()
    assert client.most == CALLS
    assert pool.counters.in_flight == 0
    assert pool.counters.by_tool == {"board_catchup": 10, "ticket_create": 10}
    assert pool.counters.requests == 20


async def test_what_waits_for_a_central_that_fell_silent_fails_together_and_was_not_sent(
    pool: Pool, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other they would each wait for as long as the first one did, two at a time."""
    monkeypatch.setattr(module, "SILENT_PATIENCE", 0.05)
    client.go, client.probe = anyio.Event(), anyio.Event()
    failures: list[CentralError] = []

    async def call() -> None:
        with on_behalf_of("many"), pytest.raises(Unreachable) as caught:
            await pool.call("ticket_question_ask", {})
        failures.append(caught.value)

    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        client.errors = [SILENT, SILENT]
        client.go.set()
    assert client.asked.count("ticket_question_ask") == SHARE
    assert [error.sent for error in failures] == [True] * SHARE + [False] * (50 - SHARE)
    assert client.asked.count("probe") >= 1
    client.probe.set()
    assert await pool.call("board_list", {})  # the probe is answered meanwhile
    assert not pool.reach.is_silent


async def test_a_call_that_is_cancelled_while_central_is_silent_leaves_its_place(pool: Pool, client: Client) -> None:
    client.probe = anyio.Event()
    pool.reach.lost(SILENT)
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(pool.read, "board_list", {})
        await anyio.wait_all_tasks_blocked()
        assert client.asked == ["probe"]
        tasks.cancel_scope.cancel()
    client.probe.set()
    with anyio.fail_after(30):
        await pool.read("board_list", {})
        await pool.aclose()


async def test_a_conversation_with_two_hundred_calls_does_not_hold_up_another(pool: Pool, client: Client) -> None:
    client.go = anyio.Event()

    async def read(party: str) -> None:
        with on_behalf_of(party):
            await pool.read(party, {})

    async with anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(read, "busy")
        await anyio.wait_all_tasks_blocked()
        assert client.running == SHARE
        for _ in range(3):
            tasks.start_soon(read, "modest")
        await anyio.wait_all_tasks_blocked()
        assert client.asked.count("modest") == SHARE  # at once
        client.go.set()
    assert client.asked[:10].count("modest") == 3  # the third one in its turn
    assert len(client.asked) == 203


async def test_a_cancelled_call_gives_its_place_back(pool: Pool, client: Client) -> None:
    client.go = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for _ in range(CALLS + 3):
            tasks.start_soon(pool.call, "x", {})
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert pool.counters.in_flight == 0
    client.go.set()
    async with anyio.create_task_group() as tasks:
        for _ in range(CALLS):
            tasks.start_soon(pool.call, "x", {})


async def test_a_broken_read_is_sent_again_and_a_call_is_not(pool: Pool, client: Client) -> None:
    client.errors += [CUT] * RESENDS
    await pool.read("board_catchup", {})
    assert len(client.asked) == 1 + RESENDS
    client.asked.clear()
    await fails(pool, CUT, client, times=1 + RESENDS)
    assert len(client.asked) == 1 + RESENDS
    client.asked.clear()
    client.errors.append(CUT)
    with pytest.raises(Unreachable):
        await pool.call("ticket_create", {})
    assert len(client.asked) == 1


@pytest.mark.parametrize(
    "error", [REFUSED, Overloaded("503"), Unauthenticated("401"), ToolFailed("t", "no"), ProtocolRefused("no")]
)
async def test_what_is_not_sent_again(pool: Pool, client: Client, error: CentralError) -> None:
    await fails(pool, error, client)
    assert len(client.asked) == 1


@pytest.mark.parametrize("error", [REFUSED, Overloaded("503"), Unauthenticated("401"), Forbidden("403")])
async def test_a_central_that_does_not_serve_us_is_remembered_until_it_answers(
    pool: Pool, client: Client, error: CentralError
) -> None:
    await fails(pool, error, client)
    assert pool.last_error is error
    await pool.read("board_status", {})
    assert pool.last_error is None


@pytest.mark.parametrize("error", [ToolFailed("t", "no"), ProtocolRefused("no"), InstanceMismatch("other")])
async def test_a_refused_request_is_an_answer(pool: Pool, client: Client, error: CentralError) -> None:
    await fails(pool, REFUSED, client)
    await fails(pool, error, client)
    assert pool.last_error is None


@pytest.mark.parametrize("answering", ["CI-" + "1" * 64, None])
async def test_another_central_than_expected_says_who_was_expected_and_who_answered(
    monkeypatch: pytest.MonkeyPatch, answering: str | None
) -> None:
    expected = "CI-" + "0" * 64
    monkeypatch.setattr(module, "CentralClient", Client)
    pool = Pool(PoolKey("http://127.0.0.1:1/mcp", Secret("token-abcdef"), expected))
    client = pool._client
    assert isinstance(client, Client)
    client.answering = answering
    for ask in (pool.read("board_status", {}), listen(pool)):
        client.errors = [InstanceMismatch("Central instance mismatch: selected profile does not match")]
        with pytest.raises(InstanceMismatch) as refused:
            await ask
        text = str(refused.value)
        assert text.startswith("Central instance mismatch: selected profile does not match. ")
        assert f"Expected was {expected}" in text
        assert (answering or "another one") in text
        assert "ONBOARD_CENTRAL_INSTANCE_ID" in text


async def listen(pool: Pool) -> None:
    async with pool.listen(["board://b/journal"]):
        raise AssertionError("it was refused")


async def test_only_a_refused_connection_lets_the_streams_go(pool: Pool, client: Client) -> None:
    refused: list[str] = []
    pool.on_connect_refused = lambda: refused.append("let go")
    for error in (CUT, Overloaded("503", sent=False), Unauthenticated("401"), ToolFailed("t", "no")):
        await fails(pool, error, client, times=1 + RESENDS if error is CUT else 1)
    assert refused == []
    await fails(pool, REFUSED, client)
    assert refused == ["let go"]


async def test_a_stream_that_cannot_be_opened_lets_the_other_one_go(pool: Pool, client: Client) -> None:
    """Central is stopping: nobody calls, and the open stream keeps it from ending (central.md §1.3)."""
    refused: list[str] = []
    pool.on_connect_refused = lambda: refused.append("let go")
    client.errors.append(REFUSED)
    with pytest.raises(Unreachable):
        async with pool.listen(["board://b/journal"]):
            pass
    assert refused == ["let go"]
    assert pool.last_error is REFUSED
    async with pool.listen(["board://b/journal"]):
        assert pool.last_error is None


async def test_a_lost_stream_is_remembered(pool: Pool) -> None:
    with pytest.raises(Unreachable):
        async with pool.listen(["board://b/journal"]):
            raise CUT
    assert pool.last_error is CUT


async def test_boards_are_asked_for_once(pool: Pool, client: Client) -> None:
    client.go = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(pool.require_board, "b")
        await anyio.wait_all_tasks_blocked()
        client.go.set()
    await pool.require_board("b")
    assert client.asked == ["board_list"]


async def test_who_asks_for_a_board_behind_many_calls_of_its_own_holds_nobody_up(pool: Pool, client: Client) -> None:
    client.go = anyio.Event()

    async def much() -> None:
        with on_behalf_of("c-1"):
            await pool.call("x", {})

    async def board(who: str) -> None:
        with on_behalf_of(who):
            await pool.require_board("b")

    async with anyio.create_task_group() as tasks:
        for _ in range(SHARE + 5):
            tasks.start_soon(much)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(board, "c-1")
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(board, "c-2")
        await anyio.wait_all_tasks_blocked()
        assert client.asked == ["x"] * SHARE + ["board_list"]
        client.go.set()


async def test_an_unknown_board_is_refused_until_it_is_there(pool: Pool, client: Client) -> None:
    with pytest.raises(UnknownBoard, match="board 'typo' is not one of this credential's boards"):
        await pool.require_board("typo")
    client.boards.append("typo")
    await pool.require_board("typo")
    assert client.asked == ["board_list", "board_list"]


async def test_many_unknown_boards_are_found_out_together(pool: Pool, client: Client) -> None:
    """By a list that was asked for after they came: twenty boards of a registry are not twenty lists."""
    refused = []

    async def ask(board: str) -> None:
        with pytest.raises(UnknownBoard):
            await pool.require_board(board)
        refused.append(board)

    client.go = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(ask, f"typo-{number}")
        await anyio.wait_all_tasks_blocked()
        for number in range(20, 30):
            tasks.start_soon(ask, f"typo-{number}")
        await anyio.wait_all_tasks_blocked()
        assert client.asked == ["board_list"]
        client.go.set()
    assert len(refused) == 30
    assert client.asked == ["board_list"] * 2


async def test_a_board_that_denied_access_is_asked_for_again(pool: Pool, client: Client) -> None:
    await pool.require_board("b")
    await fails(pool, ToolFailed("t", "board access denied: principal is not a member"), client)
    client.boards.clear()
    with pytest.raises(UnknownBoard):
        await pool.require_board("b")


async def test_a_generation_goes_with_the_call(pool: Pool, client: Client) -> None:
    assert (await pool.read("x", {}, generation="g"))["generation"] == "g"
    assert (await pool.call("x", {}))["generation"] is None


async def test_it_closes_its_client(pool: Pool, client: Client) -> None:
    await pool.aclose()
    assert client.asked == ["closed"]


async def test_a_credential_is_named_and_not_shown(pool: Pool) -> None:
    token = jwt.encode({"sub": "s"}, "k" * 32, "HS256", headers={"kid": "key-1"})
    assert credential_name(Secret(token)) == f"key-1/{Secret(token).fingerprint[:6]}"
    for opaque in ("token-abcdef", "a.b.c", jwt.encode({"sub": "s"}, "k" * 32, "HS256")):
        assert credential_name(Secret(opaque)) == Secret(opaque).fingerprint
    assert "token-abcdef" not in repr(pool) + repr(pool.key)


async def test_closing_lets_calls_end_and_refuses_others(pool: Pool, client: Client) -> None:
    client.go = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for _ in range(CALLS + 1):
            tasks.start_soon(pool.call, "x", {})
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(pool.aclose)
        await anyio.wait_all_tasks_blocked()
        assert "closed" not in client.asked
        with pytest.raises(CentralError, match=r"credential of this call was replaced.*Call again"):
            await pool.read("board_status", {})
        client.go.set()
    assert client.asked == ["x"] * (CALLS + 1) + ["closed"]


async def test_a_call_whose_turn_comes_after_the_end_is_refused_in_words(
    pool: Pool, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_PATIENCE", 0.01)
    client.go = anyio.Event()
    told: list[str] = []

    async def call() -> None:
        try:
            await pool.call("x", {})
        except CentralError as error:
            told.append(str(error))

    async with anyio.create_task_group() as tasks:
        for _ in range(SHARE + 3):
            tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        await pool.aclose()
        client.go.set()
    assert client.asked == ["x"] * SHARE + ["closed"]
    assert told == ["The credential of this call was replaced while it ran. Call again."] * 3


async def test_closing_waits_for_a_stuck_call_only_so_long(
    pool: Pool, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_PATIENCE", 0.01)
    client.go = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pool.call, "x", {})
        await anyio.wait_all_tasks_blocked()
        await pool.aclose()
        assert client.asked == ["x", "closed"]
        tasks.cancel_scope.cancel()
