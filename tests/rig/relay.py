"""One connection through the fault proxy: HTTP/1.1, exchange by exchange, so that counts and faults are exact."""

import asyncio
import contextlib
import hashlib
import json
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any, Protocol

import h11

READ_SIZE = 65536  # bytes
EVENT_END = b"\r\n\r\n"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"


@dataclass(frozen=True, slots=True)
class Seen:
    """One request that reached the proxy."""

    at: float
    """time.perf_counter() when its last byte was here."""
    connection: int
    line: str
    """HTTP method and path."""
    rpc_id: str | int | None
    method: str | None
    """JSON-RPC method; None if the body is none."""
    tool: str | None
    arguments: dict[str, Any]
    """The tool's arguments, or the params of another method."""
    credential: str | None
    """SHA-256 of the bearer token, or None without one."""
    size: int
    """Bytes of the body."""

    @property
    def name(self) -> str | None:
        """The tool's name, for other requests the JSON-RPC method."""
        return self.tool or self.method

    @property
    def uris(self) -> list[str]:
        """What a listen subscribes to."""
        return list(self.arguments.get("notifications", {}).get("resourceSubscriptions", ()))


class Faults(Protocol):
    """What a relay asks and tells its proxy."""

    passable: asyncio.Event
    """Cleared while the network is a black hole."""

    def note(self, seen: Seen) -> None:
        """A request is complete."""

    def answered(self, seen: Seen, seconds: float) -> None:
        """Central has answered a request, its last byte so long after the request's last."""

    async def gate(self, seen: Seen) -> None:
        """Return when the request may go on to Central."""

    def drops_answer(self, seen: Seen) -> bool:
        """Whether the answer shall never arrive; asked once per request."""

    def refusal(self, seen: Seen) -> str | None:
        """The words in which the request shall be refused in Central's place."""

    def failure(self, seen: Seen) -> int | None:
        """The HTTP status that the request shall get in Central's place."""


class Relay:
    """A client's connection and its own connection to Central; `run()` returns when both are closed.

    Do not cancel `run()`: `reset()` ends it.
    """

    def __init__(self, number: int, faults: Faults, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self.listen: Seen | None = None
        """The listen whose stream is open on this connection."""
        self._faults = faults
        self._busy = False
        self._tail = b""
        self._client = _Wire(reader, writer, h11.SERVER, faults.passable)
        self._exchanging: asyncio.Task[None] | None = None

    async def run(self, upstream_port: int) -> None:
        client = self._client
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", upstream_port)
        except OSError:
            await client.close()
            return
        upstream = _Wire(reader, writer, h11.CLIENT, self._faults.passable)
        pumps = [asyncio.create_task(client.pump()), asyncio.create_task(upstream.pump())]
        self._exchanging = asyncio.create_task(self._exchange_all(client, upstream))
        try:
            await self._until_an_end(pumps[0], pumps[1], self._exchanging)
        finally:
            for task in (*pumps, self._exchanging):
                task.cancel()
            await asyncio.gather(*pumps, self._exchanging, return_exceptions=True)
            self.listen = None
            await upstream.close()
            await client.close()

    def reset(self) -> None:
        """Cut the client's connection with a TCP reset."""
        self._client.reset()

    def half_open(self) -> None:
        """Let no more byte of Central through, and no end of the connection: to the client it looks alive for ever."""
        self._client.silence()

    def overflow(self) -> None:
        """End the open stream as Central ends one whose reader was too slow: with a normal result (central.md §4.3)."""
        assert self.listen is not None, "no stream is open on this connection"
        assert self._exchanging is not None, "the connection has not begun"
        assert self._tail.endswith(EVENT_END), "the stream is in the middle of an event"
        number = self.listen.rpc_id
        result = {"_meta": {SUBSCRIPTION_ID: str(number)}, "resultType": "complete"}
        answer = json.dumps({"jsonrpc": "2.0", "id": number, "result": result})
        self._client.write(h11.Data(f"event: message\r\ndata: {answer}\r\n\r\n".encode()))
        self._client.write(h11.EndOfMessage())
        self.listen = None
        self._exchanging.cancel()

    async def _until_an_end(
        self, client: "asyncio.Task[None]", upstream: "asyncio.Task[None]", exchanging: "asyncio.Task[None]"
    ) -> None:
        await asyncio.wait({client, upstream, exchanging}, return_when=asyncio.FIRST_COMPLETED)
        if self._busy and not client.done() and not exchanging.done():
            # Central closed behind an answer that is still on its way to the client.
            await asyncio.wait({client, exchanging}, return_when=asyncio.FIRST_COMPLETED)
        if not client.done():
            # A black hole does not even carry the news that the other side is gone.
            passable = asyncio.create_task(self._faults.passable.wait())
            await asyncio.wait({client, passable}, return_when=asyncio.FIRST_COMPLETED)
            passable.cancel()

    async def _exchange_all(self, client: "_Wire", upstream: "_Wire") -> None:
        # A peer that breaks HTTP or goes away in the middle ends the connection, as it would without us.
        with contextlib.suppress(h11.ProtocolError, OSError):
            while await self._exchange(client, upstream):
                client.http.start_next_cycle()
                upstream.http.start_next_cycle()

    async def _exchange(self, client: "_Wire", upstream: "_Wire") -> bool:
        """Carry one request and its answer; False when the connection cannot be used again."""
        request = await client.event()
        if not isinstance(request, h11.Request):
            return False
        body = await client.body()
        self._busy = True
        seen = _seen(self.number, request, body)
        self._faults.note(seen)
        await self._faults.gate(seen)
        if (words := self._faults.refusal(seen)) is not None:
            await _refuse(client, seen, words)
            return False
        if (status := self._faults.failure(seen)) is not None:
            await _fail(client, status)
            return False
        for event in (request, h11.Data(body), h11.EndOfMessage()) if body else (request, h11.EndOfMessage()):
            await upstream.send(event)
        dropped = self._faults.drops_answer(seen)
        sent = time.perf_counter()
        if not await self._answer(seen, client, upstream, dropped):
            return False
        self._faults.answered(seen, time.perf_counter() - sent)
        if dropped:
            client.reset()
            return False
        self._busy = False
        return client.http.our_state is h11.DONE and upstream.http.our_state is h11.DONE

    async def _answer(self, seen: Seen, client: "_Wire", upstream: "_Wire", dropped: bool) -> bool:
        while True:
            event = await upstream.event()
            if isinstance(event, h11.ConnectionClosed):
                return False
            if isinstance(event, h11.Response) and event.status_code == 200 and seen.method == "subscriptions/listen":
                self.listen = seen
            if not dropped:
                await client.send(event)
            if isinstance(event, h11.Data):
                self._tail = (self._tail + bytes(event.data))[-len(EVENT_END) :]
            if isinstance(event, h11.EndOfMessage):
                self.listen = None
                return True


class _Wire:
    """One TCP connection with its HTTP state. `pump()` keeps reading, so that the end is noticed at once."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        role: type[Any],
        passable: asyncio.Event,
    ) -> None:
        self.http = h11.Connection(role, max_incomplete_event_size=READ_SIZE)
        self._reader = reader
        self._writer = writer
        self._passable = passable
        self._more = asyncio.Event()

    async def pump(self) -> None:
        with contextlib.suppress(OSError):
            while data := await self._reader.read(READ_SIZE):
                self.http.receive_data(data)
                self._more.set()
        self.http.receive_data(b"")
        self._more.set()

    async def event(self) -> h11.Event:
        while True:
            event = self.http.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                self._more.clear()
                await self._more.wait()
                continue
            assert isinstance(event, h11.Event), event
            return event

    async def body(self) -> bytes:
        parts = []
        while isinstance(event := await self.event(), h11.Data):
            parts.append(bytes(event.data))
        return b"".join(parts)

    async def send(self, event: h11.Event) -> None:
        await self._passable.wait()
        self.write(event)
        await self._writer.drain()

    def write(self, event: h11.Event) -> None:
        if data := self.http.send(event):
            self._writer.write(data)

    def silence(self) -> None:
        self._passable = asyncio.Event()

    def reset(self) -> None:
        raw = self._writer.get_extra_info("socket")
        if raw is not None and raw.fileno() >= 0:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def _refuse(client: _Wire, seen: Seen, words: str) -> None:
    """Answer as Central does to a request that its principal may not make, such as a listen (central.md §4.2)."""
    error = {"code": -32600, "message": words}
    body = json.dumps({"jsonrpc": "2.0", "id": seen.rpc_id, "error": error}).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), ("Connection", "close")]
    for event in (h11.Response(status_code=400, headers=headers), h11.Data(body), h11.EndOfMessage()):
        await client.send(event)


async def _fail(client: _Wire, status: int) -> None:
    """Answer as a proxy does whose server is gone."""
    body = b"<html>out of order</html>"
    headers = [("Content-Type", "text/html"), ("Content-Length", str(len(body))), ("Connection", "close")]
    for event in (h11.Response(status_code=status, headers=headers), h11.Data(body), h11.EndOfMessage()):
        await client.send(event)


def _seen(connection: int, request: h11.Request, body: bytes) -> Seen:
    message = _json_object(body)
    params = message.get("params") or {}
    method = message.get("method")
    tool = params.get("name") if method == "tools/call" else None
    arguments = params.get("arguments") or {} if tool else params
    return Seen(
        at=time.perf_counter(),
        connection=connection,
        line=f"{request.method.decode()} {request.target.decode()}",
        rpc_id=message.get("id"),
        method=method,
        tool=tool,
        arguments={name: value for name, value in arguments.items() if name != "_meta"},
        credential=_credential(request),
        size=len(body),
    )


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _credential(request: h11.Request) -> str | None:
    for name, value in request.headers:
        if name == b"authorization":
            return fingerprint(value.decode().removeprefix("Bearer "))
    return None


def fingerprint(token: str) -> str:
    """How the proxy names a bearer token."""
    return hashlib.sha256(token.encode()).hexdigest()
