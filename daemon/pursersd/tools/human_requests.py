"""The tool board_human_requests: the pending questions of many boards, put to the human at this host if it can show them,
or answered by the caller (bridge.md §4.3)."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import InputRequiredResult
from mcp_types.version import is_version_at_least
from pydantic import ValidationError

from pursersd.conversation.conversation import Conversation
from pursersd.errors import ArgumentError, OutcomeUnknown, PursersError, ToolFailed, UnknownBoard
from pursersd.feed.centrals import Central
from pursersd.feed.registries import read_registry
from pursersd.rules import human_answer, human_asked, human_round, selection
from pursersd.rules.elicitation import Declared, declared
from pursersd.rules.human_answer import Answer, Given
from pursersd.rules.human_question import SENSITIVE, Question, Target, pending, with_disposition
from pursersd.rules.human_round import Expected, Round
from pursersd.seats.seat import Seat
from pursersd.tools import humans, sealed_state
from pursersd.tools.call import Call
from pursersd.tools.human_request import MODERN, join
from pursersd.tools.humans import Listed
from pursersd.tools.project_registry import explained

log = logging.getLogger(__name__)

Result = dict[str, Any]

LATER = "asked later"


async def board_human_requests(
    ctx: Context[Conversation, Any], boards: list[str] | str = "registry", answer: dict[str, Any] | None = None
) -> dict[str, Any] | InputRequiredResult:
    """List pending needs_human questions; elicit several at once, or take one answer via the answer argument."""
    call = Call.of(ctx.request_context)
    central, seat = await join(call.conversation)
    host = declared(ctx.client_capabilities)
    log.info("%s: its host declares %s", call.conversation.id, json.dumps(host.shown, sort_keys=True))
    try:
        wanted = await _boards(call.conversation, central, boards)
        if answer is not None:
            return await _answered(call, central, wanted, answer, host)
        if ctx.input_responses:
            return await _second_round(ctx, call, host)
        listed = await humans.list_pending(central, wanted)
        before = _asked_before(call)
        if not listed.questions and not before:
            message = "no tickets are waiting for a human answer"
            return {"ok": True, "declared": host.shown, "pending": [], "message": message, **_unread(listed)}
        if not host.any:
            return _not_shown(listed, host)
        if ctx.protocol_version is not None and not is_version_at_least(ctx.protocol_version, MODERN):
            outcomes = _Outcomes()
            await outcomes.take_earlier(call, central, seat, listed, before)
            return await _ask_one_by_one(ctx, call, listed, host, outcomes)
        return await _first_round(listed, host)
    except (OutcomeUnknown, ToolError):
        raise
    except PursersError as error:
        raise ToolError(str(error)) from error


async def _boards(conversation: Conversation, central: Central, boards: list[str] | str) -> Sequence[str]:
    """The boards of the call, each once. Raises ArgumentError, and ToolError if the registry cannot be had."""
    home, narrowed = conversation.settings.board, conversation.settings.boards_filter
    if isinstance(boards, str) and boards.strip().lower() != "registry":
        return list(dict.fromkeys(part.strip() for part in boards.split(",") if part.strip())) or [home]
    if not isinstance(boards, str):
        if not boards:
            raise ArgumentError(f"boards must contain at least one non-empty board ID; received {boards!r}")
        if not all(board.strip() for board in boards):
            raise ArgumentError(f"boards must contain only non-empty board ID strings; received {boards!r}")
        return list(dict.fromkeys(board.strip() for board in boards))
    known = None
    if selection.wants_registry("registry", narrowed):
        known = await explained(home, read_registry(central.pool, home))
    return selection.select("registry", None, home=home, boards_filter=narrowed, registry=known).boards


async def _answered(
    call: Call, central: Central, boards: Sequence[str], value: dict[str, Any], host: Declared
) -> Result:
    """The caller answers one question itself."""
    given = human_answer.given(value)
    if given.answer is None:
        later = {"ticket_id": given.ticket_id, "reason": LATER}
        return {"ok": True, "declared": host.shown, "resolved": [], "deferred": [later]}
    listed = await humans.list_pending(central, boards)
    target = next((found.target for found in listed.questions if given.fits(found)), None)
    if target is None and call.was_sent_before:
        target = await _answered_before(central, boards, given)
    if target is None:
        error = f"no pending human request found for ticket {given.ticket_id}"
        return {"ok": False, "declared": host.shown, "error": error, **_unread(listed)}
    try:
        result = await humans.resolve(call, central, target, given.answer)
    except OutcomeUnknown:
        raise
    except PursersError as error:
        return {"ok": False, "declared": host.shown, "error": f"ticket_human_resolve failed: {error}"}
    named = {"board_id": target.board, "ticket_id": target.ticket_id, "request_id": target.request_id}
    return {"ok": True, "declared": host.shown, "resolved": [{**named, **given.answer.shown}], "result": result}


async def _answered_before(central: Central, boards: Sequence[str], given: Given) -> Target | None:
    """The question that an earlier sending of this call may have answered: it is not pending any more then."""
    for board in boards:
        try:
            _, found = await humans.read_ticket(central, board, given.ticket_id)
        except (ToolFailed, UnknownBoard):
            continue  # it is a ticket of one of the other boards
        if found is not None and given.fits(found):
            return found.target
    return None


def _not_shown(listed: Listed, host: Declared) -> Result:
    """The host cannot ask: the caller may, but not for secrets."""
    hidden = [(found, SENSITIVE) for found in listed.questions if found.is_sensitive and not found.url]
    return {
        "ok": True,
        "declared": host.shown,
        "elicitation_declared": False,
        "pending": [found.summary for found in listed.questions],
        "unasked": [{**found.target.shown, "reason": reason} for found, reason in hidden],
        "instructions": human_round.INSTRUCTIONS,
        **_unread(listed),
    }


async def _first_round(listed: Listed, host: Declared) -> Result | InputRequiredResult:
    """The newer era: all questions at once; the answers come with another call."""
    asked: dict[str, Question] = {}
    unasked: list[dict[str, object]] = []
    for index, found in enumerate(listed.questions):
        reason = human_round.obstacle(found, host)
        if reason is None:
            asked[f"r{index}"] = found
        else:
            target = found.target
            unasked.append({"ticket_id": target.ticket_id, "request_id": target.request_id, "reason": reason})
    if not asked:
        return {
            "ok": True,
            "declared": host.shown,
            "elicitation_declared": True,
            "pending": [found.summary for found in listed.questions],
            "unasked": unasked,
            "instructions": human_round.INSTRUCTIONS,
            **_unread(listed),
        }
    await sealed_state.prepare()
    return InputRequiredResult(
        _meta={"declared": host.shown, **_unread(listed)},
        input_requests={key: human_round.request(found) for key, found in asked.items()},
        request_state=human_round.to_state(
            Round({key: human_round.expected(found) for key, found in asked.items()}, unasked)
        ),
    )


@dataclass(slots=True)
class _Outcomes:
    """What became of the questions of a round."""

    resolved: list[dict[str, object]] = field(default_factory=list)
    deferred: list[dict[str, object]] = field(default_factory=list)
    errors: list[dict[str, object]] = field(default_factory=list)

    async def take(self, call: Call, asked: Expected, response: object) -> None:
        """Tell Central the host's response to one question, if it is an answer; what fails is noted, the others go on."""
        target = asked.target
        answer: Answer | None = human_answer.response(response, asked.disposition_field)
        if answer is None:
            self.deferred.append({**target.shown, "reason": LATER})
            return
        try:
            central, _ = await call.conversation.join()  # as it is now: the human may have taken a while
            await humans.resolve(call, central, target, answer)
            self.resolved.append({**target.shown, **answer.shown})
        except OutcomeUnknown as error:
            self.errors.append({**target.shown, "error": call.unknown_text(error)})
        except PursersError as error:
            self.errors.append({**target.shown, "error": _said(call, error)})

    async def take_earlier(
        self, call: Call, central: Central, seat: Seat, listed: Listed, before: Sequence[Target]
    ) -> None:
        """Note what became of these questions, which were put before this call came again; what is listed will be put again."""
        since = central.pool.central_time - call.age_s
        again = {found.target for found in listed.questions}
        for target in [target for target in before if target not in again]:
            try:
                ticket, found = await humans.read_ticket(central, target.board, target.ticket_id)
            except PursersError as error:
                self.errors.append({**target.shown, "error": _said(call, error)})
                continue
            if any(open_one.target == target for open_one in pending(target.board, ticket)):
                self.deferred.append({**target.shown, "reason": LATER})  # its board's list had no room for it
                continue
            answer = None
            if found is not None and found.target == target:
                answer = human_answer.recorded(found, ticket.get("status"), seat.principal_id, since=since)
            if answer is None:
                self.errors.append({**target.shown, "error": humans.NOT_PENDING})
            else:
                self.resolved.append({**target.shown, **answer.shown})


def _said(call: Call, error: PursersError) -> str:
    """The words for a failure; it may leave open whether an earlier sending was carried out."""
    try:
        call.require_answer(error)
    except OutcomeUnknown as unknown:
        return call.unknown_text(unknown)
    return str(error)


def _asked_before(call: Call) -> list[Target]:
    """The questions that this call put to the human one by one before it came again."""
    if not call.was_sent_before:
        return []
    return human_asked.targets(call.conversation.kept.get(human_asked.KEPT), call.key)


async def _second_round(ctx: Context[Conversation, Any], call: Call, host: Declared) -> Result:
    """The newer era: the answers are here."""
    asked = human_round.from_state(ctx.request_state, call.conversation.settings.board)
    if not asked.expected:
        error = "input_responses received but request_state targets are missing"
        return {"ok": False, "declared": host.shown, "error": error}
    outcomes, responses = _Outcomes(), ctx.input_responses or {}
    for key, expected in asked.expected.items():
        await outcomes.take(call, expected, responses.get(key))
    return {
        "ok": not outcomes.errors,
        "declared": host.shown,
        "resolved": outcomes.resolved,
        "deferred": outcomes.deferred,
        "unasked": list(asked.unasked),
        "errors": outcomes.errors,
    }


async def _ask_one_by_one(
    ctx: Context[Conversation, Any], call: Call, listed: Listed, host: Declared, outcomes: _Outcomes
) -> Result:
    """The older era: each question over the link, one after the other."""
    kept = call.conversation.kept
    unasked: list[dict[str, object]] = []
    for found in listed.questions:
        reason = human_round.obstacle(found, host)
        if reason is not None:
            unasked.append({**found.target.shown, "reason": reason})
            continue
        kept[human_asked.KEPT] = human_asked.with_target(kept.get(human_asked.KEPT), call.key, found.target)
        try:
            response = await _ask(ctx, found)
        except MCPError as error:
            outcomes.errors.append({**found.target.shown, "error": str(error)})
            continue
        except ValidationError:  # its text would repeat what the human said
            text = "the host's response to the question is none that the protocol knows"
            outcomes.errors.append({**found.target.shown, "error": text})
            continue
        await outcomes.take(call, human_round.expected(found), response)
    return {
        "ok": not outcomes.errors,
        "mode": "legacy",
        "elicitation_declared": host.any,
        "resolved": outcomes.resolved,
        "deferred": outcomes.deferred,
        "unasked": unasked,
        "errors": outcomes.errors,
        "declared": host.shown,
        **_unread(listed),
    }


async def _ask(ctx: Context[Conversation, Any], found: Question) -> object:
    if found.url:
        return await ctx.session.elicit_url(found.shown, found.url, found.target.request_id, ctx.request_id)
    return await ctx.session.elicit_form(found.shown, with_disposition(found.schema), ctx.request_id)


def _unread(listed: Listed) -> Result:
    """What a list does not tell, if there is anything: boards that could not be read, boards that have more."""
    found: Result = {}
    if listed.skipped:
        found["skipped_boards"] = listed.skipped
    if listed.shortened:
        found["shortened_boards"] = listed.shortened
    return found
