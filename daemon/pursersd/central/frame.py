"""What one JSON-RPC line of Central says (central.md §2): read as far as we look, and a refusal as the error that it is."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from pursersd.errors import CentralError, InstanceMismatch, ProtocolRefused, ToolFailed

Decoded = TypeVar("Decoded")


class _Error(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Content(msgspec.Struct):
    text: str = ""


class _Result(msgspec.Struct):
    isError: bool = False
    structuredContent: msgspec.Raw = msgspec.Raw(b"null")
    """Left as it is, because its length is what counts in the statistics."""
    content: msgspec.Raw = msgspec.Raw(b"[]")
    """The same once more, as text: looked at only in a failure."""


class _Params(msgspec.Struct):
    uri: str | None = None


class Frame(msgspec.Struct):
    """A JSON-RPC answer or notification of Central; fields that we do not use are skipped."""

    method: str | None = None
    params: _Params | None = None
    result: _Result | None = None
    error: _Error | None = None


_decode = msgspec.json.Decoder(Frame).decode
_structured = msgspec.json.Decoder(dict[str, Any] | None).decode
_content = msgspec.json.Decoder(list[_Content]).decode


def parse(data: bytes | str) -> Frame:
    """The frame in a line. Raises ProtocolRefused for something else."""
    return _understood(_decode, data)


def raise_refusal(frame: Frame) -> None:
    """Raise InstanceMismatch or ProtocolRefused if the frame is an error."""
    if frame.error is None:
        return
    if "instance" in frame.error.message.lower() and "mismatch" in frame.error.message.lower():
        raise InstanceMismatch(frame.error.message)
    raise ProtocolRefused(frame.error.message, rpc_code=frame.error.code)


def tool_result(tool: str, frame: Frame) -> tuple[dict[str, Any], bytes]:
    """What a call brought, and its JSON as it came. Raises what `raise_refusal` does, and ToolFailed."""
    raise_refusal(frame)
    result = frame.result
    if result is None:
        raise ProtocolRefused(f"Central answered {tool} without a result", is_answer=False)
    if result.isError:
        raise _tool_error(tool, result)
    text = bytes(result.structuredContent)
    return _understood(_structured, text) or {}, text


def _tool_error(tool: str, result: _Result) -> CentralError:
    typed = _understood(_structured, bytes(result.structuredContent))
    if typed and typed.get("schema") == "pursers_tool_error_v1":
        return ToolFailed(tool, str(typed.get("detail", "")), str(typed.get("code", "")) or None)
    content = _understood(_content, bytes(result.content))
    text = (content[0].text if content else "").removeprefix(f"Error executing tool {tool}: ")
    if text.startswith("Central instance mismatch"):
        return InstanceMismatch(text)
    return ToolFailed(tool, text)


def _understood(decode: Callable[[bytes | str], Decoded], data: bytes | str) -> Decoded:
    try:
        return decode(data)
    except msgspec.DecodeError as error:
        raise ProtocolRefused(f"Central answered with something that is not MCP: {error}", is_answer=False) from error
