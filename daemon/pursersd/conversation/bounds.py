"""How much a conversation may have in progress at once, and what it reads when that is too much.

A host that floods its own conversation is refused; the others do not notice.
"""

from collections.abc import Mapping
from typing import Any

from mcp_types import PROTOCOL_VERSION_META_KEY, JSONRPCRequest

from pursers_shim import wire
from pursersd.rules.resend import read_only

REQUESTS = 256
"""Requests of one conversation in progress at once."""

SIZE = 32 * 1024 * 1024
"""Bytes of their lines; one line may come on top."""

TOO_MANY = -32000
"""JSON-RPC error code of a refused request that is no tool call."""


def is_full(requests: int, size: int) -> bool:
    """Whether so many requests with so many bytes leave no room for another one."""
    return requests >= REQUESTS or size >= SIZE


def refusal(request: JSONRPCRequest, *, was_sent_before: bool) -> bytes:
    """The answer to a request for which there is no room. `was_sent_before`: it may have been carried out already."""
    params = request.params or {}
    action = "Wait for some of the answers, then call again."
    text = f"This conversation has as many calls in progress as it may ({REQUESTS} calls, {SIZE} bytes). {action}"
    if request.method != "tools/call":
        return wire.encode({"jsonrpc": "2.0", "id": request.id, "error": {"code": TOO_MANY, "message": text}})
    is_unknown = was_sent_before and not read_only(str(params.get("name", "")))
    result = wire.failed_call(
        wire.QUEUE_FULL,
        text,
        action="Look at its effect before you repeat it." if is_unknown else action,
        outcome="unknown" if is_unknown else "not_sent",
        modern=_is_modern(params),
    )
    return wire.encode({"jsonrpc": "2.0", "id": request.id, "result": result})


def _is_modern(params: Mapping[str, Any]) -> bool:
    meta = params.get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta
