"""Questions to humans at Central: found, listed, resolved (bridge.md §4.2, §4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pursersd.errors import OutcomeUnknown, PursersError, ToolFailed, UnknownBoard
from pursersd.feed.centrals import Central
from pursersd.rules.human_answer import Answer, is_recorded
from pursersd.rules.human_question import Question, Target, in_order, pending, question
from pursersd.rules.id_map import expand_ids
from pursersd.seats.seat import Seat
from pursersd.tools.call import Call

LISTED = 100
"""Questions that are listed of one board, at most."""

NOT_PENDING = "human request is not pending"
"""Central's words when somebody else was faster."""


@dataclass(slots=True)
class Listed:
    """The pending questions of some boards, in order, and the boards that could not be read, with the reason."""

    questions: list[Question] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    shortened: list[str] = field(default_factory=list)
    """Boards that have more of them."""


async def list_pending(central: Central, boards: Sequence[str]) -> Listed:
    """All that is pending. A board's refusal is noted; what is no board's decision is raised, as a CentralError."""
    listed = Listed()
    found: list[Question] = []
    for board in boards:
        try:
            found += await _pending_on(central, board, listed)
        except (ToolFailed, UnknownBoard) as error:
            listed.skipped[board] = str(error)
    listed.questions = in_order(found)
    return listed


async def _pending_on(central: Central, board: str, listed: Listed) -> list[Question]:
    await central.pool.require_board(board)
    answer = await central.pool.read("ticket_list", {"board_id": board, "status": "needs_human", "limit": LISTED})
    if answer.get("has_more"):
        listed.shortened.append(board)
    found: list[Question] = []
    for ticket in answer.get("tickets", []):
        if not isinstance(ticket.get("human_request"), dict | list):  # a view that leaves it out
            ticket, _ = await read_ticket(central, board, str(ticket["ticket_id"]))
        found += pending(board, ticket)
    return found


async def read_ticket(central: Central, board: str, ticket_id: str) -> tuple[dict[str, Any], Question | None]:
    """A ticket and its newest question. Raises ToolFailed if there is no such ticket, and other CentralErrors."""
    await central.pool.require_board(board)
    answer = await central.pool.read("ticket_get", {"board_id": board, "ticket_id": ticket_id, "view": "full"})
    ticket = expand_ids(answer)["ticket"]
    assert isinstance(ticket, dict)
    return ticket, question(board, ticket)


async def resolve(call: Call, central: Central, target: Target, answer: Answer) -> dict[str, Any]:
    """Tell Central the answer, once; returns its result.

    If an earlier sending was carried out the result is the ticket as it is now, with `duplicate`. Raises ToolFailed when
    Central refuses, OutcomeUnknown when nobody can tell, and other PursersErrors.
    """
    conversation = call.conversation
    try:
        seat = await central.seats.join(conversation.seat_request(target.board), conversation.id)
    except PursersError as error:
        call.require_answer(error)
        raise
    return await central.seats.seated(seat, lambda seat: _resolve(call, central, seat, target, answer))


async def _resolve(call: Call, central: Central, seat: Seat, target: Target, answer: Answer) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "board_id": target.board,
        "agent_name": seat.agent_name,
        "ticket_id": target.ticket_id,
        "request_id": target.request_id,
        "action": answer.action,
        "disposition": answer.disposition,
    }
    if answer.content:
        arguments["content"] = answer.content
    if seat.generation is not None:
        arguments["expected_generation"] = seat.generation

    async def look() -> dict[str, Any] | None:
        ticket, found = await read_ticket(central, target.board, target.ticket_id)
        if found is None or found.target != target:
            raise OutcomeUnknown("another question has taken the place of this one")
        return already(ticket) if is_recorded(found, answer, seat.principal_id) else None

    return await call.carry_out(central.pool, "ticket_human_resolve", arguments, look)


def already(ticket: dict[str, Any]) -> dict[str, Any]:
    """The result of an answer that Central had before."""
    return {"ok": True, "ticket": ticket, "duplicate": True}
