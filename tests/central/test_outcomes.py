"""tools/call: one outcome for each call, whatever is lost: the answer, Central, the link or the daemon (design, §6).

The tools here stand for their classes: what they send to Central is real, and so is what becomes of it there.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from central.feeding import eventually, pool
from pursersd.central.pool import Pool
from pursersd.conversation.conversation import Conversation
from pursersd.errors import CentralError, OutcomeUnknown, ToolFailed, Unreachable
from pursersd.ids import agent_id
from pursersd.rules import resend
from pursersd.rules.resend import Patience, Resend, Tool
from pursersd.tools.call import Call
from rig.central import ADMIN_SEAT, Central
from rig.proxy import Proxy
from unit.linked import conversation

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
SEAT = "ann-1"

TOOLS = {
    "look_up": Tool(Resend.READ, "of a test"),
    "ask": Tool(Resend.KEYED, "of a test", ("ticket_id",), "ticket_get shows the questions."),
    "remember": Tool(Resend.MUTATING, "of a test", ("title",), "memory_read shows it."),
    "submit": Tool(Resend.VERIFY, "of a test", ("ticket_id",), "ticket_get shows the status."),
}
"""In an order in which one worker can do them all with its ticket."""

REQUESTS = {
    "look_up": "board_status",
    "ask": "ticket_question_ask",
    "submit": "ticket_submit",
    "remember": "memory_write",
}
"""What each sends to Central."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools of this file, and no patience to speak of."""
    monkeypatch.setattr(resend, "TOOLS", TOOLS)
    quick = {kind: Patience(2 if kind is Resend.MUTATING else 3, 0.02, 0.1) for kind in Resend}
    monkeypatch.setattr(resend, "PATIENCE", quick)
    monkeypatch.setattr("pursersd.tools.call.PATIENCE", quick)


class Desk:
    """A worker that holds a ticket, and what a tool of each class does for it; `effects()` counts what was done."""

    def __init__(self, central: Central, board: str) -> None:
        self.board = board
        self.token = central.worker("ann", board)
        self._central = central
        self._seat = {"board_id": board, "agent_name": SEAT}
        central.call(self.token, "board_join", **self._seat, role="worker", allow_takeover=True)
        self.ticket = central.create_ticket(board, "held")
        central.call(self.token, "ticket_claim", **self._seat, ticket_id=self.ticket)
        owner = agent_id(board, "PR-" + "0" * 64, "owner")
        central.call(
            central.admin,
            "board_state_update",
            board_id=board,
            agent_name=ADMIN_SEAT,
            key="project_coordinators",
            value=json.dumps({board: [owner]}),
        )

    def call(self, tool: str, *, was_sent_before: bool = False, of: Conversation | None = None) -> Call:
        talk = of or conversation()
        talk.requests.begin(7, 7, 1.0 if was_sent_before else None)
        return Call(talk, 7, tool, self._arguments(tool), was_sent_before)

    async def do(self, call: Call, to: Pool) -> Json:
        """What the tool of this call does."""
        call.begin()
        arguments = {**self._seat, **call.arguments}
        match call.tool:
            case "ask":
                arguments["message_id"] = call.key
            case "submit":
                return await call.carry_out(to, "ticket_submit", arguments, self._look(to))
            case "look_up":
                arguments = {"board_id": self.board}
        return await call.carry_out(to, REQUESTS[call.tool], arguments)

    def effects(self, tool: str) -> int:
        """How often it has been done."""
        if tool == "remember":
            found = self._central.call(self.token, "memory_read", **self._seat)
            return sum(memory["title"] == "a fact" for memory in found["memories"])
        ticket = self._central.call(self.token, "ticket_get", board_id=self.board, ticket_id=self.ticket)["ticket"]
        if tool == "ask":
            return len(ticket.get("coordinator_questions", []))
        return int(ticket["status"] == "submitted")

    def _arguments(self, tool: str) -> Json:
        match tool:
            case "ask":
                return {"ticket_id": self.ticket, "message": "Is this right?", "kind": "decision"}
            case "submit":
                return {"ticket_id": self.ticket, "summary": "Done."}
            case "remember":
                return {"title": "a fact", "content": "It is so.", "scope": "project"}
        return {}

    def _look(self, to: Pool) -> Callable[[], Awaitable[Json | None]]:
        async def look() -> Json | None:
            found = await to.read("ticket_get", {"board_id": self.board, "ticket_id": self.ticket, "view": "work"})
            return {"seen": True, **found} if found["ticket"]["status"] == "submitted" else None

        return look


@pytest.fixture
def desk(central: Central, board: str) -> Desk:
    return Desk(central, board)


async def fails(desk: Desk, call: Call, to: Pool) -> Exception:
    with pytest.raises((CentralError, OutcomeUnknown)) as caught:
        await desk.do(call, to)
    return caught.value


CHANGING = ["ask", "remember", "submit"]


async def test_calls_that_nothing_happens_to(desk: Desk, proxy: Proxy) -> None:
    async with pool(proxy.url, desk.token) as central:
        for tool in TOOLS:
            assert await desk.do(desk.call(tool), central.pool)
            assert proxy.count(REQUESTS[tool]) == 1
    assert [desk.effects(tool) for tool in CHANGING] == [1, 1, 1]


async def test_a_lost_answer(desk: Desk, proxy: Proxy) -> None:
    """Central carries the call out, and nobody hears of it."""
    async with pool(proxy.url, desk.token) as central:
        for request in REQUESTS.values():
            proxy.cut_after(request)
        await desk.do(desk.call("look_up"), central.pool)
        assert (await desk.do(desk.call("ask"), central.pool))["duplicate"]
        error = await fails(desk, desk.call("remember"), central.pool)
        assert isinstance(error, OutcomeUnknown)
        assert "The connection to Central" in str(error)
        assert (await desk.do(desk.call("submit"), central.pool))["seen"]
        assert [proxy.count(REQUESTS[tool]) for tool in TOOLS] == [2, 2, 1, 1]
    assert [desk.effects(tool) for tool in CHANGING] == [1, 1, 1]


async def test_a_central_that_is_away_for_a_moment(desk: Desk, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = {kind: Patience(2 if kind is Resend.MUTATING else 3, 0.4, 0.4) for kind in Resend}
    monkeypatch.setattr("pursersd.tools.call.PATIENCE", patient)
    async with pool(proxy.url, desk.token) as central:
        for tool in TOOLS:
            await to_thread.run_sync(proxy.refuse)
            await to_thread.run_sync(proxy.reset_all)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(desk.do, desk.call(tool), central.pool)
                await eventually(lambda: isinstance(central.pool.last_error, Unreachable))
                await to_thread.run_sync(proxy.refuse, False)
            assert proxy.count(REQUESTS[tool]) == 1
    assert [desk.effects(tool) for tool in CHANGING] == [1, 1, 1]


async def test_a_central_that_stays_away_has_carried_out_nothing(desk: Desk, proxy: Proxy) -> None:
    async with pool(proxy.url, desk.token) as central:
        await to_thread.run_sync(proxy.refuse)
        for tool in TOOLS:
            assert isinstance(await fails(desk, desk.call(tool), central.pool), Unreachable)
    assert [desk.effects(tool) for tool in CHANGING] == [0, 0, 0]


@pytest.mark.parametrize("tool", list(TOOLS))
async def test_a_lost_answer_of_a_central_that_stays_away(desk: Desk, proxy: Proxy, tool: str) -> None:
    """Whoever only reads hears that Central is gone, all others that nobody knows."""
    async with pool(proxy.url, desk.token) as central:
        await to_thread.run_sync(proxy.hold, REQUESTS[tool])
        outcome: list[Exception] = []

        async def run() -> None:
            outcome.append(await fails(desk, desk.call(tool), central.pool))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await eventually(lambda: proxy.holding(REQUESTS[tool]))
            await to_thread.run_sync(proxy.refuse)
            await to_thread.run_sync(proxy.reset_all)
        assert isinstance(outcome[0], Unreachable if tool == "look_up" else OutcomeUnknown), outcome


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_lost_daemon_or_link(desk: Desk, proxy: Proxy, carried_out: bool) -> None:
    """The shim sends the calls again; what the daemon before did with them is unknown here."""
    async with pool(proxy.url, desk.token) as central:
        if carried_out:
            for tool in TOOLS:
                await desk.do(desk.call(tool), central.pool)
        mark = proxy.mark()
        error = await fails(desk, desk.call("remember", was_sent_before=True), central.pool)
        assert isinstance(error, OutcomeUnknown)
        assert proxy.count(None, mark) == 0
        await desk.do(desk.call("look_up", was_sent_before=True), central.pool)
        if not carried_out:
            asked = await desk.do(desk.call("ask", was_sent_before=True), central.pool)
            assert not asked["duplicate"]
        submitted = await desk.do(desk.call("submit", was_sent_before=True), central.pool)
        assert ("seen" in submitted) is carried_out
    assert [desk.effects(tool) for tool in CHANGING] == [1, carried_out, 1]


async def test_a_question_that_the_daemon_before_had_asked_is_the_same_question(desk: Desk, proxy: Proxy) -> None:
    async with pool(proxy.url, desk.token) as central:
        first = await desk.do(desk.call("ask"), central.pool)
        again = await desk.do(desk.call("ask", was_sent_before=True), central.pool)
        assert (first["duplicate"], again["duplicate"]) == (False, True)
        assert again["question_id"] == first["question_id"]
    assert desk.effects("ask") == 1


async def test_a_repetition_that_central_refuses_because_the_first_was_carried_out(desk: Desk, proxy: Proxy) -> None:
    """The look came too early: the first sending was still on its way."""
    async with pool(proxy.url, desk.token) as central:
        call = desk.call("submit", was_sent_before=True)
        look = desk._look(central.pool)
        looks = 0

        async def early() -> Json | None:
            nonlocal looks
            looks += 1
            if looks > 1:
                return await look()
            await desk.do(desk.call("submit"), central.pool)
            return None

        arguments = {"board_id": desk.board, "agent_name": SEAT, **call.arguments}
        result = await call.carry_out(central.pool, "ticket_submit", arguments, early)
        assert result["seen"]
        assert looks == 2


async def test_changes_of_one_ticket_keep_their_order_and_others_do_not_wait(
    desk: Desk, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = dict.fromkeys(Resend, Patience(3, 0.6, 0.6))
    monkeypatch.setattr("pursersd.tools.call.PATIENCE", patient)
    talk = conversation()
    async with pool(proxy.url, desk.token) as central:
        await to_thread.run_sync(proxy.refuse)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.do, desk.call("ask", of=talk), central.pool)
            await eventually(lambda: isinstance(central.pool.last_error, Unreachable))
            await to_thread.run_sync(proxy.refuse, False)  # the question waits for its next attempt
            tasks.start_soon(desk.do, desk.call("submit", of=talk), central.pool)
            tasks.start_soon(desk.do, desk.call("remember", of=talk), central.pool)
        order = [seen.name for seen in proxy.seen() if seen.name in REQUESTS.values()]
        assert order == ["memory_write", "ticket_question_ask", "ticket_submit"]
    assert len(talk.lanes) == 0


async def test_what_central_refuses_fails_with_its_words(desk: Desk, proxy: Proxy) -> None:
    wrong = {"ticket_id": "TK-unknown", "scope": "?"}
    async with pool(proxy.url, desk.token) as central:
        for tool in CHANGING:
            call = desk.call(tool)
            arguments = {"board_id": desk.board, "agent_name": SEAT, **call.arguments, **wrong}
            with pytest.raises(ToolFailed):
                await call.carry_out(central.pool, REQUESTS[tool], arguments)
            assert proxy.count(REQUESTS[tool]) == 1


def test_an_unknown_outcome_names_the_tool_the_target_and_how_to_check(desk: Desk) -> None:
    result = desk.call("submit").unknown(OutcomeUnknown("the connection was lost"))
    assert result.is_error
    assert result.structured_content is not None
    failure = result.structured_content["error"]
    assert (failure["code"], failure["outcome"], failure["retryable"]) == ("outcome_unknown", "unknown", False)
    assert (failure["tool"], failure["target"]) == ("submit", {"ticket_id": desk.ticket})
    assert failure["action"] == "ticket_get shows the status."
    text = f'The outcome of submit on {{"ticket_id": "{desk.ticket}"}} is unknown (LW-CALL): the connection was lost. '
    assert failure["message"].startswith(text + "Do not just ")
    assert failure["message"].endswith("repeat it. ticket_get shows the status.")
