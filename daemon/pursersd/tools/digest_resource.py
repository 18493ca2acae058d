"""The digest of a board as a resource, and how a host subscribes to it (bridge.md §1.2)."""

import json
from collections.abc import Callable
from typing import cast

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError
from mcp.server.subscriptions import ListenHandler, ResourceUpdated, ServerEvent, SubscriptionBus
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from pursersd.central.account import charged_to
from pursersd.central.turns import on_behalf_of
from pursersd.conversation.conversation import Conversation
from pursersd.errors import StateError
from pursersd.rules.digest_arguments import Query
from pursersd.tools.digest_reading import digest

TEMPLATE = "board://{board_id}/digest"
NAME = "board_digest_resource"


async def board_digest_resource(board_id: str, ctx: Context) -> str:
    """What board_digest tells of one board, as JSON text."""
    # The SDK would make a new, empty one of a context whose type says what its lifespan is.
    conversation = cast(Conversation, ctx.request_context.lifespan_context)
    try:
        with charged_to(conversation.account()), on_behalf_of(conversation.id):
            found = await digest(conversation, Query(boards=(board_id,), since=None))
    except StateError as error:
        raise ResourceError(str(error)) from error
    return json.dumps(found, indent=2, ensure_ascii=False)


def add_digest_resource(mcp: MCPServer[Conversation], server: Server[Conversation]) -> None:
    """Serve the resource, and subscriptions of one conversation each: what happens in another one is none of its news."""
    description = board_digest_resource.__doc__
    mcp.resource(TEMPLATE, name=NAME, description=description, mime_type="text/plain")(board_digest_resource)
    server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, _listen)


async def _listen(
    ctx: ServerRequestContext[Conversation], params: SubscriptionsListenRequestParams
) -> SubscriptionsListenResult:
    """One subscription of a host, until it is cancelled or its link ends; then the shim asks the next daemon for it."""
    conversation = ctx.lifespan_context
    uris = [uri for uri in params.notifications.resource_subscriptions or () if uri.endswith("/digest")]
    bus: SubscriptionBus = conversation.following.bus
    if uris:
        conversation.following.begin()
        was_open_before = ctx.request_id is not None and conversation.requests.was_sent_before(ctx.request_id)
        bus = _Resumed(bus, uris) if was_open_before else bus
    return await ListenHandler(bus)(ctx, params)


class _Resumed:
    """Tells a subscription that comes again, first of all, that there may be news: those in between went nowhere."""

    def __init__(self, bus: SubscriptionBus, uris: list[str]) -> None:
        self._bus = bus
        self._uris = uris

    async def publish(self, event: ServerEvent) -> None:
        """As any other bus."""
        await self._bus.publish(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """As any other bus."""
        for uri in self._uris:
            listener(ResourceUpdated(uri))
        return self._bus.subscribe(listener)
