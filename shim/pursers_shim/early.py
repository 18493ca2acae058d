"""Answers that the shim gives itself: the opening of a conversation while the daemon is not ready, and why a call failed.

They come from a snapshot of the daemon's own answers (`make snapshot`), read only when it is needed: the opening as it is,
which tools change nothing, and how to look at what the others have done.
"""

import json
import os

from pursers_shim.dial import Trouble
from pursers_shim.message import MODERN_KEY, Request, error, result
from pursers_shim.resume import INITIALIZE, TOOL_CALL
from pursers_shim.wire import DAEMON_UNAVAILABLE, OUTCOME_UNKNOWN, failed_call

__all__ = ["SNAPSHOT", "UNAVAILABLE", "Early"]

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

    def unavailable(self, request: Request, trouble: Trouble, was_sent: bool) -> bytes:
        """The answer to a request that no daemon will answer. `was_sent`: one may have carried it out."""
        text = f"{trouble.text} {trouble.action}"
        if request.method != TOOL_CALL:
            return error(request.id, UNAVAILABLE, text)
        outcome = "unknown" if was_sent else "not_sent"
        about = self._about(request) if was_sent else None
        code = DAEMON_UNAVAILABLE
        if about is not None:
            code = OUTCOME_UNKNOWN
            on = f" on {json.dumps(about['target'], ensure_ascii=False)}" if about["target"] else ""
            text = (
                f"The outcome of {about['tool']}{on} is unknown (LW-CALL): it had reached the daemon, which was lost before "
                f"it answered. Do not just repeat it. {self._check(about['tool'])} {text}"
            )
        found = failed_call(code, text, action=trouble.action, outcome=outcome, modern=request.modern, about=about)
        return result(request.id, found)

    def _about(self, request: Request) -> dict[str, object] | None:
        """What a call may have changed; None if its tool changes nothing."""
        params = _params(request)
        name, arguments = params.get("name"), params.get("arguments")
        if self._changes_nothing(name):
            return None
        given = arguments if isinstance(arguments, dict) else {}
        named = self._changing(name).get("target")
        if not isinstance(named, list):
            named = [key for key in given if key.endswith("_id")]
        found = {part: _argument(str(part), given) for part in named}
        return {"tool": name, "target": {part: value for part, value in found.items() if value is not None}}

    def _check(self, name: object) -> str:
        """How to find out what became of a call of this tool."""
        return str(self._changing(name).get("check", "Look at its effect first."))

    def _changing(self, name: object) -> dict[str, object]:
        """What is known of a tool that changes something: the arguments that name what a call is about, and the check."""
        tools = self._load().get("changing")
        found = tools.get(name) if isinstance(tools, dict) else None
        return found if isinstance(found, dict) else {}

    def _changes_nothing(self, name: object) -> bool:
        listed = self._load().get("tools/list")
        legacy = listed.get("legacy") if isinstance(listed, dict) else None
        for tool in legacy.get("tools", ()) if isinstance(legacy, dict) else ():
            if isinstance(tool, dict) and tool.get("name") == name:
                return bool(tool.get("annotations", {}).get("readOnlyHint"))
        return False

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


def _params(request: Request) -> dict[str, object]:
    params = json.loads(request.line).get("params")
    return params if isinstance(params, dict) else {}


def _argument(part: str, arguments: dict[str, object]) -> object:
    """One argument; `a.b` is the member b of a."""
    name, _, member = part.partition(".")
    value = arguments.get(name)
    if not member:
        return value
    return value.get(member) if isinstance(value, dict) else None
