"""The orchestrator's tools: what has changed, up to where it has been seen, and what comes first (bridge.md §5)."""

from collections.abc import Callable
from functools import partial
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from pursersd.conversation.conversation import Conversation
from pursersd.errors import ArgumentError, PursersError, StateError
from pursersd.rules import digest_arguments as arguments
from pursersd.rules import digest_record as records
from pursersd.rules.digest import pending
from pursersd.rules.digest_arguments import listed
from pursersd.rules.digest_record import Changed, Record
from pursersd.rules.failures import join_failure_text
from pursersd.tools.call import Call
from pursersd.tools.digest_reading import digest


async def board_digest(
    ctx: Context[Conversation, Any],
    since: dict[str, int] | int | None = None,
    boards: list[str] | str = "registry",
    group_by: str = "ticket",
    include_notes_keys: list[str] | None = None,
    max_transitions_per_ticket: int | None = None,
) -> dict[str, Any]:
    """What has changed on your boards, ticket by ticket, since what you acknowledged, or since a place that you name.

    data_status says whether it is up to date. When you are done with it, acknowledge it with board_digest_ack. Pinned
    tickets come first (board_watch). max_transitions_per_ticket keeps the oldest and the newest transitions of each.
    """
    conversation = ctx.request_context.lifespan_context
    try:
        query = arguments.check(
            boards=boards,
            since=since,
            include_notes_keys=include_notes_keys,
            max_transitions_per_ticket=max_transitions_per_ticket,
        )
        found = await digest(conversation, query)
    except (ArgumentError, StateError) as error:
        raise ToolError(str(error)) from error
    if (account := conversation.account()) is not None:
        account.digested(found)
    return found


async def board_digest_ack(ctx: Context[Conversation, Any], cursor_map: dict[str, int] | None = None) -> dict[str, Any]:
    """Acknowledge what you have seen: the next board_digest begins there.

    Pass the cursor_map of the digest; without it everything that your digests have shown is acknowledged.
    """
    conversation = ctx.request_context.lifespan_context
    call = Call.of(ctx.request_context)
    following = conversation.following
    if not following.shown:
        await digest(conversation, arguments.Query(boards=None, since=None), is_shown=cursor_map is None)
    view = await following.current()
    waiting: frozenset[str] = frozenset()
    if view is not None:
        seen = view.central.digest.seen_tickets(view.places)
        waiting = frozenset(str(r["request_id"]) for _, _, ticket in seen for r in pending(ticket))
    acknowledge = partial(
        records.acknowledge,
        cursors=following.shown if cursor_map is None else cursor_map,
        pending=waiting,
        key=call.key,
        was_sent_before=call.was_sent_before,
    )
    return await _changed(conversation, acknowledge)


async def board_watch(
    ctx: Context[Conversation, Any],
    ticket_ids: list[str] | str | None = None,
    tags: list[str] | str | None = None,
) -> dict[str, Any]:
    """Pin tickets, by id or by tag: they come first in your digests. Returns all that is pinned."""
    conversation = ctx.request_context.lifespan_context
    return await _changed(conversation, lambda record: records.watch(record, listed(ticket_ids), listed(tags)))


async def board_unwatch(
    ctx: Context[Conversation, Any],
    ticket_ids: list[str] | str | None = None,
    tags: list[str] | str | None = None,
    all: bool = False,
) -> dict[str, Any]:
    """Pin these tickets or tags no longer; with all=true, or without arguments, nothing at all."""
    conversation = ctx.request_context.lifespan_context
    everything = all or (ticket_ids is None and tags is None)

    def unwatch(record: Record) -> Changed:
        return records.unwatch(record, listed(ticket_ids), listed(tags), everything=everything)

    return await _changed(conversation, unwatch)


async def _changed(conversation: Conversation, change: Callable[[Record], Changed]) -> dict[str, Any]:
    """The result of a change of the identity's record."""
    await conversation.following.current()
    try:
        return await conversation.following.change(change)
    except StateError as error:
        raise ToolError(str(error)) from error
    except PursersError as error:
        raise ToolError(join_failure_text(error)) from error
