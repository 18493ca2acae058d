"""What a question carries from one round to the next is sealed with the keys of the conversation that asks (bridge.md §4.4).

The SDK seals and opens (`RequestStateBoundary`), with one codec for the whole server; which keys count is known per call.
"""

import logging
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState, RequestStateSecurity

from pursersd.conversation.conversation import Conversation
from pursersd.errors import KeyringError
from pursersd.state.keyring import Keyring

log = logging.getLogger(__name__)

TTL_S = 3600.0
"""Seconds that a human has for one round."""


@dataclass(slots=True)
class _Round:
    """One call."""

    keyring: Keyring
    codec: AESGCMRequestStateCodec | None = None

    async def load(self) -> None:
        """Make the codec of the keys that are in the file at this moment. Raises KeyringError."""
        if self.codec is None:
            self.codec = AESGCMRequestStateCodec(await to_thread.run_sync(self.keyring.load))


_round: ContextVar[_Round] = ContextVar("the call in progress")


class _Codec:
    """Seals and opens with the keys of the call in progress."""

    def seal(self, payload: bytes) -> str:
        """The token for a payload."""
        codec = _round.get().codec
        assert codec is not None, "whoever asks a question calls `prepare` before"
        return codec.seal(payload)

    def unseal(self, token: str) -> bytes:
        """The payload of a token. Raises InvalidRequestState."""
        codec = _round.get().codec
        if codec is None:
            raise InvalidRequestState("the keys cannot be used")
        return codec.unseal(token)


def security() -> RequestStateSecurity:
    """How a server seals that has `with_keys` as its outermost middleware; its audience is the server's name."""
    return RequestStateSecurity(codec=_Codec(), ttl=TTL_S)


async def with_keys(ctx: ServerRequestContext[Conversation, Any], call_next: CallNext) -> HandlerResult:
    """Middleware: the keys of the conversation for this request, read if it brings a sealed state."""
    current = _Round(ctx.lifespan_context.keyring)
    token = _round.set(current)
    try:
        if ctx.params is not None and ctx.params.get("requestState") is not None:
            try:
                await current.load()
            except KeyringError as error:
                log.warning("%s: %s", ctx.lifespan_context.id, error)
        return await call_next(ctx)
    finally:
        _round.reset(token)


async def prepare() -> None:
    """To be called before a question is asked whose answer comes with another call. Raises KeyringError."""
    await _round.get().load()
