"""The tool board_human_request: put one question to the human at this host, and its answer to Central (bridge.md §4.2).

The SDK asks: over the link in the older era, with an InputRequiredResult and another call in the newer one.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import AcceptedElicitation, CancelledElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types.version import is_version_at_least

from pursersd.conversation.conversation import Conversation
from pursersd.errors import OutcomeUnknown, PursersError, ToolFailed, UnknownBoard
from pursersd.feed.centrals import Central
from pursersd.rules.elicitation import declared
from pursersd.rules.failures import join_failure_text
from pursersd.rules.human_answer import Answer, recorded
from pursersd.rules.human_form import Form, form
from pursersd.rules.human_question import NEEDS_HUMAN, SENSITIVE, Question, Target
from pursersd.seats.seat import Seat
from pursersd.tools import humans, sealed_state
from pursersd.tools.call import Call

MODERN = "2026-07-28"

NEEDS_URL = "this request requires URL elicitation; use board_human_requests or the dashboard"


@dataclass(frozen=True, slots=True)
class _Already:
    """An earlier daemon, or link, had asked and told Central before the call came again."""

    answer: Answer
    ticket: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Unclear:
    """The call came again, and nobody could look whether it had been carried out."""

    why: OutcomeUnknown


async def _question(
    board_id: str, ticket_id: str, request_id: str, ctx: Context[Conversation, Any]
) -> Elicit[Form] | _Already | _Unclear:
    """What the SDK asks: the same question in every round. An OutcomeUnknown is the tool's to tell."""
    call, target = Call.of(ctx.request_context), Target(board_id, ticket_id, request_id)
    try:
        return await _asked(call, target, ctx)
    except ToolError as error:
        try:
            call.require_answer(error.__cause__)
        except OutcomeUnknown as why:
            return _Unclear(why)
        raise


async def _asked(call: Call, target: Target, ctx: Context[Conversation, Any]) -> Elicit[Form] | _Already:
    is_modern = ctx.protocol_version is not None and is_version_at_least(ctx.protocol_version, MODERN)
    central, seat = await join(call.conversation)
    try:
        ticket, found = await _find(central, target)
        if ticket.get("status") != NEEDS_HUMAN or found.resolution is not None:
            if call.was_sent_before and not is_modern:
                return _earlier(call, central, seat, ticket, found)
            if not (call.was_sent_before and ctx.input_responses):
                raise _not_found(found.target)
        if found.url:
            raise ToolError(NEEDS_URL)
        if found.is_sensitive:
            raise ToolError(SENSITIVE)
        asked = form(found.schema)
        if is_modern and declared(ctx.client_capabilities).form:
            await sealed_state.prepare()
    except PursersError as error:
        raise ToolError(str(error)) from error
    return Elicit(found.shown, asked)


# The key of the question on the wire is made of these two: with the bridge's, either program finishes what the other began.
_question.__module__, _question.__qualname__ = "pursers_wait_server", "_resolve_one_human_request"


async def board_human_request(
    board_id: str,
    ticket_id: str,
    request_id: str,
    response: Annotated[ElicitationResult[Form], Resolve(_question)],
    ctx: Context[Conversation, Any],
) -> dict[str, Any]:
    """Ask the person at this host one pending needs_human question and send the answer to Central."""
    target = Target(board_id, ticket_id, request_id)
    if isinstance(response, CancelledElicitation):
        return {"ok": True, "resolved": [], "deferred": [target.shown]}
    if not isinstance(response, AcceptedElicitation):
        answer = Answer("decline", "park")
    elif isinstance(response.data, _Unclear):
        raise response.data.why
    elif isinstance(response.data, _Already):
        return _resolved(target, response.data.answer, humans.already(response.data.ticket))
    else:
        content, disposition = response.data.answer()
        answer = Answer("accept", disposition, content or None)
    call = Call.of(ctx.request_context)
    central, _ = await join(call.conversation)  # again: the human may have taken a while
    try:
        return _resolved(target, answer, await humans.resolve(call, central, target, answer))
    except OutcomeUnknown:
        raise
    except PursersError as error:
        if humans.NOT_PENDING in str(error):
            raise _not_found(target) from error
        raise ToolError(str(error)) from error


async def join(conversation: Conversation) -> tuple[Central, Seat]:
    """Central and the conversation's own seat. Raises ToolError with the bridge's text."""
    try:
        return await conversation.join()
    except PursersError as error:
        raise ToolError(join_failure_text(error)) from error


async def _find(central: Central, target: Target) -> tuple[dict[str, Any], Question]:
    """The ticket and the question, pending or not. Raises ToolError if there is none, and CentralErrors."""
    try:
        ticket, found = await humans.read_ticket(central, target.board, target.ticket_id)
    except (ToolFailed, UnknownBoard) as error:
        raise _not_found(target, why=str(error)) from error
    if found is None or found.target != target:
        raise _not_found(target)
    return ticket, found


def _earlier(call: Call, central: Central, seat: Seat, ticket: dict[str, Any], found: Question) -> _Already:
    """What became of the question after this call was made and before it came again."""
    since = central.pool.central_time - call.age_s
    answer = recorded(found, ticket.get("status"), seat.principal_id, since=since)
    if answer is None:
        raise _not_found(found.target)
    return _Already(answer, ticket)


def _not_found(target: Target, why: str = "") -> ToolError:
    more = f": {why}" if why and "ticket not found" not in why else ""
    return ToolError(f"no pending human request found for {target}{more}")


def _resolved(target: Target, answer: Answer, result: dict[str, Any]) -> dict[str, Any]:
    return {"ok": True, "resolved": [{**target.shown, **answer.shown}], "result": result}
