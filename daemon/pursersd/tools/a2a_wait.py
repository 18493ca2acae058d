"""The tool a2a_wait: check the arguments, let the engine wait, see to it that what was read is acknowledged once it is
delivered (bridge.md §2)."""

import time
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from pursersd.central.account import cycle_of
from pursersd.conversation.conversation import Conversation
from pursersd.errors import ArgumentError
from pursersd.rules import arguments
from pursersd.tools.caller import caller_of
from pursersd.waits import engine


async def a2a_wait(
    ctx: Context[Conversation, Any],
    since_seq: int | dict[str, int] | None = None,
    timeout_s: int = arguments.DEFAULT_TIMEOUT_S,
    only_mine: bool = True,
    project: str | None = None,
    agent_name: str | None = None,
    boards: list[str] | str | None = None,
    wait_for: str = "auto",
) -> dict[str, Any]:
    """Block until board work arrives, something you hold changes, or timeout_s passes; then call it again.

    Pass the new_seq of the last result as since_seq; leave since_seq out the first time. Returns events, new_seq, reason
    and timed_out. wait_for: "claimable" (open work), "submitted" (work to review) or "auto" (by the seat's role).
    """
    conversation = ctx.request_context.lifespan_context
    raw = (ctx.request_context.params or {}).get("arguments") or {}
    try:
        checked = arguments.check(
            since_seq=since_seq,
            timeout_s=timeout_s,
            timeout_given="timeout_s" in raw,
            only_mine=only_mine,
            project=project,
            agent_name=agent_name,
            boards=boards,
            wait_for=wait_for,
            block_limit_s=conversation.settings.host.block_limit_s,
        )
    except ArgumentError as error:
        raise ToolError(str(error)) from error
    request = ctx.request_context.request_id
    assert request is not None, "a tool call has an id"
    account = conversation.account(checked.agent_name)
    began = time.monotonic()
    requests = conversation.requests
    with conversation.waiting(), cycle_of(account):
        caller = caller_of(conversation, ctx.report_progress)
        waited = await engine.wait(
            caller, checked, age_s=requests.age_s(request), began_elsewhere=requests.began_elsewhere(request)
        )
    if account is not None and waited.past_setup:
        account.returned(waited.result)
    conversation.witness.answered(conversation, "a2a_wait", waited.result, began=began, cued_at=waited.cued_at)
    if waited.acknowledge is not None:
        requests.acknowledge_when_delivered(request, waited.acknowledge)
    if waited.withdraw is not None:
        requests.withdraw_when_lost(request, waited.withdraw)
    return waited.result
