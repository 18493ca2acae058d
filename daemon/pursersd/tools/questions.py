"""The five tools of coordinator questions: ask, list, answer, and wait for either (bridge.md §4.1).

They act as the conversation's own seat on its home board and as nobody else: an argument that none of them declares is
refused, and what binds an answer to the credential is made here and seen by Central alone.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from pursersd.conversation.conversation import Conversation
from pursersd.errors import ArgumentError, CentralError, NotAllowed, PursersError
from pursersd.feed.centrals import Central
from pursersd.rules import questions
from pursersd.rules.arguments import DEFAULT_TIMEOUT_S
from pursersd.rules.failures import join_failure_text
from pursersd.rules.host_binding import host_binding
from pursersd.rules.id_map import expand_ids
from pursersd.rules.questions import ASKERS, COORDINATORS, Asked
from pursersd.seats.seat import Seat
from pursersd.tools.call import Call, Look
from pursersd.tools.caller import caller_of
from pursersd.waits.questions import Answer, Arrivals, Progress, Subject, wait

Ctx = Context[Conversation, Any]
Json = dict[str, Any]


async def ticket_question_ask(
    ctx: Ctx,
    ticket_id: str,
    message: str,
    kind: Literal["decision", "deliverable", "approval", "information"],
    message_id: str | None = None,
    in_reply_to: str | None = None,
) -> Json:
    """Ask the coordinator of the ticket's project something; you keep the ticket and go on working.

    Needs the work or review lease. Then call ticket_question_wait with the ticket_id, the question_id of the result and the
    event's seq as since_seq. A message_id of your own makes it safe to ask again after an error.
    """
    call, central, seat = await _seated(ctx, ASKERS, "question ask")
    given = {"message_id": call.key if message_id is None else message_id, "in_reply_to": in_reply_to}
    chosen = {name: value for name, value in given.items() if value is not None}

    async def look() -> Json | None:
        ticket = await _ticket(central, seat, ticket_id)
        question = questions.asked_with(ticket, chosen["message_id"], seat.agent_id)
        return None if question is None else {**questions.repeated(question), "question_id": question["question_id"]}

    asked = {"ticket_id": ticket_id, "message": message, "kind": kind, **chosen}
    return await _carry_out(call, central, seat, asked, look)


async def board_question_inbox(
    ctx: Ctx,
    state: Literal["open", "accepted", "answered"] | None = None,
    ticket_id: str | None = None,
    limit: int = 20,
) -> Json:
    """For coordinators: the questions of your projects, oldest first; answer them with ticket_question_answer."""
    call, central, seat = await _seated(ctx, COORDINATORS, "question inbox")
    given = {"limit": limit, "state": state, "ticket_id": ticket_id}
    return await _carry_out(call, central, seat, {name: value for name, value in given.items() if value is not None})


async def ticket_question_answer(
    ctx: Ctx,
    ticket_id: str,
    question_id: str,
    action: Literal["accept", "answer"] = "answer",
    message: str | None = None,
) -> Json:
    """For coordinators: answer a question with message, or accept it to say that an answer will come."""
    call, central, seat = await _seated(ctx, COORDINATORS, "question answer")
    chosen: Json = {"ticket_id": ticket_id, "question_id": question_id, "action": action}
    if message is not None:
        chosen["message"] = message
    # Of the credential that this very call is sent with: a replaced one would be refused.
    chosen["host_binding"] = host_binding(central.pool.key.token, seat.agent_id)

    async def look() -> Json | None:
        question = questions.question_of(await _ticket(central, seat, ticket_id), question_id)
        is_done = question is not None and questions.has_been_done(question, action, seat.agent_id)
        return questions.repeated(question) if question is not None and is_done else None

    result = await _carry_out(call, central, seat, chosen, look)
    question = result.get("question")
    return {**result, "question": questions.public(question) if isinstance(question, dict) else None}


async def board_question_wait(
    ctx: Ctx, since_seq: int, timeout_s: int = DEFAULT_TIMEOUT_S, ticket_id: str | None = None
) -> Json:
    """For coordinators: block until a question for you arrives after since_seq, or timeout_s passes; then call it again.

    Pass the new_seq of the last result as since_seq, at first 0. Returns event, question, new_seq and timed_out.
    """
    return await _wait(ctx, lambda central: Arrivals(central, ticket_id), since_seq, timeout_s)


async def ticket_question_wait(
    ctx: Ctx, ticket_id: str, question_id: str, since_seq: int, timeout_s: int = DEFAULT_TIMEOUT_S
) -> Json:
    """For whoever asked: block until the coordinator answers this question, or timeout_s passes; then call it again.

    Pass the seq of the question's event as since_seq (0 will do, too), later the new_seq of the last result. The answer is
    in question.answer. If the result has `ended`, no answer will come.
    """
    return await _wait(ctx, lambda central: Answer(Asked(ticket_id, question_id)), since_seq, timeout_s)


QUESTION_TOOLS = (
    ticket_question_ask,
    board_question_inbox,
    ticket_question_answer,
    board_question_wait,
    ticket_question_wait,
)
"""In the bridge's order. No other tool refuses arguments that it does not declare (bridge.md §1.5)."""

_DECLARED = {tool.__name__: frozenset(tool.__annotations__) - {"ctx", "return"} for tool in QUESTION_TOOLS}


async def _seated(ctx: Ctx, allowed: frozenset[str], operation: str) -> tuple[Call, Central, Seat]:
    """The call, and the seat that it acts as, joined and in a role that may do this. Raises ToolError."""
    call = _declared(ctx)
    try:
        central, seat = await call.conversation.join()
        questions.require_role(seat.role, allowed, operation)
    except NotAllowed as error:
        raise ToolError(str(error)) from error
    except PursersError as error:
        raise ToolError(join_failure_text(error)) from error
    return call, central, seat


async def _ticket(central: Central, seat: Seat, ticket_id: str) -> Json:
    """A ticket with its questions, as Central has it now. Raises CentralError."""
    answer = await central.pool.read("ticket_get", {"board_id": seat.board, "ticket_id": ticket_id, "view": "work"})
    ticket = expand_ids(answer).get("ticket")
    return ticket if isinstance(ticket, dict) else {}


def _declared(ctx: Ctx) -> Call:
    """The call. Raises ToolError for an argument that its tool does not declare."""
    call = Call.of(ctx.request_context)
    if call.arguments.keys() - _DECLARED[call.tool]:
        raise ToolError(
            f"{call.tool} received unsupported arguments; private auth and identity overrides are never accepted"
        )
    return call


async def _carry_out(
    call: Call, central: Central, seat: Seat, chosen: Mapping[str, Any], look: Look | None = None
) -> Json:
    """What Central says to the tool of the same name, as this seat. Raises ToolError with Central's own words."""

    async def send(seat: Seat) -> Json:
        arguments = {"board_id": seat.board, "agent_name": seat.agent_name, **chosen}
        return await call.carry_out(central.pool, call.tool, arguments, look, generation=seat.generation)

    try:
        return await central.seats.seated(seat, send)
    except CentralError as error:
        raise ToolError(_refusal(call.tool, error)) from error


async def _wait(ctx: Ctx, subject_at: Callable[[Central], Subject], since_seq: int, timeout_s: int) -> Json:
    """The result of a wait. Raises ToolError: a wait that fails has moved no cursor."""
    call, progress = _declared(ctx), Progress()
    conversation = call.conversation
    began = time.monotonic()
    try:
        with conversation.waiting():
            result = await wait(
                caller_of(conversation, ctx.report_progress),
                subject_at,
                since_seq,
                timeout_s,
                progress,
                age_s=conversation.requests.age_s(call.request),
            )
    except (NotAllowed, ArgumentError) as error:
        raise ToolError(str(error)) from error
    except PursersError as error:
        text = _refusal(call.tool, error) if progress.joined else join_failure_text(error)
        raise ToolError(text) from error
    conversation.witness.answered(conversation, call.tool, result, began=began, cued_at=progress.cued_at)
    return result


def _refusal(tool: str, error: PursersError) -> str:
    return f"{tool} Central error: {error}"
