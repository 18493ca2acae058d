"""A link of the daemon over a real socket, with the real SDK and tools that do what a test says."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import SocketStream, UNIXSocketStream
from mcp.server.mcpserver import Context

from pursers_shim import wire
from pursersd.conversation.conversation import Conversation
from pursersd.conversation.identity import identify
from pursersd.conversation.lineage import Lineage
from pursersd.conversation.link import Link
from pursersd.conversation.surroundings import Surroundings
from pursersd.feed.centrals import Centrals
from pursersd.rules.resend import Resend, Tool
from pursersd.settings import resolve
from pursersd.tools import server as tools
from unit.line_stream import PATIENCE as PATIENCE
from unit.line_stream import LineStream

LIMIT = 300_000
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "unit", "version": "1"}},
}
CLASSES = {name: Tool(Resend.WAIT, "of a test") for name in ("block", "read", "much", "wait")}
"""For the table of rules/resend.py: a tool that stands not there is never begun again."""


class Shim(LineStream):
    """The other end of the link."""

    def __init__(self, stream: SocketStream, link: Link) -> None:
        super().__init__(stream)
        self.link = link
        self.over = anyio.Event()
        """Set when the daemon's side has finished."""

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
        self.let_go = anyio.Event()
        """Set when a wait that is over may end."""

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

            conversation.requests.acknowledge_when_delivered(request, acknowledge)
            return {"name": name, "age": conversation.requests.age_s(request)}

        async def much(ctx: Context[Conversation, Any]) -> dict[str, Any]:
            """More than a socket holds."""
            return {"much": "x" * 2_000_000}

        async def wait(ctx: Context[Conversation, Any], name: str) -> dict[str, Any]:
            """A wait, as the conversation counts them, that takes its time to end."""
            with ctx.request_context.lifespan_context.waiting():
                self.started.append(name)
                try:
                    await self.go.wait()
                finally:
                    with anyio.move_on_after(PATIENCE, shield=True):
                        await self.let_go.wait()
                return {"name": name}

        return block, read, much, wait


def conversation() -> Conversation:
    us = identify(os.getpid(), None)
    assert us is not None
    return Conversation(
        "c-1", Lineage(us, None, "/", "1"), Surroundings(lambda: resolve({}, lambda path: "")), Centrals()
    )


@asynccontextmanager
async def linked(
    talk: Conversation,
    early: list[bytes | wire.LineTooLong] | None = None,
    *,
    room: int | None = None,
    kind: type[SocketStream] | type[UNIXSocketStream] = SocketStream,
) -> AsyncIterator[Shim]:
    """A link of `talk` and the other end of it. `room`: bytes, about, that the socket takes of what is not read.

    `kind`: SocketStream has a buffer of its own, so that a send that is given up goes on; the daemon's UNIXSocketStream has none.
    """
    ours, theirs = socket.socketpair()
    if room is not None:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
    async with (
        await kind.from_socket(ours) as daemon_side,
        await kind.from_socket(theirs) as shim_side,
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


async def until_sending(shim: Shim) -> None:
    """Until an answer is on its way into the socket."""
    with anyio.fail_after(PATIENCE):
        while not shim.link._is_answering:
            await anyio.sleep(0.002)
    await anyio.wait_all_tasks_blocked()


async def until_started(calls: Calls, count: int) -> None:
    with anyio.fail_after(PATIENCE):
        while len(calls.started) < count:
            await anyio.sleep(0.002)
