"""Answers that the shim gives itself: the opening of a conversation while the daemon is not ready, and why a call failed.

The opening comes from a snapshot of the daemon's own answers (`make snapshot`), read only when it is needed.
"""

import json
import os

from pursers_shim.dial import Trouble
from pursers_shim.message import MODERN_KEY, Request, error, result
from pursers_shim.resume import INITIALIZE, TOOL_CALL

__all__ = ["SNAPSHOT", "UNAVAILABLE", "Early", "unavailable"]

SNAPSHOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "snapshot.json")

UNAVAILABLE = -32000
"""JSON-RPC error code of a request, other than a tool call, that no daemon answers."""


class Early:
    """The daemon's answers to the opening, from the snapshot at `path`. Without a readable one there are none."""

    def __init__(self, path: str = SNAPSHOT) -> None:
        self._path = path
        self._snapshot: dict[str, object] | None = None

    def answer(self, request: Request, is_open: bool) -> bytes | None:
        """The line that answers `request`, or None if only the daemon can. `is_open`: the handshake was answered."""
        params = _params(request)
        if request.method == "ping":
            return None if request.modern else result(request.id, {})
        found = self._found(request, params, is_open)
        return None if found is None else result(request.id, found)

    def _found(self, request: Request, params: dict[str, object], is_open: bool) -> object:
        if request.method == INITIALIZE:
            return self._initialize(params.get("protocolVersion"))
        if request.modern and not self._speaks(params):
            return None  # the daemon knows the error that names the versions
        if request.method == "server/discover":
            return self._load().get("server/discover") if request.modern else None
        if request.method == "tools/list" and "cursor" not in params and (request.modern or is_open):
            listed = self._load().get("tools/list")
            return listed.get("modern" if request.modern else "legacy") if isinstance(listed, dict) else None
        return None

    def _initialize(self, requested: object) -> object:
        """The newest handshake version unless the snapshot knows the requested one (MCP 2025-11-25, lifecycle)."""
        template, versions = self._load().get("initialize"), self._load().get("versions")
        if not (isinstance(template, dict) and isinstance(versions, list) and versions and isinstance(requested, str)):
            return None
        return template | {"protocolVersion": requested if requested in versions else versions[-1]}

    def _speaks(self, params: dict[str, object]) -> bool:
        discovered, meta = self._load().get("server/discover"), params.get("_meta")
        supported = discovered.get("supportedVersions") if isinstance(discovered, dict) else None
        asked = meta.get(MODERN_KEY) if isinstance(meta, dict) else None
        return isinstance(supported, list) and asked in supported

    def _load(self) -> dict[str, object]:
        if self._snapshot is None:
            try:
                with open(self._path, "rb") as file:
                    loaded = json.load(file)
            except (OSError, ValueError):
                loaded = None
            self._snapshot = loaded if isinstance(loaded, dict) else {}
        return self._snapshot


def unavailable(request: Request, trouble: Trouble, was_sent: bool) -> bytes:
    """The answer to a request that no daemon will answer. `was_sent`: one may have carried it out."""
    text = f"{trouble.text} {trouble.action}"
    if was_sent:
        text += " The request had reached the daemon: look at its effect before you repeat it."
    if request.method != TOOL_CALL:
        return error(request.id, UNAVAILABLE, text)
    failure = {
        "code": "daemon_unavailable",
        "message": text,
        "retryable": True,
        "action": trouble.action,
        "outcome": "unknown" if was_sent else "not_sent",
    }
    answer: dict[str, object] = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"error": failure},
        "isError": True,
    }
    return result(request.id, answer | {"resultType": "complete"} if request.modern else answer)


def _params(request: Request) -> dict[str, object]:
    params = json.loads(request.line).get("params")
    return params if isinstance(params, dict) else {}
