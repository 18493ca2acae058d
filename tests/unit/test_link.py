"""conversation/link: lines of a shim to the MCP server and back, over a real socket and the real SDK."""

import json
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from mcp.server.mcpserver import Context

from pursers_shim import wire
from pursersd.conversation import link as module
from pursersd.conversation.conversation import Conversation, Origin
from pursersd.conversation.identity import identify
from pursersd.conversation.link import Link
from pursersd.feed.centrals import Centrals
from pursersd.settings import resolve
from pursersd.tools import server as tools

pytestmark = pytest.mark.anyio

PATIENCE = 5.0  # seconds for an answer
AT_ONCE = 0.5  # seconds in which a link must be over; the SDK waits 1 s for a peer that does not listen any more
LIMIT = 300_000
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "unit", "version": "1"}},
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Shim:
    """The other end of the link."""

    def __init__(self, stream: SocketStream, link: Link) -> None:
        self.link = link
        self.over = anyio.Event()
        """Set when the daemon's side has finished."""
        self._stream = stream
        self._lines = wire.Lines()
        self._ready: list[Any] = []

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def say(self, *messages: object) -> None:
        await self.send(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def next(self) -> Any:
        """The next line; None at the end."""
        with anyio.fail_after(PATIENCE):
            while not self._ready:
                try:
                    data = await self._stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return None
                self._ready += [json.loads(line) for line in self._lines.feed(data)]
            return self._ready.pop(0)

    async def shake_hands(self) -> None:
        await self.say(INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (await self.next())["id"] == 0

    async def call(self, identity: object, tool: str, **arguments: object) -> None:
        params = {"name": tool, "arguments": arguments}
        await self.say({"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params})

    async def result(self) -> tuple[Any, Any]:
        """The next answer: its id and the tool's structured result."""
        answer = await self.next()
        return answer["id"], answer["result"]["structuredContent"]

    async def hang_up(self) -> None:
        await self._stream.aclose()


class Calls:
    """The tools of these tests, and what happened to their calls."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.cancelled: list[str] = []
        self.acknowledged: list[str] = []
        self.go = anyio.Event()

    def tools(self) -> tuple[Any, ...]:
        async def block(ctx: Context[Conversation, Any], name: str) -> dict[str, Any]:
            """Until the test says go."""
            self.started.append(name)
            try:
                await self.go.wait()
            except BaseException:
                self.cancelled.append(name)
                raise
            return {"name": name}

        async def read(ctx: Context[Conversation, Any], name: str) -> dict[str, Any]:
            """An answer that wants to be acknowledged; tells how old its request is."""
            conversation = ctx.request_context.lifespan_context
            request = ctx.request_context.request_id
            assert request is not None

            async def acknowledge() -> None:
                self.acknowledged.append(name)

            conversation.acknowledge_when_delivered(request, acknowledge)
            return {"name": name, "age": conversation.take_age(request)}

        async def much(ctx: Context[Conversation, Any]) -> dict[str, Any]:
            """More than a socket holds."""
            return {"much": "x" * 2_000_000}

        return block, read, much


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()
    monkeypatch.setattr(tools, "TOOLS", calls.tools())
    return calls


def conversation() -> Conversation:
    us = identify(os.getpid(), None)
    assert us is not None
    return Conversation("c-1", Origin(us, None, "/", "1"), resolve({}, lambda path: ""), Centrals())


@asynccontextmanager
async def linked(talk: Conversation, early: list[bytes | wire.LineTooLong] | None = None) -> AsyncIterator[Shim]:
    ours, theirs = socket.socketpair()
    async with (
        await SocketStream.from_socket(ours) as daemon_side,
        await SocketStream.from_socket(theirs) as shim_side,
        anyio.create_task_group() as tasks,
    ):
        talk.tasks = tasks
        link = Link(daemon_side, wire.Lines(LIMIT), talk, talk.attach())
        shim = Shim(shim_side, link)

        async def serve() -> None:
            await link.serve(tools.build(), early or [])
            await daemon_side.aclose()
            shim.over.set()

        tasks.start_soon(serve)
        yield shim
        await shim.hang_up()
        with anyio.fail_after(PATIENCE):
            await shim.over.wait()
        tasks.cancel_scope.cancel()


async def until_started(calls: Calls, count: int) -> None:
    with anyio.fail_after(PATIENCE):
        while len(calls.started) < count:
            await anyio.sleep(0.002)


async def test_requests_are_answered(calls: Calls) -> None:
    talk = conversation()
    async with linked(talk) as shim:
        await shim.shake_hands()
        await shim.say({"jsonrpc": "2.0", "id": "a", "method": "tools/list"})
        answer = await shim.next()
        assert answer["id"] == "a"
        assert [tool["name"] for tool in answer["result"]["tools"]] == ["block", "read", "much"]
    assert talk.client_name == "unit"


async def test_lines_that_came_with_the_hello_are_served_first(calls: Calls) -> None:
    ping = json.dumps({"jsonrpc": "2.0", "id": "ping", "method": "ping"}).encode()
    async with linked(conversation(), [json.dumps(INITIALIZE).encode(), ping]) as shim:
        await shim.say({"jsonrpc": "2.0", "id": "later", "method": "ping"})
        assert [(await shim.next())["id"] for _ in range(3)] == [0, "ping", "later"]


BAD = [
    (b"not json", -32700),
    (b"\xff\xfe", -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700),
    (b'{"a":"\x00"}', -32700),
    (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", -32700),
    (b'"text"', -32600),
    (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    (b"7", -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b"x" * (LIMIT + 1), -32600),
]


@pytest.mark.parametrize(("line", "code"), BAD, ids=lambda value: str(value)[:40])
async def test_a_bad_line_is_answered_and_the_link_goes_on(calls: Calls, line: bytes, code: int) -> None:
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.send(line + b"\n")
        answer = await shim.next()
        assert (answer["id"], answer["error"]["code"]) == (None, code)
        await shim.say({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        assert (await shim.next())["id"] == 9


@pytest.mark.parametrize(
    "line", [{"id": 5}, {"jsonrpc": "1.0", "id": 5, "method": "ping"}, {"id": 5, "method": "ping"}]
)
async def test_what_is_no_json_rpc_is_answered_with_its_id(calls: Calls, line: object) -> None:
    async with linked(conversation()) as shim:
        await shim.say(line)
        answer = await shim.next()
        assert (answer["id"], answer["error"]["code"]) == (5, -32600)


async def test_blank_lines_and_unknown_messages_of_ours_are_ignored(calls: Calls) -> None:
    async with linked(conversation()) as shim:
        await shim.send(b"\n  \n\r\n")
        for params in (None, {}, {"id": None}, {"id": 1.5}, [1]):
            await shim.say({"jsonrpc": "2.0", "method": "pursers/delivered", "params": params})
        await shim.send(b'{"jsonrpc":"2.0","method":"pursers/delivered"}\n')
        await shim.say({"jsonrpc": "2.0", "id": 1, "method": "pursers/from-the-future", "params": {}})
        await shim.shake_hands()  # the first answer of all


async def test_requests_whose_ids_look_alike_get_their_own_answers(calls: Calls) -> None:
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        for identity in (1, "1", "01"):
            await shim.call(identity, "block", name=repr(identity))
        await until_started(calls, 3)
        calls.go.set()
        answers = [await shim.result() for _ in range(3)]
        assert sorted((repr(identity), result["name"]) for identity, result in answers) == [
            ("'01'", "'01'"),
            ("'1'", "'1'"),
            ("1", "1"),
        ]


async def test_a_cancelled_request_gets_no_answer_and_its_neighbours_do(calls: Calls) -> None:
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        for identity in (1, "1", 2):
            await shim.call(identity, "block", name=repr(identity))
        await until_started(calls, 3)
        for unknown in (3, "01", True, None, "2"):
            await shim.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": unknown}})
        await shim.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "1"}})
        await shim.say({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        assert (await shim.next())["id"] == 9
        calls.go.set()
        assert sorted([(await shim.result())[0] for _ in range(2)]) == [1, 2]
        assert calls.cancelled == ["'1'"]


@pytest.mark.parametrize("collides", [False, True])
async def test_age_and_acknowledgement_follow_the_hosts_id(calls: Calls, collides: bool) -> None:
    talk = conversation()
    talk.resumed_ages = {"7": 4.5}
    async with linked(talk) as shim:
        await shim.shake_hands()
        if collides:
            await shim.call(7, "block", name="same to the SDK")
            await until_started(calls, 1)
        await shim.call("7", "read", name="first")
        assert await shim.result() == ("7", {"name": "first", "age": 4.5})
        await shim.say({"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": 7}})
        await shim.say({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        assert (await shim.next())["id"] == 9
        assert calls.acknowledged == []
        await shim.say({"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": "7"}})
        await shim.call("7", "read", name="second")
        assert await shim.result() == ("7", {"name": "second", "age": 0.0})
        assert calls.acknowledged == ["first"]


async def test_the_end_of_the_socket_ends_the_link_at_once(calls: Calls) -> None:
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.call(1, "block", name="it")
        await until_started(calls, 1)
        began = time.monotonic()
        await shim.hang_up()
        with anyio.fail_after(PATIENCE):
            await shim.over.wait()
        assert time.monotonic() - began < AT_ONCE
        assert calls.cancelled == ["it"]


async def test_the_farewell_is_the_last_line(calls: Calls) -> None:
    """What is answered by the call's end is for the next link: the shim asks again."""
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.call(1, "block", name="it")
        await until_started(calls, 1)
        began = time.monotonic()
        await shim.link.close(wire.notification(wire.DRAIN, {"reason": "restart"}))
        assert await shim.next() == {"jsonrpc": "2.0", "method": "pursers/drain", "params": {"reason": "restart"}}
        assert await shim.next() is None
        assert time.monotonic() - began < AT_ONCE
        await shim.link.close()  # twice does not hurt
        await shim.link.tell(b"nobody hears this\n")


DRAIN = {"jsonrpc": "2.0", "method": "pursers/drain", "params": {"reason": "restart", "limit_s": 9.0}}
DRAINED = {"jsonrpc": "2.0", "method": "pursers/drained", "params": {}}


def delivered(identity: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": identity}}


async def test_a_drain_waits_for_the_report_of_what_was_answered(calls: Calls) -> None:
    async with linked(conversation()) as shim, anyio.create_task_group() as tasks:
        await shim.shake_hands()
        await shim.call(1, "read", name="it")
        assert (await shim.result())[0] == 1
        over = anyio.Event()

        async def drain() -> None:
            await shim.link.drain("restart", 9.0)
            over.set()

        tasks.start_soon(drain)
        assert await shim.next() == DRAIN
        await shim.say(DRAINED)
        await anyio.wait_all_tasks_blocked()
        assert not over.is_set()
        await shim.say(delivered(1))
        with anyio.fail_after(PATIENCE):
            await over.wait()
            while shim.link.is_busy:
                await anyio.sleep(0.005)
        assert calls.acknowledged == ["it"]


async def test_an_answer_that_would_have_to_be_acknowledged_is_left_to_the_next_daemon(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DRAIN_TIMEOUT", 0.05)
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.call(1, "block", name="plain")
        await until_started(calls, 1)
        await shim.link.drain("restart", 9.0)
        assert await shim.next() == DRAIN
        assert shim.link.is_busy
        # Two that crossed the news: both are carried out, only the plain one is answered.
        await shim.call(2, "read", name="kept back")
        calls.go.set()
        assert await shim.result() == (1, {"name": "plain"})
        await shim.call(3, "block", name="also plain")
        assert await shim.result() == (3, {"name": "also plain"})
        assert not shim.link.is_busy
        assert calls.acknowledged == []
        await shim.link.close()
        assert await shim.next() is None


async def test_a_shim_that_does_not_read_cannot_hold_the_end_up(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAIN_TIMEOUT", 0.05)
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.call(1, "much")
        await anyio.wait_all_tasks_blocked()  # the answer fills the socket
        with anyio.fail_after(PATIENCE):
            await shim.link.close(wire.notification(wire.DRAIN, {"reason": "restart"}))
            await shim.over.wait()


async def test_cancellation_ends_the_link(calls: Calls) -> None:
    ours, theirs = socket.socketpair()
    async with await SocketStream.from_socket(ours) as daemon_side, await SocketStream.from_socket(theirs):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Link(daemon_side, wire.Lines(), conversation(), 1).serve, tools.build(), [])
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
