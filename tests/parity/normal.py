"""Outcomes without what differs from run to run: names, times, where the journal stood, whose call noticed an expiry."""

import json
import re
from collections.abc import Mapping
from typing import Any

SEQS = frozenset(
    {
        "seq",
        "new_seq",
        "requested_cursor",
        "available_cursor",
        "clamped_cursor",
        "acknowledged_cursor",
        "cursor_map",
    }
)
"""Fields that hold a place in the journal; shown relative to the beginning of the scenario."""

ROUNDING = 0.01  # seconds that waited_s may lack because it is rounded

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_REAPER = re.compile(r"(?<=board-reaper:)PR-[0-9a-f]+")
_QUESTION = re.compile(r"CQ-[0-9a-f]{16}")
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


def normal(data: Any, names: Mapping[str, str], bases: Mapping[str, int], timeout_s: float = 0.0) -> Any:
    """`data` with placeholders: `names` maps what to replace; `bases` is where the journal of each board ended at the
    beginning, the home board's first."""
    ordered = sorted(names.items(), key=lambda pair: -len(pair[0]))
    home = next(iter(bases.values()))

    def text(value: str) -> str:
        value = _REAPER.sub("<whoever called>", value)
        for name, placeholder in ordered:
            value = value.replace(name, placeholder)
        value = _QUESTION.sub("<question>", value)
        return _EVENT_ID.sub("<event id>", _TIME.sub("<time>", value))

    def members(value: dict[str, Any], key: str, base: int) -> dict[str, Any]:
        base = bases.get(str(value.get("board_id")), base)
        many = isinstance(value.get("mode_by_board"), dict)
        shown = {}
        for name, member in value.items():
            if name == "waited_s":
                shown[name] = "(some)" if value.get("mode") == "error" else _waited(member, timeout_s, many)
            elif name in bases:  # of a map by board
                shown[text(name)] = walk(member, key, bases[name])
            elif key == "cursor_map":  # of a board that is none of the scenario's
                shown[text(name)] = member
            else:
                shown[text(name)] = walk(member, name, base)
        return shown

    def walk(value: Any, key: str, base: int) -> Any:
        if isinstance(value, dict):
            return members(value, key, base)
        if isinstance(value, list):
            return [walk(member, key, base) for member in value]
        if isinstance(value, str):
            return text(value)
        if key in SEQS and type(value) is int:
            return f"base{value - base:+d}"
        return value

    return walk(data, "", home)


def _waited(waited_s: float, timeout_s: float, many: bool) -> str:
    if waited_s == 0 and not many:
        return "nothing"
    # A wait on many boards tells how long its entry took.
    return "all of timeout_s" if waited_s >= timeout_s - ROUNDING else "less than timeout_s"
