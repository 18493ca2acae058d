"""A scripted model: a loopback server that speaks the API of a model's vendor, so that a real host runs without one.

Its answers are the steps of a script, one for each turn of the conversation; then it says "done". A turn is known by the tools
that it offers: titles, summaries and other errands have none and take no step. What the host showed the model is kept in
`turns`. The wire formats are in `formats.py`.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from hosts.formats import Format, Say, Step

Hook = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model saw in one turn."""

    tools: list[str]
    results: list[str]
    """What its tools had answered by then."""


class ScriptedModel:
    """Serves one format from entry to exit. `before` runs before the answer of the turn with that number."""

    def __init__(self, form: Format, script: list[Step], before: dict[int, Hook] | None = None) -> None:
        self.turns: list[Turn] = []
        self._form = form
        self._script = script
        self._before = before or {}
        self._lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            """One request of the host."""

            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._send(200, b"")

            def do_GET(self) -> None:
                self._send(200, json.dumps(dict(form.listing)).encode())

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body, kind = model.answer(self.path, json.loads(raw or b"{}"))
                self._send(200, body, kind)

            def log_message(self, format: str, *words: Any) -> None:
                return

            def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True  # the host has changed its mind, or has ended

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, path: str, request: dict[str, Any]) -> tuple[bytes, str]:
        """The body for a POST of the host, and its content type."""
        errand = self._form.errand(path)
        if errand is not None:
            return json.dumps(errand).encode(), "application/json"
        tools = self._form.tools(request)
        number, step = self._next(tools, request)
        if number in self._before:
            self._before[number]()
        return self._form.answer(path, request, step, number)

    def _next(self, tools: list[str], request: dict[str, Any]) -> tuple[int, Step]:
        with self._lock:
            if not tools:
                return -1, Say("ok")
            number = len(self.turns)
            self.turns.append(Turn(tools, self._form.results(request)))
        return number, self._script[number] if number < len(self._script) else Say("done")
