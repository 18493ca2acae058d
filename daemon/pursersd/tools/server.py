"""The MCP server that every link is served with: one for all conversations; the conversation comes with each request.

The SDK speaks both eras over a link's streams (`serve_dual_era_loop`); the conversation travels as its lifespan state.
"""

import functools
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import CLIENT_INFO_META_KEY, INVALID_PARAMS, ToolAnnotations

from pursersd.central.turns import on_behalf_of
from pursersd.conversation.conversation import Conversation
from pursersd.errors import OutcomeUnknown
from pursersd.rules import resend
from pursersd.tools import digest, sealed_state
from pursersd.tools.a2a_wait import a2a_wait
from pursersd.tools.call import Call
from pursersd.tools.digest_resource import add_digest_resource
from pursersd.tools.human_request import board_human_request
from pursersd.tools.human_requests import board_human_requests
from pursersd.tools.project_registry import project_registry_get
from pursersd.tools.questions import QUESTION_TOOLS

log = logging.getLogger(__name__)

SERVER_NAME = "Pursers Wait Bridge"
"""The bridge's name: a drop-in keeps it, and sealed request state carries it as its audience (bridge.md §4.4)."""

SERVER_VERSION = "0.1.7"
"""The version of the bridge whose surface we serve; our own is in `pursersd --version`."""

Tool = Callable[..., Coroutine[Any, Any, Any]]

TOOLS: Sequence[Tool] = (
    project_registry_get,
    digest.board_digest,
    digest.board_digest_ack,
    digest.board_watch,
    digest.board_unwatch,
    board_human_request,
    board_human_requests,
    *QUESTION_TOOLS,
    a2a_wait,
)
"""In the bridge's order (bridge.md §1.4)."""


def build() -> Server[Conversation]:
    """The server with its tools and its resource, and without prompts."""
    mcp: MCPServer[Conversation] = MCPServer(
        SERVER_NAME,
        version=SERVER_VERSION,
        log_level="WARNING",
        middleware=[_note],
        request_state_security=sealed_state.security(),
    )
    mcp.middleware.insert(0, sealed_state.with_keys)  # before the SDK opens and after it seals
    for tool in TOOLS:
        mcp.add_tool(_guarded(tool), annotations=_annotations(tool.__name__))
    for tool in QUESTION_TOOLS:  # there is no public way to say this of a schema either
        registered = mcp._tool_manager.get_tool(tool.__name__)
        if registered is not None:
            registered.parameters["additionalProperties"] = False
    # The SDK has no public way from its tool server to one that serves streams of our own; it is pinned below 3.
    server = cast("Server[Conversation]", mcp._lowlevel_server)
    add_digest_resource(mcp, server)
    return server


def _annotations(name: str) -> ToolAnnotations:
    """What hosts that queue or refuse calls want to know; both from the table, so that no tool can lack them."""
    return ToolAnnotations(read_only_hint=resend.read_only(name), destructive_hint=resend.tool(name).destructive)


def _guarded(tool: Tool) -> Tool:
    """The tool, begun only if a resent call may be, and with an answer where the SDK has none.

    That is for a call whose outcome is unknown, also because it came again and failed before anybody could look, and for an
    error that nobody expected (bridge.md D8).
    """

    @functools.wraps(tool)
    async def call(*args: Any, **kwargs: Any) -> Any:
        ctx = next((value for value in kwargs.values() if isinstance(value, Context)), None)
        try:
            return await (
                tool(*args, **kwargs) if ctx is None else _open(Call.of(ctx.request_context), tool, args, kwargs)
            )
        except (ToolError, MCPError):
            raise
        except OutcomeUnknown as error:
            assert ctx is not None, "only what came through a Call raises this"
            return Call.of(ctx.request_context).unknown(error)
        except Exception as error:
            log.exception("tool %s failed", tool.__name__)
            raise ToolError(
                f"unexpected {type(error).__name__}. The daemon's log says more: pursersctl logs"
            ) from error

    return call


async def _open(call: Call, tool: Tool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the tool returns. Raises OutcomeUnknown, too."""
    call.begin()
    try:
        return await tool(*args, **kwargs)
    except ToolError as error:
        call.require_answer(error.__cause__)
        raise


async def _note(ctx: ServerRequestContext[Conversation, Any], call_next: CallNext) -> HandlerResult:
    """Note who asks and what runs, for `ps`, and make refusals readable for which the SDK has no words."""
    conversation = ctx.lifespan_context
    params = ctx.params or {}
    _note_client(conversation, params)
    conversation.following.heard(ctx.method, ctx.session)
    try:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        with conversation.calling(str(params.get("name", ""))), on_behalf_of(conversation.id):
            return await call_next(ctx)
    except MCPError as error:
        if error.error.code == INVALID_PARAMS and error.error.data == "" and ctx.request_id is not None:
            raise MCPError(
                code=INVALID_PARAMS,
                message=f"Invalid request parameters: {ctx.method} came before the handshake. Send initialize first, "
                "or put the 2026-07-28 envelope into params._meta.",
                data="",
            ) from error
        raise
    except ValueError as error:
        if ctx.method != "prompts/get":
            raise
        # The SDK takes a wrong name for a defect of ours and logs it as one.
        raise MCPError(code=INVALID_PARAMS, message=f"{error}. This server has no prompts.", data=None) from error


def _note_client(conversation: Conversation, params: Mapping[str, Any]) -> None:
    """Remember the client's own name: of the handshake, or of a request's envelope."""
    meta = params.get("_meta")
    info = params.get("clientInfo") or (meta.get(CLIENT_INFO_META_KEY) if isinstance(meta, Mapping) else None)
    if isinstance(info, Mapping) and isinstance(info.get("name"), str):
        conversation.client_name = info["name"][:80]
