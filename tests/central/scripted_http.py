"""A small HTTP peer that answers what the test says, byte for byte."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import SocketAttribute, SocketStream

CRLF = b"\r\n"


@dataclass
class Request:
    """What a client sent."""

    line: str
    headers: dict[str, str]
    body: bytes


Reply = bytes | Callable[[SocketStream], Awaitable[None]]
"""Bytes to send, or something that writes by itself; afterwards the connection is closed."""


@dataclass
class Peer:
    """`replies` are given in order, the last one again and again."""

    replies: list[Reply]
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """Where it is, as a Central."""
        return f"http://127.0.0.1:{self.port}/mcp"

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            try:
                self.requests.append(await _request(stream))
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                if isinstance(reply, bytes):
                    await stream.send(reply)
                else:
                    await reply(stream)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return  # the client has gone


@asynccontextmanager
async def peer(*replies: Reply) -> AsyncIterator[Peer]:
    """A peer that listens until the end of the block."""
    found = Peer(list(replies))
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        found.port = listener.extra(SocketAttribute.local_port)
        tasks.start_soon(listener.serve, found.serve)
        yield found
        tasks.cancel_scope.cancel()


def answer(body: bytes, status: str = "200 OK", kind: str = "application/json", **headers: str) -> bytes:
    """A whole response."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + 2 * CRLF + body


def stream_head() -> bytes:
    """The beginning of an event stream whose end is the end of the connection."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def event(data: bytes) -> bytes:
    """One event of a stream, as Central writes it."""
    return b"event: message\r\ndata: " + data + 2 * CRLF


async def _request(stream: SocketStream) -> Request:
    data = b""
    while 2 * CRLF not in data:
        data += await stream.receive()
    head, _, body = data.partition(2 * CRLF)
    line, *rest = head.decode().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    return Request(line, headers, body)
