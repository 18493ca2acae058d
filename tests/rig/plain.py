"""The plainest client of Central: one keep-alive connection, no SDK (central.md §2.2)."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

PROTOCOL = "2026-07-28"

META = {
    # clientInfo is optional; with it Central reads every board document on each call (central.md §9.3).
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class ToolFailed(Exception):
    """Central's tool answered with isError, or the request was refused. `code` is Central's typed code, if any."""

    def __init__(self, tool: str, message: str, code: str | None = None) -> None:
        super().__init__(f"{tool}: {message}")
        self.message = message
        self.code = code


class PlainClient:
    """Speaks to a Central (or a proxy) at a loopback port with one bearer token. The caller closes it."""

    def __init__(self, port: int, token: str, timeout: float = 60.0) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self._token = token

    def tool(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call one tool and return its structured result; ToolFailed for every kind of failure."""
        reply = self._post("tools/call", {"name": tool, "arguments": arguments}, {"Mcp-Name": tool})
        text = reply.read().decode()
        message = _last_message(text)
        if reply.status != 200 or message is None or "error" in message:
            raise ToolFailed(tool, f"HTTP {reply.status}: {text[:500]}")
        result = message["result"]
        structured = result.get("structuredContent")
        if not result.get("isError"):
            return dict(structured)
        if structured:
            raise ToolFailed(tool, structured["detail"], structured["code"])
        raise ToolFailed(tool, result["content"][0]["text"])

    def listen(self, *uris: str) -> Iterator[dict[str, Any]]:
        """Open a stream and return its messages, behind the acknowledgement; ends when the stream does."""
        stream = self._post("subscriptions/listen", {"notifications": {"resourceSubscriptions": list(uris)}}, {})
        messages = _messages(stream)
        acknowledged = next(messages)
        assert acknowledged.get("method") == "notifications/subscriptions/acknowledged", acknowledged
        return messages

    def close(self) -> None:
        """Close the connection, and with it a stream."""
        self._connection.close()

    def _post(self, method: str, params: dict[str, Any], extra: dict[str, str]) -> http.client.HTTPResponse:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL,
            "Mcp-Method": method,
            **extra,
        }
        body = {"jsonrpc": "2.0", "id": "plain", "method": method, "params": {**params, "_meta": META}}
        self._connection.request("POST", "/mcp", json.dumps(body), headers)
        return self._connection.getresponse()


def _messages(stream: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    while line := stream.readline():
        if line.startswith(b"data: "):
            message: dict[str, Any] = json.loads(line[len(b"data: ") :])
            yield message


def _last_message(text: str) -> dict[str, Any] | None:
    """The JSON-RPC message in a reply: plain JSON, or the last event of a stream (a call slower than 15 s)."""
    if not text.startswith("{"):
        frames = [line[len("data: ") :] for line in text.splitlines() if line.startswith("data: ")]
        text = frames[-1] if frames else "null"
    try:
        message: dict[str, Any] | None = json.loads(text)
    except ValueError:
        return None
    return message
