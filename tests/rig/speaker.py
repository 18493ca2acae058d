"""The client's side of MCP in raw JSON-RPC lines, spoken synchronously; any number of requests at once."""

import itertools
import json
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rig import canary

T = TypeVar("T")
Json = dict[str, Any]

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
TIMEOUT = 60.0  # seconds for an answer


class RpcError(Exception):
    """The answer was a JSON-RPC error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')} {error.get('data', '')}")
        self.code = error.get("code")
        self.message = error.get("message")
        self.data = error.get("data")


class ToolError(Exception):
    """The tool's result has isError; `text` is what the model reads."""

    def __init__(self, result: Json) -> None:
        self.text = str(result["content"][0]["text"])
        self.structured = result.get("structuredContent")
        super().__init__(self.text)


class Ended(Exception):
    """The command ended before it answered."""


class Pending(Generic[T]):
    """A request on its way."""

    def __init__(self, number: int, convert: Callable[[Json], T]) -> None:
        self.id = number
        self.sent_at = time.perf_counter()
        self.answered_at: float | None = None
        """time.perf_counter() when the answer's line was complete."""
        self._convert = convert
        self._message: Json | None = None
        self._ended = threading.Event()

    @property
    def done(self) -> bool:
        """Whether the answer is here (or will never be)."""
        return self._ended.is_set()

    def message(self, timeout: float = TIMEOUT) -> Json:
        """The whole answer as it came. AssertionError after `timeout`, Ended if the command has gone."""
        assert self._ended.wait(timeout), f"no answer to request {self.id} within {timeout:g} s"
        if self._message is None:
            raise Ended(f"the command ended before it answered request {self.id}")
        return self._message

    def result(self, timeout: float = TIMEOUT) -> T:
        """The result. RpcError or ToolError if it failed."""
        message = self.message(timeout)
        if "error" in message:
            raise RpcError(message["error"])
        return self._convert(message["result"])

    def resolve(self, message: Json | None) -> None:
        """For the reader: the answer came, or (None) never will."""
        self.answered_at = time.perf_counter()
        self._message = message
        self._ended.set()


class Speaker:
    """Requests, answers and notifications over lines. A subclass has the way out, and a thread that feeds what comes in."""

    def __init__(self) -> None:
        self.received: list[Json] = []
        """Every line that came, in order."""
        self.rubbish: list[bytes] = []
        """Lines that were no JSON object; there must be none."""
        self._pending: dict[int, Pending[Any]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._ended = False

    def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        with self._writing:
            self._write(data)

    def say(self, message: object) -> None:
        """Write one JSON line."""
        self.send(json.dumps(message).encode() + b"\n")

    def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        self.say({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def start(self, method: str, params: Json | None = None) -> Pending[Json]:
        """Send a request."""
        return self._start(method, params, lambda result: result)

    def request(self, method: str, params: Json | None = None, timeout: float = TIMEOUT) -> Json:
        """Send a request and return its result."""
        return self.start(method, params).result(timeout)

    def initialize(
        self,
        version: str = LEGACY,
        *,
        client: str = "rig",
        capabilities: Json | None = None,
        timeout: float = TIMEOUT,
    ) -> Json:
        """The handshake of the legacy era: returns the result and sends `notifications/initialized`."""
        params = {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": client, "version": "1"},
        }
        result = self.request("initialize", params, timeout)
        self.notify("notifications/initialized")
        return result

    def start_tool(self, name: str, arguments: Json | None = None, *, meta: Json | None = None) -> Pending[Json]:
        """Call a tool; `.result()` is its structured content."""
        params = {"name": name, "arguments": arguments or {}, **({} if meta is None else {"_meta": meta})}
        return self._start("tools/call", params, _structured)

    def call_tool(
        self, name: str, arguments: Json | None = None, timeout: float = TIMEOUT, *, meta: Json | None = None
    ) -> Json:
        """Call a tool and return its structured content."""
        return self.start_tool(name, arguments, meta=meta).result(timeout)

    def cancel(self, number: object, reason: str = "user") -> None:
        """Tell that nobody waits for the request any more."""
        self.notify("notifications/cancelled", {"requestId": number, "reason": reason})

    @property
    def notifications(self) -> list[Json]:
        """The notifications received so far."""
        return [x for x in list(self.received) if "method" in x and "id" not in x]

    def answers(self, number: object) -> list[Json]:
        """Every answer received to this request id; there must never be two."""
        answers = [x for x in list(self.received) if "method" not in x]
        return [x for x in answers if x.get("id") == number and type(x["id"]) is type(number)]

    def _start(self, method: str, params: Json | None, convert: Callable[[Json], T]) -> Pending[T]:
        pending = Pending(next(self._numbers), convert)
        with self._lock:
            self._pending[pending.id] = pending
            ended = self._ended
        if ended:
            pending.resolve(None)
            return pending
        message: Json = {"jsonrpc": "2.0", "id": pending.id, "method": method}
        self.say(message if params is None else {**message, "params": params})
        return pending

    def _write(self, data: bytes) -> None:
        """The way out; called by one thread at a time."""
        raise NotImplementedError

    def _end(self) -> None:
        """To be called by the reader after the last line: nothing is answered any more."""
        with self._lock:
            self._ended = True
            rest, self._pending = self._pending, {}
        for pending in rest.values():
            pending.resolve(None)

    def _take(self, line: bytes) -> None:
        canary.look(f"a line to {type(self).__name__}", line)
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self.rubbish.append(line)
            return
        self.received.append(message)
        number = message.get("id")
        if "method" in message or not isinstance(number, int):
            return
        with self._lock:
            pending = self._pending.pop(number, None)
        if pending is not None:
            pending.resolve(message)


def modern_meta(client: str = "rig", capabilities: Json | None = None) -> Json:
    """The envelope that each request of the 2026-07-28 era carries in `_meta`."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
    }


def _structured(result: Json) -> Json:
    if result.get("isError"):
        raise ToolError(result)
    value: Json = result.get("structuredContent") or json.loads(result["content"][0]["text"])
    return value
