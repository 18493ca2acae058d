"""A host for one conversation: starts `pursers-shim` with the MCP SDK's stdio client and calls the tools it is told to.

Commands arrive on stdin and results leave on stdout as JSON-RPC lines: method = tool, params = arguments. The first line
out is the notification `ready`. The shim's environment is this process's own. It ends with its stdin.
"""

import json
import os
import sys
from typing import Any

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import Implementation

from rig.shim import SHIM


def main(mode: str) -> None:
    """`mode` is that of the SDK's Client: "auto" (2026-07-28 if the server has it) or "legacy" (2025-11-25)."""
    anyio.run(_converse, mode)


async def _converse(mode: str) -> None:
    shim = StdioServerParameters(command=SHIM, env=dict(os.environ))
    async with Client(shim, mode=mode, client_info=Implementation(name="demo-host", version="1")) as client:
        tools = await client.list_tools()
        _say(method="ready", params={"protocol": client.protocol_version, "tools": [tool.name for tool in tools.tools]})
        async with anyio.create_task_group() as calls:
            async for line in anyio.wrap_file(sys.stdin):
                calls.start_soon(_call, client, json.loads(line))
            calls.cancel_scope.cancel()


async def _call(client: Client, command: dict[str, Any]) -> None:
    try:
        answer = await client.call_tool(command["method"], command["params"])
    except MCPError as refused:
        _say(id=command["id"], error={"code": refused.error.code, "message": refused.error.message})
        return
    if answer.is_error:
        text = " ".join(getattr(part, "text", "") for part in answer.content)
        _say(id=command["id"], error={"code": 0, "message": text})
    else:
        _say(id=command["id"], result=answer.structured_content)


def _say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
