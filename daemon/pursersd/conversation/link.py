"""A link: one socket connection of a shim. It carries MCP lines for its conversation until either side ends it."""

import functools
import logging
from dataclasses import dataclass

import anyio
import msgspec
from anyio.abc import SocketStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from pursers_shim import wire
from pursersd.conversation import bounds
from pursersd.conversation.asked import Asked
from pursersd.conversation.conversation import Conversation
from pursersd.conversation.outlet import Outlet, Stalled
from pursersd.conversation.request_ids import RequestIds
from pursersd.ids import RequestId
from pursersd.rules.windows import LW_CALL, LW_ELICIT, LW_LINK

log = logging.getLogger(__name__)

CHUNK = 65536
DRAIN_TIMEOUT = 1.0
"""Seconds to hand the last line to a shim that does not read, and for what it says to that."""

REPORT_LOOK = 0.01
"""Seconds between two looks whether it has reported what it delivered."""


class _Head(msgspec.Struct):
    """The part of a line that a link looks at itself."""

    method: str | None = None
    id: str | int | None = None
    params: msgspec.Raw = msgspec.Raw()


class _Delivered(msgspec.Struct):
    id: str | int


_head = msgspec.json.Decoder(_Head).decode


@dataclass(slots=True)
class _Streams:
    """The SDK's side of a link."""

    to_server: MemoryObjectSendStream[SessionMessage | Exception]
    from_server: MemoryObjectReceiveStream[SessionMessage]


class Link:
    """One connection of a conversation; `serve()` returns when it is over."""

    def __init__(
        self,
        stream: SocketStream,
        lines: wire.Lines,
        conversation: Conversation,
        epoch: int,
        limits: bounds.Limits | None = None,
    ) -> None:
        self.conversation = conversation
        self.epoch = epoch
        self._stream = stream
        self._lines = lines
        self._ids = RequestIds()
        self._asked = Asked()
        self._forms = 0
        """The open ones that the conversation knows of."""
        self._requests = conversation.requests
        self._outlet = Outlet(stream)
        self._limits = limits or bounds.Limits()
        self._is_open = True
        self._is_draining = False
        self._drained = anyio.Event()
        self._calls: set[RequestId] = set()
        """The tool calls in progress, by the server's ids."""
        self._is_answering = False
        """An answer is on its way into the socket."""
        self._kept: dict[str, object] = {}
        """What the shim was told to remember on this link."""
        self._farewell: bytes | None = None
        self._is_flooded = False
        """The newest request was one too many."""
        self._scope = anyio.CancelScope()

    async def greet(self, line: bytes) -> None:
        """Send the welcome, before any other line. Raises what a broken stream raises."""
        try:
            await self._outlet.send(line)
        except Stalled as why:
            raise anyio.BrokenResourceError from why

    async def serve(self, server: Server[Conversation], early: list[bytes | wire.LineTooLong]) -> None:
        """Relay between the socket and the MCP server until the socket ends, `close` or cancellation.

        `early` are lines that arrived together with the hello.
        """
        to_server, server_reads = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        server_writes, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        streams = _Streams(to_server, from_server)
        try:
            with to_server, server_reads, server_writes, from_server, self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._write, streams)
                    tasks.start_soon(self._serve_mcp, server, server_reads, server_writes)
                    await self._read(streams, early)
                    self._is_open = False
                    tasks.cancel_scope.cancel()
        finally:
            self._is_open = False
            self._note_forms()
            self._drained.set()
            if self._asked:
                what = f"{self.conversation.id}: link {self.epoch} ended with {len(self._asked)} open"
                self.conversation.windows.opened(LW_ELICIT, what, len(self._asked))
        if self._farewell is not None and not self._outlet.is_torn:
            with anyio.move_on_after(DRAIN_TIMEOUT):
                await self._send(self._farewell)

    @property
    def is_busy(self) -> bool:
        """Whether a call other than a wait is in progress, an answer is being sent, or a delivered one is not acknowledged."""
        in_progress = len(self._calls) > self.conversation.waits or self._is_answering
        return in_progress or self.conversation.is_acknowledging

    async def drain(self, reason: str, limit_s: float) -> None:
        """Tell the shim to hold what is new; returns when nothing new can come and what was answered is reported.

        Calls in progress go on and are answered, but for those that the next daemon can answer as well and better:
        an answer whose delivery we would have to acknowledge (RB-DEL) is left to it, because nobody may be here by then.
        """
        self._is_draining = True
        with anyio.move_on_after(DRAIN_TIMEOUT):
            await self.tell(wire.notification(wire.DRAIN, {"reason": reason, "limit_s": limit_s}))
            await self._drained.wait()
            while self._requests.is_unreported and self._is_open:  # the answer may be on its way to the host
                await anyio.sleep(REPORT_LOOK)

    def replace(self, epoch: int) -> None:
        """A newer link carries the conversation: this one has no effect from now on, is told so, and ends (RB-OWN-001)."""
        self._is_open = False
        self._farewell = wire.notification(wire.FENCE, {"link_epoch": epoch})
        self._scope.cancel()

    async def close(self, farewell: bytes | None = None) -> None:
        """End the link after `farewell`; answers that come later are not sent: the next link will ask again."""
        if self._is_open:
            if farewell is not None:
                with anyio.move_on_after(DRAIN_TIMEOUT):
                    await self._send(farewell)
            self._is_open = False
        self._scope.cancel()

    async def tell(self, line: bytes) -> None:
        """Send a line of our own."""
        if self._is_open:
            await self._send(line)

    async def _serve_mcp(
        self,
        server: Server[Conversation],
        reads: MemoryObjectReceiveStream[SessionMessage | Exception],
        writes: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        await serve_dual_era_loop(server, reads, writes, lifespan_state=self.conversation)

    async def _read(self, streams: _Streams, early: list[bytes | wire.LineTooLong]) -> None:
        for line in early:
            await self._take(line, streams)
        while True:
            try:
                data = await self._stream.receive(CHUNK)
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
            for line in self._lines.feed(data):
                await self._take(line, streams)

    async def _take(self, line: bytes | wire.LineTooLong, streams: _Streams) -> None:
        """Handle one line of the shim: a message of our own protocol, or one for the MCP server."""
        if isinstance(line, wire.LineTooLong):
            await self.tell(_error(None, -32600, f"Invalid request: {line}; it was skipped"))
            return
        if not line.strip():
            return
        try:
            head = _head(line)
        except msgspec.ValidationError as error:
            await self.tell(_error(None, -32600, f"Invalid request: send one JSON-RPC object per line ({error})"))
            return
        except (msgspec.DecodeError, RecursionError) as error:
            await self.tell(_error(None, -32700, f"Parse error: send one JSON-RPC object per line ({error})"))
            return
        if head.method is not None and head.method.startswith("pursers/"):
            self._take_own(head)
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            await self.tell(
                _error(
                    head.id,
                    -32600,
                    "Invalid request: not a JSON-RPC 2.0 message; it needs jsonrpc, and method or result",
                )
            )
            return
        if isinstance(message, JSONRPCRequest):
            await self._take_request(message, len(line), streams)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            await self._take_cancel(message, streams)
        elif isinstance(message, JSONRPCNotification):
            await streams.to_server.send(SessionMessage(message))
        elif (answer := self._asked.answered(message)) is not None:
            self._note_forms()
            await streams.to_server.send(SessionMessage(answer))

    async def _take_request(self, request: JSONRPCRequest, size: int, streams: _Streams) -> None:
        age_s = self.conversation.resumed_ages.pop(request.id, None)
        if bounds.is_full(len(self._ids), self._ids.size, self._limits):
            if not self._is_flooded:
                log.warning(
                    "%s: refuses calls: %d are in progress, with %d bytes",
                    self.conversation.id,
                    len(self._ids),
                    self._ids.size,
                )
            self._is_flooded = True
            if bounds.is_unknown(request, was_sent_before=age_s is not None):
                self.conversation.windows.opened(LW_CALL, f"{self.conversation.id}: no room for a call that came again")
            await self.tell(bounds.refusal(request, self._limits, was_sent_before=age_s is not None))
            return
        self._is_flooded = False
        own = self._ids.assign(request.id, size)
        if request.method == "tools/call":
            self._calls.add(own)
        self._requests.begin(request.id, own, age_s)
        metadata = ServerMessageMetadata(on_request_unanswered=functools.partial(self._settled, own))
        await streams.to_server.send(SessionMessage(request.model_copy(update={"id": own}), metadata))

    async def _take_cancel(self, message: JSONRPCNotification, streams: _Streams) -> None:
        host = (message.params or {}).get("requestId")
        if isinstance(host, str | int):
            self._requests.cancelled(host)
            self.conversation.resumed_ages.pop(host, None)  # a later request of this id was never sent before
        cancelled = self._ids.translate_cancel(message)
        if cancelled is not None:
            await streams.to_server.send(SessionMessage(cancelled))

    async def _settled(self, own: RequestId) -> None:
        """The server is done with a request that it does not answer, because it was cancelled."""
        self._ids.release(own)
        self._calls.discard(own)
        self._requests.end(own, answered=False)

    def _take_own(self, head: _Head) -> None:
        if head.method == wire.DRAINED:
            self._drained.set()
            return
        if head.method == wire.DELIVERED:
            try:
                delivered = msgspec.json.decode(head.params, type=_Delivered)
            except msgspec.DecodeError:
                log.warning("%s: a %s without an id", self.conversation.id, head.method)
                return
            self.conversation.delivered(delivered.id)
            return
        # A newer shim may say more than we understand; what it says is never a request.
        log.debug("%s: ignored %s", self.conversation.id, head.method)

    async def _write(self, streams: _Streams) -> None:
        try:
            async for outgoing in streams.from_server:
                await self._pass_on(outgoing)
        finally:
            # The server takes its leave of every request in progress and would wait in vain for somebody who listens.
            with anyio.CancelScope(shield=True):
                async for _ in streams.from_server:
                    continue

    async def _pass_on(self, outgoing: SessionMessage) -> None:
        message = outgoing.message
        own_id: RequestId | None = getattr(message, "id", None)
        if isinstance(message, JSONRPCRequest):
            message = self._asked.ask(message)
            self._note_forms()
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            message = self._asked.given_up(message)
            self._note_forms()
        elif own_id is not None:
            host_id = self._ids.release(own_id)
            is_call = own_id in self._calls
            self._calls.discard(own_id)
            if self._is_draining and self._requests.leave(own_id):
                return
            self._requests.end(own_id, answered=host_id is not None and self._is_open, is_call=is_call)
            if host_id is None:
                return  # cancelled while its answer was on its way
            message = message.model_copy(update={"id": host_id})
        if self._kept != self.conversation.kept:
            self._kept = dict(self.conversation.kept)
            await self.tell(wire.notification(wire.KEEP, self._kept))
        if self._is_open:
            self._is_answering = True
            await self._send(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            self._is_answering = False

    def _note_forms(self) -> None:
        """Tell the conversation how many forms are open; none when the link has ended, whatever its host still shows."""
        known, self._forms = self._forms, len(self._asked) if self._is_open else 0
        self.conversation.holder.forms_changed(self._forms - known)

    async def _send(self, line: bytes) -> None:
        try:
            await self._outlet.send(line)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._is_open = False  # the reader notices the end, too, and ends the link
        except Stalled as why:
            if not self._is_open:
                return  # others waited for their turn, too: it was said already
            self.conversation.windows.opened(LW_LINK, f"{self.conversation.id}: link {self.epoch} is cut: {why}")
            self.conversation.cut(self.epoch, str(why))
            self._is_open = False
            self._scope.cancel()


def _error(request_id: RequestId | None, code: int, text: str) -> bytes:
    return wire.encode({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}})
