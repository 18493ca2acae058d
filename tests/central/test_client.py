"""central/client on the real Central: each way in which a request can fail has its own error (on the wire: test_client_wire)."""

from typing import Any

import anyio
import pytest

from central.feeding import client
from pursersd.central.client import CentralClient
from pursersd.errors import (
    CentralError,
    Forbidden,
    InstanceMismatch,
    ProtocolRefused,
    ToolFailed,
    Unauthenticated,
    Unreachable,
)
from pursersd.ids import journal_uri
from pursersd.secret import Secret
from rig.central import ADMIN_SEAT, Central, free_port
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio

WRONG_INSTANCE = "CI-" + "0" * 64


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def same(error: BaseException, kind: type[BaseException]) -> None:
    """Exactly this class: whoever catches them decides by it."""
    assert type(error) is kind, repr(error)


async def test_a_call_and_a_stream(central: Central, board: str) -> None:
    async with client(central.url, central.worker("ann", board), central.health()["instance_id"]) as ours:
        listed = await ours.call("board_list", {})
        assert board in [found["board_id"] for found in listed["boards"]]
        async with ours.listen([journal_uri(board)]) as cues:
            central.create_ticket(board, "cued")
            with anyio.fail_after(30):
                async for uri in cues:
                    assert uri == journal_uri(board)
                    break


async def test_the_first_byte_of_a_request_waits_for_its_admission_behind_the_connection(
    central: Central, board: str
) -> None:
    admitted = anyio.Event()
    with Proxy(central.port) as proxy:
        ours = CentralClient(proxy.url, Secret(central.worker("ann", board)), admit=admitted.wait)
        async with anyio.create_task_group() as group:
            group.start_soon(ours.call, "board_list", {})
            with anyio.fail_after(30):
                while not proxy.opened:
                    await anyio.sleep(0.01)
            await anyio.wait_all_tasks_blocked()
            assert proxy.seen() == []
            admitted.set()
        assert proxy.names() == {"board_list": 1}
        await ours.aclose()


@pytest.mark.parametrize("token", ["garbage", "expired", "of nobody"])
async def test_a_token_that_is_not_accepted(central: Central, board: str, token: str) -> None:
    tokens = {
        "garbage": "eyJhbGciOiJub25lIn0.e30.",
        "expired": central.mint("ann", "board:read board:write", board, lifetime=-60),
        "of nobody": central.worker("ann", board)[:-8] + "AAAAAAAA",
    }
    async with client(central.url, tokens[token]) as ours:
        with pytest.raises(CentralError) as called:
            await ours.call("board_list", {})
        with pytest.raises(CentralError) as listened:
            async with ours.listen([journal_uri(board)]):
                pass
    for caught in (called, listened):
        same(caught.value, Unauthenticated)
        assert tokens[token] not in str(caught.value)


async def test_a_token_without_the_scope(central: Central, board: str) -> None:
    async with client(central.url, central.mint("ann", "board:write", board)) as ours:
        with pytest.raises(CentralError) as caught:
            await ours.call("board_list", {})
    same(caught.value, Forbidden)


FAILURES: list[tuple[str, dict[str, Any], str | None, str]] = [
    ("no_such_tool", {}, None, "Unknown tool: no_such_tool"),
    ("board_catchup", {"limit": "many"}, None, "validation error"),
    ("ticket_get", {"ticket_id": "TK-none"}, "not_found", "ticket not found"),
    ("board_catchup", {"agent_name": "nobody"}, None, "agent is not a member of this board"),
    ("board_catchup", {"agent_name": ADMIN_SEAT, "cursor": 10**6}, None, "cursor is ahead of journal"),
]


@pytest.mark.parametrize(("tool", "arguments", "kind", "text"), FAILURES, ids=lambda value: str(value)[:30])
async def test_a_tool_that_fails(
    central: Central, board: str, tool: str, arguments: dict[str, Any], kind: str | None, text: str
) -> None:
    async with client(central.url, central.admin) as ours:
        with pytest.raises(CentralError) as caught:
            await ours.call(tool, {"board_id": board, **arguments})
    same(caught.value, ToolFailed)
    assert isinstance(caught.value, ToolFailed)
    assert (caught.value.tool, caught.value.kind) == (tool, kind)
    assert text in str(caught.value)
    assert not str(caught.value).startswith("Error executing tool")


@pytest.mark.parametrize("uri", ["board://{}/agent/AI-" + "0" * 64, "board://{}-else/journal", "http://elsewhere/"])
async def test_a_stream_that_is_denied(central: Central, board: str, uri: str) -> None:
    boards = central.board_count()
    async with client(central.url, central.worker("ann", board)) as ours:
        with pytest.raises(CentralError) as caught:
            async with ours.listen([journal_uri(board), uri.format(board)]):
                pass
        # the connection is in order afterwards
        await ours.call("board_list", {})
    same(caught.value, ProtocolRefused)
    assert isinstance(caught.value, ProtocolRefused)
    assert caught.value.rpc_code == -32600
    assert str(caught.value).startswith("subscription denied: principal is not authorized for resource ")
    assert central.board_count() == boards


async def test_another_instance_than_expected(central: Central, board: str) -> None:
    async with client(central.url, central.worker("ann", board), WRONG_INSTANCE) as ours:
        with pytest.raises(CentralError) as called:
            await ours.call("board_list", {})
        with pytest.raises(CentralError) as listened:
            async with ours.listen([journal_uri(board)]):
                pass
    same(called.value, InstanceMismatch)
    same(listened.value, InstanceMismatch)


async def test_nobody_listens() -> None:
    async with client(f"http://127.0.0.1:{free_port()}/mcp") as ours:
        with pytest.raises(CentralError) as called:
            await ours.call("board_list", {})
        with pytest.raises(CentralError) as listened:
            async with ours.listen(["board://b/journal"]):
                pass
    for caught in (called, listened):
        same(caught.value, Unreachable)
        assert not caught.value.sent
