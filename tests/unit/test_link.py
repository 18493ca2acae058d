"""conversation/link: lines of a shim to the MCP server and back, over a real socket and the real SDK."""

import json
import socket
from contextlib import suppress

import anyio
import pytest
from anyio.abc import SocketStream, UNIXSocketStream
from mcp.shared import jsonrpc_dispatcher

from pursers_shim import wire
from pursersd.conversation import link as module
from pursersd.conversation.link import Link
from pursersd.rules import resend
from pursersd.tools import server as tools
from unit.linked import CLASSES, INITIALIZE, LIMIT, PATIENCE, Calls, conversation, linked, until_sending, until_started

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_patience_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK waits for a peer that does not listen any more: a link that needs that to end fails here."""
    monkeypatch.setattr(jsonrpc_dispatcher, "_SHUTDOWN_WRITE_TIMEOUT", 10 * PATIENCE)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()
    monkeypatch.setattr(tools, "TOOLS", calls.tools())
    monkeypatch.setattr(resend, "TOOLS", CLASSES)
    return calls


async def test_requests_are_answered(calls: Calls) -> None:
    talk = conversation()
    async with linked(talk) as shim:
        await shim.shake_hands()
        await shim.say({"jsonrpc": "2.0", "id": "a", "method": "tools/list"})
        answer = await shim.next()
        assert answer["id"] == "a"
        assert [tool["name"] for tool in answer["result"]["tools"]] == ["block", "read", "much", "wait"]
    assert talk.client_name == "unit"


async def test_lines_that_came_with_the_hello_are_served_first(calls: Calls) -> None:
    ping = json.dumps({"jsonrpc": "2.0", "id": "ping", "method": "ping"}).encode()
    async with linked(conversation(), [json.dumps(INITIALIZE).encode(), ping]) as shim:
        await shim.say({"jsonrpc": "2.0", "id": "later", "method": "ping"})
        assert [(await shim.next())["id"] for _ in range(3)] == [0, "ping", "later"]


BAD = [
    (b"not json", -32700),
    (b"\xff\xfe", -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700),
    (b'{"a":"\x00"}', -32700),
    (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", -32700),
    (b'"text"', -32600),
    (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    (b"7", -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b"x" * (LIMIT + 1), -32600),
]


@pytest.mark.parametrize(("line", "code"), BAD, ids=lambda value: str(value)[:40])
async def test_a_bad_line_is_answered_and_the_link_goes_on(calls: Calls, line: bytes, code: int) -> None:
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.send(line + b"\n")
        answer = await shim.next()
        assert (answer["id"], answer["error"]["code"]) == (None, code)
        await shim.say({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        assert (await shim.next())["id"] == 9


@pytest.mark.parametrize(
    "line", [{"id": 5}, {"jsonrpc": "1.0", "id": 5, "method": "ping"}, {"id": 5, "method": "ping"}]
)
async def test_what_is_no_json_rpc_is_answered_with_its_id(calls: Calls, line: object) -> None:
    async with linked(conversation()) as shim:
        await shim.say(line)
        answer = await shim.next()
        assert (answer["id"], answer["error"]["code"]) == (5, -32600)


async def test_blank_lines_and_unknown_messages_of_ours_are_ignored(calls: Calls) -> None:
    async with linked(conversation()) as shim:
        await shim.send(b"\n  \n\r\n")
        for params in (None, {}, {"id": None}, {"id": 1.5}, [1]):
            await shim.say({"jsonrpc": "2.0", "method": "pursers/delivered", "params": params})
        await shim.send(b'{"jsonrpc":"2.0","method":"pursers/delivered"}\n')
        await shim.say({"jsonrpc": "2.0", "id": 1, "method": "pursers/from-the-future", "params": {}})
        await shim.shake_hands()  # the first answer of all


async def test_requests_whose_ids_look_alike_get_their_own_answers(calls: Calls) -> None:
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        for identity in (1, "1", "01"):
            await shim.call(identity, "block", name=repr(identity))
        await until_started(calls, 3)
        calls.go.set()
        answers = [await shim.result() for _ in range(3)]
        assert sorted((repr(identity), result["name"]) for identity, result in answers) == [
            ("'01'", "'01'"),
            ("'1'", "'1'"),
            ("1", "1"),
        ]


async def test_a_cancelled_request_gets_no_answer_and_its_neighbours_do(calls: Calls) -> None:
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        for identity in (1, "1", 2):
            await shim.call(identity, "block", name=repr(identity))
        await until_started(calls, 3)
        for unknown in (3, "01", True, None, "2"):
            await shim.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": unknown}})
        await shim.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "1"}})
        await shim.say({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        assert (await shim.next())["id"] == 9
        calls.go.set()
        assert sorted([(await shim.result())[0] for _ in range(2)]) == [1, 2]
        assert calls.cancelled == ["'1'"]


@pytest.mark.parametrize("collides", [False, True])
async def test_age_and_acknowledgement_follow_the_hosts_id(calls: Calls, collides: bool) -> None:
    talk = conversation()
    talk.resumed_ages = {"7": 4.5}
    async with linked(talk) as shim:
        await shim.shake_hands()
        if collides:
            await shim.call(7, "block", name="same to the SDK")
            await until_started(calls, 1)
        await shim.call("7", "read", name="first")
        assert await shim.result() == ("7", {"name": "first", "age": 4.5})
        await shim.say({"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": 7}})
        await shim.say({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        assert (await shim.next())["id"] == 9
        assert calls.acknowledged == []
        await shim.say({"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": "7"}})
        await shim.call("7", "read", name="second")
        assert await shim.result() == ("7", {"name": "second", "age": 0.0})
        assert calls.acknowledged == ["first"]


async def test_the_end_of_the_socket_ends_the_link_at_once(calls: Calls) -> None:
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.call(1, "block", name="it")
        await until_started(calls, 1)
        await shim.hang_up()
        with anyio.fail_after(PATIENCE):
            await shim.over.wait()
        assert calls.cancelled == ["it"]


async def test_the_farewell_is_the_last_line(calls: Calls) -> None:
    """What is answered by the call's end is for the next link: the shim asks again."""
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.call(1, "block", name="it")
        await until_started(calls, 1)
        await shim.link.close(wire.notification(wire.DRAIN, {"reason": "restart"}))
        assert await shim.next() == {"jsonrpc": "2.0", "method": "pursers/drain", "params": {"reason": "restart"}}
        assert await shim.next() is None
        await shim.link.close()  # twice does not hurt
        await shim.link.tell(b"nobody hears this\n")


DRAIN = {"jsonrpc": "2.0", "method": "pursers/drain", "params": {"reason": "restart", "limit_s": 9.0}}
DRAINED = {"jsonrpc": "2.0", "method": "pursers/drained", "params": {}}


def delivered(identity: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": identity}}


async def test_a_drain_waits_for_the_report_of_what_was_answered(calls: Calls) -> None:
    async with linked(conversation()) as shim, anyio.create_task_group() as tasks:
        await shim.shake_hands()
        await shim.call(1, "read", name="it")
        assert (await shim.result())[0] == 1
        over = anyio.Event()

        async def drain() -> None:
            await shim.link.drain("restart", 9.0)
            over.set()

        tasks.start_soon(drain)
        assert await shim.next() == DRAIN
        await shim.say(DRAINED)
        await anyio.wait_all_tasks_blocked()
        assert not over.is_set()
        await shim.say(delivered(1))
        with anyio.fail_after(PATIENCE):
            await over.wait()
            while shim.link.is_busy:
                await anyio.sleep(0.005)
        assert calls.acknowledged == ["it"]


async def test_an_answer_that_would_have_to_be_acknowledged_is_left_to_the_next_daemon(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DRAIN_TIMEOUT", 0.05)
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.call(1, "block", name="plain")
        await until_started(calls, 1)
        await shim.link.drain("restart", 9.0)
        assert await shim.next() == DRAIN
        assert shim.link.is_busy
        # Two that crossed the news: both are carried out, only the plain one is answered.
        await shim.call(2, "read", name="kept back")
        calls.go.set()
        assert await shim.result() == (1, {"name": "plain"})
        await shim.call(3, "block", name="also plain")
        assert await shim.result() == (3, {"name": "also plain"})
        assert not shim.link.is_busy
        assert calls.acknowledged == []
        await shim.link.close()
        assert await shim.next() is None


async def test_a_wait_that_is_cancelled_hides_no_call_from_a_drain(calls: Calls) -> None:
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.call("w", "wait", name="wait")
        await until_started(calls, 1)
        assert not shim.link.is_busy
        await shim.call("c", "block", name="call")
        await until_started(calls, 2)
        await shim.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}})
        await anyio.wait_all_tasks_blocked()
        assert shim.link.is_busy, "the wait is still ending, and the call is still running"
        calls.let_go.set()
        await anyio.wait_all_tasks_blocked()
        assert shim.link.is_busy
        calls.go.set()
        assert (await shim.result())[0] == "c"
        assert not shim.link.is_busy


async def test_an_answer_that_is_being_sent_keeps_the_link_busy(calls: Calls) -> None:
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.call(1, "much")  # its answer fills the socket
        await until_sending(shim)
        assert shim.link.is_busy
        assert (await shim.result())[0] == 1
        assert not shim.link.is_busy


async def test_nothing_follows_a_line_that_was_given_up(calls: Calls) -> None:
    """An older link is told that it is one; in the middle of a line that would be garbage."""
    talk = conversation()
    async with linked(talk, kind=UNIXSocketStream) as shim:
        await shim.shake_hands()
        await shim.call(1, "much")
        await until_sending(shim)
        shim.link.replace(2)
        await shim.over.wait()
        data = b""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                data += await shim._stream.receive()
        assert b"much" in data
        assert wire.FENCE.encode() not in data
    assert not any(window.count for window in talk.windows.snapshot())


async def test_a_shim_that_does_not_read_cannot_hold_the_end_up(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAIN_TIMEOUT", 0.05)
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.call(1, "much")  # its answer fills the socket
        await until_sending(shim)
        with anyio.fail_after(PATIENCE):
            await shim.link.close(wire.notification(wire.DRAIN, {"reason": "restart"}))
            await shim.over.wait()


async def test_cancellation_ends_the_link(calls: Calls) -> None:
    ours, theirs = socket.socketpair()
    async with await SocketStream.from_socket(ours) as daemon_side, await SocketStream.from_socket(theirs):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Link(daemon_side, wire.Lines(), conversation(), 1).serve, tools.build(), [])
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()


async def test_a_resent_call_that_may_have_changed_something_is_not_begun_again(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resend, "TOOLS", {})
    talk = conversation()
    talk.resumed_ages = {1: 4.5}
    async with linked(talk) as shim:
        await shim.shake_hands()
        await shim.call(1, "read", name="resent")
        result = (await shim.next())["result"]
        failure = result["structuredContent"]["error"]
        assert result["isError"]
        assert (failure["code"], failure["outcome"], failure["tool"]) == ("outcome_unknown", "unknown", "read")
        assert "the daemon that had it was replaced, or the link to it was lost" in result["content"][0]["text"]
        assert "The outcome of read is unknown (LW-CALL): " in result["content"][0]["text"]
        assert [window.counter for window in talk.windows.snapshot() if window.count] == ["calls_unknown_outcome"]
        await shim.call(1, "read", name="new")  # the id may be used again, for another call
        assert await shim.result() == (1, {"name": "new", "age": 0.0})
    assert calls.acknowledged == []
