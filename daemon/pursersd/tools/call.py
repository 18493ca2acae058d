"""One call of a tool, and its one way to Central: whatever is lost on the way, it ends in exactly one outcome.

What a second sending means is the tool's class in rules/resend.py. Here that class is carried out, in the same way after
a lost answer of Central, a lost Central, a lost link and a lost daemon (RB-CAN-001, RB-WORK-001).
"""

import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp_types import CallToolResult, TextContent

from pursers_shim import wire
from pursersd.central.pool import Pool
from pursersd.conversation.conversation import Conversation
from pursersd.errors import CentralError, OutcomeUnknown, PursersError
from pursersd.ids import RequestId
from pursersd.rules import resend
from pursersd.rules.backoff import delays
from pursersd.rules.resend import PATIENCE, Resend, Step
from pursersd.rules.windows import LW_CALL

log = logging.getLogger(__name__)

Look = Callable[[], Awaitable[dict[str, Any] | None]]
"""Asks Central whether the call has been carried out: its result if so, None if certainly not. Reads only."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a model called. A tool makes one with `Call.of(ctx)` and sends whatever it sends to Central through it."""

    conversation: Conversation
    request: RequestId
    tool: str
    arguments: Mapping[str, Any]
    was_sent_before: bool
    """An earlier daemon, or this one on an earlier link, had it and may have carried it out."""

    @classmethod
    def of(cls, ctx: ServerRequestContext[Conversation, Any]) -> "Call":
        """The call that this request is."""
        params = ctx.params or {}
        request, conversation = ctx.request_id, ctx.lifespan_context
        assert request is not None, "a tool call has an id"
        return cls(
            conversation,
            request,
            str(params.get("name", "")),
            params.get("arguments") or {},
            conversation.requests.was_sent_before(request),
        )

    @property
    def age_s(self) -> float:
        """Seconds that it had been pending before it came again; 0 for one that was never sent before."""
        return self.conversation.requests.age_s(self.request)

    @property
    def resend(self) -> Resend:
        """The tool's class."""
        return resend.tool(self.tool).resend

    @property
    def key(self) -> str:
        """The idempotency key for a call whose caller gave none: a resent one has the same."""
        host, nth = self.conversation.requests.name(self.request)
        return resend.key(self.conversation.id, host, self.tool, self.arguments, nth)

    def begin(self) -> None:
        """Raise OutcomeUnknown if the call must not be carried out because it may have been already."""
        if resend.first_step(self.resend, sent_before=self.was_sent_before) is Step.UNKNOWN:
            raise OutcomeUnknown(
                "the daemon that had it was replaced, or the link to it was lost, before it had answered"
            )

    def require_answer(self, error: BaseException | None) -> None:
        """Raise OutcomeUnknown if the call failed with `error` and an earlier sending may have been carried out."""
        if resend.leaves_open(self.resend, error, sent_before=self.was_sent_before):
            assert isinstance(error, PursersError)
            raise OutcomeUnknown(f"it had been sent before, and {_first_sentence(error)}") from error

    async def carry_out(
        self,
        pool: Pool,
        central_tool: str,
        arguments: Mapping[str, Any],
        look: Look | None = None,
        *,
        generation: str | None = None,
    ) -> dict[str, Any]:
        """Have Central do it once, after what was asked for the same ticket before; returns Central's result.

        The arguments of a keyed call hold its key; it and a call to be verified have a `look`. `generation` is the board
        generation to insist on (central.md §6.5). Raises Central's own error when it was not carried out, and OutcomeUnknown when
        nobody can tell.
        """
        changes = not resend.read_only(self.tool) and "ticket_id" in arguments
        ticket = (arguments.get("board_id"), arguments["ticket_id"]) if changes else None
        async with self.conversation.lanes.lane(ticket):
            return await self._carry_out(pool, central_tool, arguments, look, generation)

    async def _carry_out(
        self, pool: Pool, central_tool: str, arguments: Mapping[str, Any], look: Look | None, generation: str | None
    ) -> dict[str, Any]:
        attempt, may_have_run = 0, self.was_sent_before
        patience = PATIENCE[self.resend]
        pauses = delays(patience.first, patience.cap, random.random)
        step = resend.first_step(self.resend, sent_before=may_have_run)
        while True:
            attempt += 1
            try:
                if step is Step.LOOK:
                    found = await _ask(look)
                    if found is not None:
                        return found
                return await pool.call(central_tool, arguments, generation=generation)
            except CentralError as error:
                step = resend.next_step(self.resend, error, attempt=attempt, sent_before=may_have_run)
                may_have_run = may_have_run or (error.sent and resend.is_loss(error))
                log.info("%s: %s of %s: %s, then %s", self.conversation.id, central_tool, self.tool, error, step.name)
                if step is Step.UNKNOWN:
                    raise OutcomeUnknown(_first_sentence(error)) from error
                if step is Step.FAIL:
                    raise
                if not resend.is_loss(error):
                    return await _ask_about(error, look)
                pause = resend.pause(error, next(pauses))
            await anyio.sleep(pause)

    def unknown_text(self, error: OutcomeUnknown) -> str:
        """The words for an outcome that nobody can tell; it is counted (RB-LSE-001)."""
        self.conversation.windows.opened(LW_CALL, f"{self.conversation.id}: {self.tool}: {error}")
        return resend.unknown_text(self.tool, self.arguments, str(error))

    def unknown(self, error: OutcomeUnknown) -> CallToolResult:
        """What the model reads when nobody can tell whether its call was carried out."""
        text = self.unknown_text(error)
        failed = wire.failed_call(
            wire.OUTCOME_UNKNOWN,
            text,
            action=resend.tool(self.tool).check,
            outcome="unknown",
            modern=False,  # the SDK knows which era it is
            about={"tool": self.tool, "target": resend.target(self.tool, self.arguments)},
        )
        shown = TextContent(type="text", text=f"Error executing tool {self.tool}: {text}")
        return CallToolResult(content=[shown], structured_content=failed["structuredContent"], is_error=True)


async def _ask(look: Look | None) -> dict[str, Any] | None:
    assert look is not None, "a call that is keyed or verified brings a look"
    return await look()


async def _ask_about(refusal: CentralError, look: Look | None) -> dict[str, Any]:
    """Central refused a repetition: because the first sending succeeded, or for a reason of its own."""
    try:
        found = await _ask(look)
    except CentralError as error:
        raise OutcomeUnknown(f"{_first_sentence(refusal)}, and then: {_first_sentence(error)}") from error
    if found is None:
        raise refusal
    return found


def _first_sentence(error: PursersError) -> str:
    """What happened, without what to do about it: that is said at the end of the text."""
    return str(error).partition(". ")[0].rstrip(".")
