"""How much a conversation may have in progress at once, and what it reads when that is too much.

A host that floods its own conversation is refused; the others do not notice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_types import PROTOCOL_VERSION_META_KEY, JSONRPCRequest

from pursers_shim import wire
from pursersd.rules import resend
from pursersd.rules.configuration import DEFAULTS

REQUESTS = DEFAULTS.max_calls
"""Requests of one conversation in progress at once."""

SIZE = DEFAULTS.max_call_bytes
"""Bytes of their lines; one line may come on top."""

TOO_MANY = -32000
"""JSON-RPC error code of a refused request that is no tool call."""


@dataclass(slots=True)
class Limits:
    """What a conversation may have in progress; one for all of them, which a reload of the configuration changes."""

    requests: int = field(default_factory=lambda: REQUESTS)
    size: int = field(default_factory=lambda: SIZE)


def is_full(requests: int, size: int, limits: Limits) -> bool:
    """Whether so many requests with so many bytes leave no room for another one."""
    return requests >= limits.requests or size >= limits.size


def is_unknown(request: JSONRPCRequest, *, was_sent_before: bool) -> bool:
    """Whether a request without room is a call that may have been carried out when it was sent before."""
    is_call = request.method == "tools/call"
    return was_sent_before and is_call and not resend.read_only(str((request.params or {}).get("name", "")))


def refusal(request: JSONRPCRequest, limits: Limits, *, was_sent_before: bool) -> bytes:
    """The answer to a request for which there is no room. `was_sent_before`: it may have been carried out already."""
    params = request.params or {}
    action = "Wait for some of the answers, then call again."
    most = f"{limits.requests} calls, {limits.size} bytes"
    full = f"This conversation has as many calls in progress as it may ({most})."
    if request.method != "tools/call":
        error = {"code": TOO_MANY, "message": f"{full} {action}"}
        return wire.encode({"jsonrpc": "2.0", "id": request.id, "error": error})
    if is_unknown(request, was_sent_before=was_sent_before):
        result = _unknown(params, f"it had been sent before, and there is no room for it now ({most})")
    else:
        text = f"{full} {action}"
        result = wire.failed_call(wire.QUEUE_FULL, text, action=action, outcome="not_sent", modern=_is_modern(params))
    return wire.encode({"jsonrpc": "2.0", "id": request.id, "result": result})


def _unknown(params: Mapping[str, Any], why: str) -> dict[str, object]:
    """It came again and is not begun again, so that nobody here learns whether it was carried out the first time."""
    name, given = str(params.get("name", "")), params.get("arguments")
    arguments = given if isinstance(given, Mapping) else {}
    return wire.failed_call(
        wire.OUTCOME_UNKNOWN,
        resend.unknown_text(name, arguments, why),
        action=resend.tool(name).check,
        outcome="unknown",
        modern=_is_modern(params),
        about={"tool": name, "target": resend.target(name, arguments)},
    )


def _is_modern(params: Mapping[str, Any]) -> bool:
    meta = params.get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta
