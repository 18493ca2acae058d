"""What one line of the host is, or why it is refused.

Pure: bytes in, one of Request, Notification, Response, Refused out. A good line goes on as it came; one that no JSON-RPC
peer could answer sensibly is answered here, so that it disturbs nobody else.
"""

import json

from pursers_shim.wire import encode

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "MODERN_KEY",
    "PARSE_ERROR",
    "PRIVATE_PREFIX",
    "Notification",
    "Refused",
    "Request",
    "Response",
    "error",
    "id_key",
    "lost_id",
    "parse",
    "read",
    "result",
    "too_long",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603

PRIVATE_PREFIX = "pursers/"
"""Methods of the link itself; they never pass from or to the host."""

MODERN_KEY = "io.modelcontextprotocol/protocolVersion"
"""A request whose params._meta has this key belongs to the 2026-07-28 era, which has no handshake."""


class Request:
    """A line that wants one answer. Its `line`, like that of the others here, is the host's own, newline included."""

    __slots__ = ("id", "key", "line", "method", "modern")

    def __init__(self, line: bytes, method: str, identity: str | int, modern: bool) -> None:
        self.line = line
        self.method = method
        self.id = identity
        self.key = id_key(identity)
        self.modern = modern


class Notification:
    """A line that wants no answer. `cancels` is the key of the request that it cancels, if it is such a one."""

    __slots__ = ("cancels", "line", "method")

    def __init__(self, line: bytes, method: str, cancels: str | None) -> None:
        self.line = line
        self.method = method
        self.cancels = cancels


class Response:
    """The host's answer to a request of the daemon."""

    __slots__ = ("key", "line")

    def __init__(self, line: bytes, key: str) -> None:
        self.line = line
        self.key = key


class Refused:
    """A line that goes nowhere; `answer` tells the host what is wrong with it."""

    __slots__ = ("answer",)

    def __init__(self, answer: bytes) -> None:
        self.answer = answer


def read(line: bytes) -> Request | Notification | Response | Refused | None:
    """What `line` (without its newline) is. None for a blank line and for an answer that nobody can have asked for."""
    if not line or line.isspace():
        return None
    value, wrong = parse(line)
    if wrong is not None:
        return Refused(error(None, PARSE_ERROR, f"Parse error: {wrong}"))
    if isinstance(value, list):
        return Refused(error(None, INVALID_REQUEST, "A batch is not accepted. Send one message per line."))
    if not isinstance(value, dict):
        text = "A message must be a JSON object. Send one JSON-RPC 2.0 object per line."
        return Refused(error(None, INVALID_REQUEST, text))
    return _classify(line + b"\n", value)


def too_long(head: bytes, tail: bytes, limit: int) -> Refused:
    """The refusal of a line of more than `limit` bytes, of which only the beginning and the end are known."""
    text = f"The line is longer than {limit} bytes and was skipped. Send less in one message."
    is_request = b'"method"' in head and isinstance(_leading_members(head).get("method"), str)
    return Refused(error(lost_id(head, tail) if is_request else None, INVALID_REQUEST, text))


def lost_id(head: bytes, tail: bytes) -> str | int | None:
    """The id in a line of which the middle is lost, where it is certain: a member at the beginning, or the very last."""
    return _id(_leading_members(head).get("id", _last_id(tail)))


def parse(line: bytes) -> tuple[object, str | None]:
    """The JSON value, or what is wrong with the line and what to do."""
    if b"\0" in line:
        return None, "the line contains a NUL byte. Send each message as one line of UTF-8 JSON text."
    try:
        return _DECODER.decode(line.decode()), None
    except UnicodeDecodeError as wrong:
        return None, f"the line is not valid UTF-8 (byte {wrong.start}). Send each message as one line of UTF-8 JSON."
    except RecursionError:
        return None, "the JSON is nested too deeply. Send a flatter message."
    except ValueError as wrong:
        return None, f"the line is not JSON ({wrong}). Send each message as one line of JSON."


def error(identity: str | int | None, code: int, text: str) -> bytes:
    """A JSON-RPC error line."""
    return encode({"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": text}})


def result(identity: str | int, value: object) -> bytes:
    """A JSON-RPC result line."""
    return encode({"jsonrpc": "2.0", "id": identity, "result": value})


def id_key(identity: object) -> str:
    """The id as its JSON text: 1 and "1" are two ids."""
    return json.dumps(identity)


def _classify(line: bytes, value: dict[str, object]) -> Request | Notification | Response | Refused | None:
    valid = _id(value.get("id"))
    if "method" not in value and ("result" in value or "error" in value):
        return Response(line, id_key(valid)) if valid is not None else None
    if "id" in value and valid is None:
        return Refused(error(None, INVALID_REQUEST, "A request id must be a string or an integer. Send another id."))
    wrong = _fault(value)
    if wrong is not None:
        return Refused(error(valid, INVALID_REQUEST, wrong))
    method, params = value["method"], value.get("params")
    assert isinstance(method, str)
    if valid is None:
        return Notification(line, method, _cancelled_key(method, params))
    meta = params.get("_meta") if isinstance(params, dict) else None
    return Request(line, method, valid, isinstance(meta, dict) and MODERN_KEY in meta)


def _id(value: object) -> str | int | None:
    """`value` if MCP takes it as a request id: a string or an integer."""
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _fault(value: dict[str, object]) -> str | None:
    """What makes the object no JSON-RPC call, apart from its id."""
    if "method" not in value:
        return "The object has neither method nor result nor error. Send a JSON-RPC 2.0 message."
    if not isinstance(value["method"], str):
        return "The method must be a string."
    if value.get("jsonrpc") != "2.0":
        return 'The object is no JSON-RPC 2.0 message. Add "jsonrpc":"2.0".'
    if not isinstance(value.get("params", {}), dict):
        return "The params must be an object. Send them by name, or leave them out."
    return None


def _cancelled_key(method: str, params: object) -> str | None:
    if method != "notifications/cancelled" or not isinstance(params, dict):
        return None
    identity = _id(params.get("requestId"))
    return id_key(identity) if identity is not None else None


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


# Python takes NaN and Infinity for numbers; JSON, and so the daemon's parser, does not.
_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _leading_members(head: bytes) -> dict[str, object]:
    """The complete members at the beginning of an object that was cut off."""
    text = head.decode("utf-8", "ignore")
    members: dict[str, object] = {}
    at = text.find("{") + 1
    while 0 < at < len(text):
        try:
            name, at = _DECODER.raw_decode(text, _skip(text, at))
            value, at = _DECODER.raw_decode(text, _skip(text, _skip(text, at) + 1))
        except (ValueError, RecursionError):
            break  # the text was cut off inside this member
        at = _skip(text, at) + 1
        if at <= len(text):
            members[str(name)] = value
    return members


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r":
        at += 1
    return at


def _last_id(tail: bytes) -> object:
    """The value of `,"id":VALUE}` at the end. In valid JSON the last brace closes the outermost object."""
    text = tail.decode("utf-8", "ignore").rstrip()
    at = text.rfind('"id"')
    if at < 0:
        return None
    try:
        members = _DECODER.decode("{" + text[at:])
    except (ValueError, RecursionError):
        return None
    return members.get("id") if isinstance(members, dict) and len(members) == 1 else None
