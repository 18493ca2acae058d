"""A stdio MCP command as a host runs it: raw JSON-RPC lines, spoken synchronously; any number of requests at once.

Use it so:

    with ShimProcess([SHIM], home.environment(...)) as shim:
        shim.initialize()
        wait = shim.start_tool("a2a_wait", {"timeout_s": 60})
        ...
        assert wait.result(5)["events"]
"""

import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import psutil

from rig import processes

T = TypeVar("T")
Json = dict[str, Any]

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
TIMEOUT = 30.0  # seconds for an answer

SHIM = str(processes.BIN / "pursers-shim")
BRIDGE = str(processes.BIN / "pursers-wait-bridge")

HOST = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
"""A host that does nothing but stand between us and the command: kill it and the pipes stay open, in our hands."""


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


class ShimProcess:
    """Started at once with exactly `environment`. With `hosted`, a separate host process is its parent: see HOST."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        hosted: bool = False,
        cwd: str | None = None,
    ) -> None:
        self.received: list[Json] = []
        """Every line that came, in order."""
        self.rubbish: list[bytes] = []
        """Lines that were no JSON object; stdout must carry none."""
        self._hosted = hosted
        self._pending: dict[int, Pending[Any]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._ended = False
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        self.started_at = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, *command] if hosted else list(command),
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name=f"shim {self.process.pid}", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the command itself, also when it is hosted."""
        if not self._hosted:
            return self.process.pid
        children = psutil.Process(self.process.pid).children()
        assert children, "the host has not started the command yet"
        return int(children[0].pid)

    # Speaking --------------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        assert self.process.stdin is not None, "stdin is a pipe"
        with self._lock:
            self.process.stdin.write(data)
            self.process.stdin.flush()

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

    # The end ---------------------------------------------------------------------------------------------------------

    def close_stdin(self) -> None:
        """End the command's standard input, as a host that leaves."""
        assert self.process.stdin is not None, "stdin is a pipe"
        with self._lock:
            self.process.stdin.close()

    def kill(self, number: int) -> None:
        """Send a signal to the process we started (the host, if hosted)."""
        self.process.send_signal(number)

    def wait(self, timeout: float = 10.0) -> int:
        """Wait until it ends; returns the exit status."""
        return self.process.wait(timeout)

    @property
    def stderr(self) -> str:
        """What it wrote to standard error so far."""
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    def close(self) -> None:
        """End it in any case, and wait for that."""
        if not self._stderr.closed:
            processes.stop(self.process, (), patience=5.0)
            self._reader.join(5.0)
            for pipe in (self.process.stdin, self.process.stdout, self._stderr):
                _close(pipe)

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

    def _read(self) -> None:
        assert self.process.stdout is not None, "stdout is a pipe"
        for line in self.process.stdout:
            self._take(line)
        with self._lock:
            self._ended = True
            rest, self._pending = self._pending, {}
        for pending in rest.values():
            pending.resolve(None)

    def _take(self, line: bytes) -> None:
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


def _close(pipe: Any) -> None:
    if pipe is not None:
        try:
            pipe.close()
        except BrokenPipeError:
            return  # unsent bytes to a command that has gone
