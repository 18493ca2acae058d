"""The wire formats of three vendors, as far as a host needs them: what it asks, and one whole or streamed answer."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Json = dict[str, Any]
STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Say:
    """The model says something and is done."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool, by the name that the host gave it."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Step = Say | Call


class Format(ABC):
    """One vendor's API."""

    listing: Mapping[str, Any] = MappingProxyType({})
    """What any GET gets."""

    @abstractmethod
    def errand(self, path: str) -> Json | None:
        """The answer to a request that is no turn of a conversation; None for a turn."""

    @abstractmethod
    def tools(self, request: Json) -> list[str]:
        """The tools that the model may call, as `Call` names them."""

    @abstractmethod
    def results(self, request: Json) -> list[str]:
        """What the tools have answered so far in the conversation, as text, the newest last."""

    @abstractmethod
    def answer(self, path: str, request: Json, step: Step, number: int) -> tuple[bytes, str]:
        """Body and content type of the answer in which the model does `step`. `number` makes its ids unique."""


class Anthropic(Format):
    """The Messages API: Claude Code, opencode."""

    def errand(self, path: str) -> Json | None:
        if "count_tokens" in path:
            return {"input_tokens": 1}
        return None if "/messages" in path else {}

    def tools(self, request: Json) -> list[str]:
        return [str(tool.get("name")) for tool in request.get("tools") or []]

    def results(self, request: Json) -> list[str]:
        contents = [message["content"] for message in request["messages"] if isinstance(message["content"], list)]
        return [_plain(block) for content in contents for block in content if block.get("type") == "tool_result"]

    def answer(self, path: str, request: Json, step: Step, number: int) -> tuple[bytes, str]:
        block, delta = self._block(step, number)
        reason = "tool_use" if isinstance(step, Call) else "end_turn"
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": request.get("model", "scripted"),
            "content": [block],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if not request.get("stream"):
            return json.dumps(message).encode(), "application/json"
        empty = {**block, **({"input": {}} if isinstance(step, Call) else {"text": ""})}
        events: list[Json] = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        return _stream(events, named=True), STREAM

    @staticmethod
    def _block(step: Step, number: int) -> tuple[Json, Json]:
        """A block of content, and the delta that carries it in a stream."""
        if isinstance(step, Say):
            return {"type": "text", "text": step.text}, {"type": "text_delta", "text": step.text}
        called = {"type": "tool_use", "id": f"toolu_{number}", "name": step.tool, "input": dict(step.arguments)}
        return called, {"type": "input_json_delta", "partial_json": json.dumps(dict(step.arguments))}


class OpenAI(Format):
    """The Responses API: Codex. A tool in a namespace is called `namespace/name` here."""

    listing = MappingProxyType({"object": "list", "data": [], "models": []})

    def errand(self, path: str) -> Json | None:
        return None if path.partition("?")[0].endswith("/responses") else {}

    def tools(self, request: Json) -> list[str]:
        found: list[str] = []
        for tool in request.get("tools") or []:
            if tool.get("type") == "namespace":
                found += [f"{tool.get('name')}/{inner.get('name')}" for inner in tool.get("tools") or []]
            else:
                found.append(str(tool.get("name") or tool.get("type")))
        return found

    def results(self, request: Json) -> list[str]:
        return [_plain(item) for item in request["input"] if item.get("type") == "function_call_output"]

    def answer(self, path: str, request: Json, step: Step, number: int) -> tuple[bytes, str]:
        item = self._item(step, number)
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details}
        whole = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item], "usage": usage}
        if not request.get("stream"):
            return json.dumps(whole).encode(), "application/json"
        events: list[Json] = [
            {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        return _stream(events, named=True), STREAM

    @staticmethod
    def _item(step: Step, number: int) -> Json:
        if isinstance(step, Say):
            content = [{"type": "output_text", "text": step.text, "annotations": []}]
            return {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        namespace, _, name = step.tool.rpartition("/")
        called = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "status": "completed"}
        where = {"namespace": namespace} if namespace else {}
        return {**called, "name": name, "arguments": json.dumps(dict(step.arguments)), **where}


class Gemini(Format):
    """generateContent: Gemini CLI."""

    def errand(self, path: str) -> Json | None:
        if ":countTokens" in path:
            return {"totalTokens": 1}
        return None if "enerateContent" in path else {}

    def tools(self, request: Json) -> list[str]:
        declared = [tool.get("functionDeclarations") or [] for tool in request.get("tools") or []]
        return [str(function.get("name")) for functions in declared for function in functions]

    def results(self, request: Json) -> list[str]:
        parts = [part for content in request["contents"] for part in content["parts"]]
        return [_plain(part["functionResponse"]) for part in parts if "functionResponse" in part]

    def answer(self, path: str, request: Json, step: Step, number: int) -> tuple[bytes, str]:
        if isinstance(step, Say):
            part: Json = {"text": step.text}
        else:
            part = {"functionCall": {"id": f"call_{number}", "name": step.tool, "args": dict(step.arguments)}}
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        whole = {
            "candidates": [{"index": 0, "finishReason": "STOP", "content": content}],
            "usageMetadata": usage,
            "modelVersion": "scripted",
            "responseId": f"resp_{number}",
        }
        if ":streamGenerateContent" in path:
            return _stream([whole], named=False), STREAM
        return json.dumps(whole).encode(), "application/json"


def _plain(value: Any) -> str:
    """All of it as text, whose own quotes are not escaped, however deep it lies in other texts."""
    return json.dumps(value).replace("\\", "")


def _stream(events: Iterable[Json], *, named: bool) -> bytes:
    """Server-sent events, each with its type as a name where the vendor does so."""
    lines = ((f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()
