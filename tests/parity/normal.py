"""Outcomes without what differs from run to run: names, times, and where the journal stood."""

import json
import re
from collections.abc import Mapping
from typing import Any

SEQS = frozenset({"seq", "new_seq", "requested_cursor", "clamped_cursor", "acknowledged_cursor"})
"""Fields that hold a place in the journal; shown relative to the beginning of the scenario."""

ROUNDING = 0.01  # seconds that waited_s may lack because it is rounded

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_EVENT_ID = re.compile(r"EV-[0-9a-f]{12}-\d{20}")


def outcome(message: Mapping[str, Any]) -> dict[str, Any]:
    """What a host gets of the answer to a tool call: the tool's data, or the text of an error.

    The data is in the answer twice, once as text: instead of the text it says whether that is so.
    """
    if "error" in message:
        return {"rpc_error": dict(message["error"])}
    result = message["result"]
    (content,) = result["content"]
    data, text = result.get("structuredContent"), content["text"]
    if data is not None and text == json.dumps(data, indent=2, ensure_ascii=False):
        text = "(the data)"
    return {"is_error": bool(result.get("isError")), "data": data, "text": text}


def normal(data: Any, names: Mapping[str, str], base: int, timeout_s: float = 0.0) -> Any:
    """`data` with placeholders: `names` maps what to replace; `base` is the head of the journal at the beginning."""
    ordered = sorted(names.items(), key=lambda pair: -len(pair[0]))

    def text(value: str) -> str:
        for name, placeholder in ordered:
            value = value.replace(name, placeholder)
        return _EVENT_ID.sub("<event id>", _TIME.sub("<time>", value))

    def walk(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            failed = value.get("mode") == "error"
            return {
                text(name): "(some)" if failed and name == "waited_s" else walk(member, name)
                for name, member in value.items()
            }
        if isinstance(value, list):
            return [walk(member, key) for member in value]
        if isinstance(value, str):
            return text(value)
        if key == "waited_s":
            return _waited(value, timeout_s)
        if key in SEQS and type(value) is int:
            return f"base{value - base:+d}"
        return value

    return walk(data, "")


def _waited(waited_s: float, timeout_s: float) -> str:
    if waited_s == 0:
        return "nothing"
    return "all of timeout_s" if waited_s >= timeout_s - ROUNDING else "less than timeout_s"
