"""The tool project_registry_get: the home board's registry of projects (bridge.md §1.8)."""

from collections.abc import Awaitable
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from pursersd.conversation.conversation import Conversation
from pursersd.errors import PursersError, ToolFailed
from pursersd.rules import registry
from pursersd.rules.failures import join_failure_text
from pursersd.tools.call import Call

NO_KEY = "state key not found"


async def project_registry_get(ctx: Context[Conversation, Any]) -> dict[str, Any]:
    """Read and check the home board's project registry: which board, folder and delivery each project has."""
    conversation = ctx.request_context.lifespan_context
    try:
        central, seat = await conversation.join()
    except PursersError as error:
        raise ToolError(join_failure_text(error)) from error
    call = Call.of(ctx.request_context)

    async def read() -> dict[str, object]:
        arguments = {"board_id": seat.board, "key": registry.STATE_KEY}
        return registry.validated(await call.carry_out(central.pool, "board_state_get", arguments))

    return await explained(seat.board, read())


async def explained(board: str, reading: Awaitable[dict[str, object]]) -> dict[str, object]:
    """The registry that is being read. Raises ToolError with what is wrong and what to do."""
    try:
        return await reading
    except ToolFailed as error:
        if not str(error).startswith(NO_KEY):
            raise ToolError(str(error)) from error
        raise ToolError(
            f"Board {board} has no project registry ({error}). Its admin creates one with: pursers-registry add"
        ) from error
    except PursersError as error:
        raise ToolError(str(error)) from error
