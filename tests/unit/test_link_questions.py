"""conversation/link: what the server asks the host reaches it under an id that nobody used before, and the answer comes back."""

from typing import Any

import anyio
import pytest
from mcp.server.mcpserver import Context

from pursersd.conversation.conversation import Conversation
from pursersd.rules import resend
from pursersd.rules.resend import Resend, Tool
from pursersd.tools import server as tools
from unit.linked import INITIALIZE, PATIENCE, Shim, conversation, linked

pytestmark = pytest.mark.anyio

FORM = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ask(ctx: Context[Conversation, Any], text: str) -> dict[str, Any]:
    """Asks the human, once or as often as there are letters."""
    said = [await ctx.session.elicit_form(letter, FORM, ctx.request_id) for letter in text]
    return {"said": [answer.action for answer in said]}


@pytest.fixture(autouse=True)
def only_this_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "TOOLS", (ask,))
    monkeypatch.setattr(resend, "TOOLS", {"ask": Tool(Resend.VERIFY, "of a test")})


async def shake_hands(shim: Shim) -> None:
    params = {**INITIALIZE["params"], "capabilities": {"elicitation": {}}}
    await shim.say({**INITIALIZE, "params": params}, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (await shim.next())["id"] == 0


async def respond(shim: Shim, identity: object, action: str) -> None:
    await shim.say({"jsonrpc": "2.0", "id": identity, "result": {"action": action}})


async def test_each_question_has_an_id_of_its_own_on_this_link_and_the_next() -> None:
    talk, ids = conversation(), []
    for _ in range(2):
        async with linked(talk) as shim:
            await shake_hands(shim)
            await shim.call(1, "ask", text="xyz")
            for letter, action in zip("xyz", ("accept", "decline", "cancel"), strict=True):
                question = await shim.next()
                assert (question["method"], question["params"]["message"]) == ("elicitation/create", letter)
                ids.append(question["id"])
                await respond(shim, question["id"], action)
            assert await shim.result() == (1, {"said": ["accept", "decline", "cancel"]})
    assert len(set(ids)) == 6
    assert {type(identity) for identity in ids} == {str}


async def test_an_answer_to_a_question_of_an_earlier_link_is_nobodys() -> None:
    talk = conversation()
    async with linked(talk) as shim:
        await shake_hands(shim)
        await shim.call(1, "ask", text="x")
        stale = (await shim.next())["id"]
    async with linked(talk) as shim:
        await shake_hands(shim)
        await shim.call(1, "ask", text="x")
        question = await shim.next()
        for wrong in (stale, 1, "1", "pursers-1"):
            await respond(shim, wrong, "accept")
        await respond(shim, question["id"], "decline")
        await respond(shim, question["id"], "accept")
        assert await shim.result() == (1, {"said": ["decline"]})
    lost = {window.counter: window.count for window in talk.windows.snapshot()}
    assert lost["forms_cancelled"] == 1


async def test_a_cancelled_call_takes_its_question_back() -> None:
    talk = conversation()
    async with linked(talk) as shim:
        await shake_hands(shim)
        await shim.call(1, "ask", text="x")
        question = await shim.next()
        await shim.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        taken_back = await shim.next()
        assert (taken_back["method"], taken_back["params"]["requestId"]) == ("notifications/cancelled", question["id"])
        await respond(shim, question["id"], "accept")
        await shim.say({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        assert (await shim.next())["id"] == 2
    assert {window.counter: window.count for window in talk.windows.snapshot()}["forms_cancelled"] == 0


async def test_a_conversation_whose_human_does_not_answer_becomes_idle() -> None:
    talk = conversation()

    def is_idle_some_day() -> bool:
        return talk.holder.idle_at(1.0) < float("inf")

    for end in ("answer", "cancel", "link"):
        async with linked(talk) as shim:
            await shake_hands(shim)
            await shim.call(1, "ask", text="xy")
            question = await shim.next()
            assert is_idle_some_day(), "its leases are not kept for ever"
            if end == "answer":
                await respond(shim, question["id"], "decline")
                second = await shim.next()
                assert is_idle_some_day()
                await respond(shim, second["id"], "decline")
                await shim.result()
            elif end == "cancel":
                await shim.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
                await shim.next()
        with talk.holder.calling():
            assert not is_idle_some_day(), f"forms are counted to the end: {end}"


async def test_a_host_may_refuse_to_ask() -> None:
    async with linked(conversation()) as shim:
        await shake_hands(shim)
        await shim.call(1, "ask", text="x")
        question = await shim.next()
        await shim.say({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32000, "message": "no window"}})
        assert (await shim.next())["error"] == {"code": -32000, "message": "no window"}


async def test_many_questions_at_once_do_not_mix() -> None:
    async with linked(conversation()) as shim:
        await shake_hands(shim)
        for number in range(20):
            await shim.call(number, "ask", text="x" if number % 2 else "y")
        questions = [await shim.next() for _ in range(20)]
        for question in reversed(questions):
            await respond(shim, question["id"], "accept" if question["params"]["message"] == "x" else "decline")
        with anyio.fail_after(PATIENCE):
            answers = dict([await shim.result() for _ in range(20)])
        assert answers == {number: {"said": ["accept" if number % 2 else "decline"]} for number in range(20)}
