"""The MCP server for all links: its list, and what a model reads when a tool breaks."""

from typing import Any

import anyio
import mcp_types
import pytest
from mcp.client import Client
from mcp.server.mcpserver import MCPServer

from pursersd.tools import server


def test_an_unexpected_error_points_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> dict[str, Any]:
        """Fails."""
        raise KeyError("a detail that may be a secret")

    async def body() -> mcp_types.CallToolResult:
        app: MCPServer[Any] = MCPServer("test")
        app.add_tool(server._guarded(broken))
        async with Client(app) as client:
            return await client.call_tool("broken", {})

    result = anyio.run(body)
    assert result.is_error
    (content,) = result.content
    assert isinstance(content, mcp_types.TextContent)
    assert content.text == (
        "Error executing tool broken: unexpected KeyError. The daemon's log says more: pursersctl logs"
    )
    assert "tool broken failed" in caplog.text
