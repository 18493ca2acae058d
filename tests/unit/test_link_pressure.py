"""conversation/link under pressure: too much at once, nobody who reads, and cancellations that cross their answers."""

import random
import socket

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import UNIXSocketStream

from pursersd.conversation import bounds, outlet
from pursersd.conversation.requests import Requests
from pursersd.ids import RequestId
from pursersd.rules import resend
from pursersd.rules.resend import Resend, Tool
from pursersd.tools import server as tools
from unit.linked import CLASSES, PATIENCE, Calls, Shim, conversation, linked, until_started

pytestmark = pytest.mark.anyio

CANCELLED = "notifications/cancelled"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()
    monkeypatch.setattr(tools, "TOOLS", calls.tools())
    monkeypatch.setattr(resend, "TOOLS", CLASSES)
    return calls


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> set[RequestId]:
    """The requests of whose cancellation a link knows."""
    taken: set[RequestId] = set()
    cancelled = Requests.cancelled

    def note(self: Requests, host: RequestId) -> None:
        cancelled(self, host)
        taken.add(host)

    monkeypatch.setattr(Requests, "cancelled", note)
    return taken


def a_call(identity: object, tool: str, **arguments: object) -> dict[str, object]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params}


def a_cancel(identity: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": identity}}


def a_ping(identity: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": identity, "method": "ping"}


async def until_idle(shim: Shim) -> None:
    """Until the link has no request in progress."""
    with anyio.fail_after(PATIENCE):
        while len(shim.link._ids):
            await anyio.sleep(0.002)


async def until_taken(taken: set[RequestId], cancelled: int) -> None:
    """Until the link knows of the cancellation, and thus of the request, which came before it."""
    with anyio.fail_after(PATIENCE):
        while cancelled not in taken:
            await anyio.lowlevel.checkpoint()


# --- too much at once -------------------------------------------------------------------------------------------------


async def test_a_call_too_many_is_refused_in_words_and_a_later_one_works(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "REQUESTS", 3)
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.say(*(a_call(number, "block", name=str(number)) for number in range(1, 6)), a_ping("p"))
        refused = [await shim.next() for _ in range(3)]
        assert [answer["id"] for answer in refused] == [4, 5, "p"]
        failure = refused[0]["result"]["structuredContent"]["error"]
        assert refused[0]["result"]["isError"]
        assert (failure["code"], failure["outcome"], failure["retryable"]) == ("queue_full", "not_sent", True)
        assert failure["message"] == refused[0]["result"]["content"][0]["text"]
        assert "as many calls in progress as it may" in failure["message"]
        assert "resultType" not in refused[0]["result"]
        assert refused[2]["error"]["code"] == bounds.TOO_MANY
        await shim.say(a_cancel(1))  # a cancellation always gets through
        await until_cancelled(calls, 1)
        calls.go.set()
        assert sorted([(await shim.result())[0] for _ in range(2)]) == [2, 3]
        await shim.call(4, "read", name="again")
        assert (await shim.result())[0] == 4
        await until_idle(shim)
    assert calls.started == ["1", "2", "3"]


async def until_cancelled(calls: Calls, count: int) -> None:
    with anyio.fail_after(PATIENCE):
        while len(calls.cancelled) < count:
            await anyio.sleep(0.002)


async def test_many_bytes_at_once_are_refused_as_well(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SIZE", 100_000)
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.say(a_call(1, "block", name="x" * 120_000), a_call(2, "read", name="y"))
        answer = await shim.next()
        assert answer["id"] == 2
        assert answer["result"]["structuredContent"]["error"]["code"] == "queue_full"
        calls.go.set()
        assert (await shim.result())[0] == 1
        await until_idle(shim)
        assert shim.link._ids.size == 0


async def test_the_refusal_speaks_the_era_of_its_request(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "REQUESTS", 0)
    envelope = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    async with linked(conversation()) as shim:
        params = {"name": "read", "arguments": {}, "_meta": envelope}
        await shim.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert (await shim.next())["result"]["resultType"] == "complete"


@pytest.mark.parametrize(
    ("kind", "code", "outcome"),
    [(Resend.READ, "queue_full", "not_sent"), (Resend.KEYED, "outcome_unknown", "unknown")],
)
async def test_a_resent_call_without_room_may_have_been_carried_out(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, kind: Resend, code: str, outcome: str
) -> None:
    monkeypatch.setattr(bounds, "REQUESTS", 1)
    monkeypatch.setattr(resend, "TOOLS", {**CLASSES, "read": Tool(kind, "of a test", ("name",), "Look there.")})
    talk = conversation()
    talk.resumed_ages = {2: 1.0}
    async with linked(talk) as shim:
        await shim.shake_hands()
        await shim.say(a_call(1, "block", name="it"), a_call(2, "read", name="resent"))
        failure = (await shim.next())["result"]["structuredContent"]["error"]
        assert (failure["code"], failure["outcome"]) == (code, outcome)
        if outcome == "unknown":
            assert (failure["tool"], failure["target"], failure["action"]) == (
                "read",
                {"name": "resent"},
                "Look there.",
            )
            assert failure["message"].startswith('The outcome of read on {"name": "resent"} is unknown (LW-CALL): ')
            assert failure["message"].endswith(" Look there.")
        counted = [window.counter for window in talk.windows.snapshot() if window.count]
        assert counted == (["calls_unknown_outcome"] if outcome == "unknown" else [])


async def test_thousands_of_lines_at_once_are_all_answered(calls: Calls) -> None:
    count = 2_000
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        answered: list[int] = []
        refused = 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shim.say, *(a_call(number, "block", name="x") for number in range(count)))
            while len(answered) < count:
                answer = await shim.next()
                answered.append(answer["id"])
                refused += bool(answer["result"].get("isError"))
                if len(answered) == count - bounds.REQUESTS:
                    calls.go.set()
        assert sorted(answered) == list(range(count))
        assert refused == count - bounds.REQUESTS
        assert len(calls.started) == bounds.REQUESTS


# --- nobody who reads -------------------------------------------------------------------------------------------------


async def test_a_shim_that_takes_nothing_is_cut_and_the_reason_is_kept(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outlet, "STALL", 0.05)
    talk = conversation()
    async with linked(talk) as shim:
        await shim.shake_hands()
        await shim.call(1, "much")
        with anyio.fail_after(PATIENCE):
            await shim.over.wait()
    assert talk.cut_reason == "its shim took nothing for 0.05 s"
    assert "link 1 is cut: its shim took nothing" in caplog.text
    assert [window.counter for window in talk.windows.snapshot() if window.count] == ["links_cut"]


async def test_nothing_is_sent_after_a_line_that_was_given_up_in_the_middle() -> None:
    ours, theirs = socket.socketpair()
    async with await UNIXSocketStream.from_socket(ours) as sends, await UNIXSocketStream.from_socket(theirs) as takes:
        out = outlet.Outlet(sends)
        await out.send(b"whole\n")
        with anyio.move_on_after(0.01):
            await out.send(b"x" * 2_000_000)
        assert out.is_torn
        assert (await takes.receive(6)) == b"whole\n"
        with pytest.raises(outlet.Stalled, match="whole line"):
            await out.send(b"next\n")


async def test_whoever_gives_up_while_another_line_is_on_its_way_tears_nothing() -> None:
    ours, theirs = socket.socketpair()
    async with (
        await UNIXSocketStream.from_socket(ours) as sends,
        await UNIXSocketStream.from_socket(theirs) as takes,
        anyio.create_task_group() as tasks,
    ):
        out = outlet.Outlet(sends)
        tasks.start_soon(out.send, b"x" * 2_000_000)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0.01):
            await out.send(b"next\n")
        assert not out.is_torn
        taken = 0
        while taken < 2_000_000:
            taken += len(await takes.receive())
        await out.send(b"last\n")
        assert await takes.receive() == b"last\n"


async def test_a_shim_that_takes_little_at_a_time_is_not_cut(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "STALL", 1.0)
    monkeypatch.setattr(outlet, "PIECE", 1000)
    talk = conversation()
    async with linked(talk) as shim:
        await shim.shake_hands()
        await shim.call(1, "much")
        while not shim._ready:
            shim._ready += [line for line in shim._lines.feed(await shim._stream.receive(20_000)) if line]
            await anyio.sleep(0.001)
    assert talk.cut_reason is None


# --- cancellations that cross their answers ---------------------------------------------------------------------------


async def test_an_answer_that_was_on_its_way_when_its_request_was_cancelled_goes_nowhere(calls: Calls) -> None:
    """And a later request with the same id gets its own answer, not that one."""
    talk = conversation()
    async with linked(talk) as shim:
        await shim.shake_hands()
        await shim.call("big", "much")  # its answer fills the socket; those of the others wait behind it
        for name in ("cancelled", "kept"):
            await shim.call(name, "read", name=name)
        await anyio.wait_all_tasks_blocked()
        await shim.say(a_cancel("cancelled"), a_call("cancelled", "read", name="the later one"))
        await anyio.wait_all_tasks_blocked()
        answers = [await shim.next() for _ in range(3)]
        assert sorted(answer["id"] for answer in answers) == ["big", "cancelled", "kept"]
        named = {a["id"]: a["result"]["structuredContent"].get("name") for a in answers}
        assert named["cancelled"] == "the later one"
        await shim.say(a_ping("end"))
        assert (await shim.next())["id"] == "end"
        await shim.say({"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": "cancelled"}})
        await until_idle(shim)
        with anyio.fail_after(PATIENCE):
            while not calls.acknowledged:
                await anyio.sleep(0.002)
    assert calls.acknowledged == ["the later one"]


ON_THE_WAY = 3  # answers of 5 kB that a socket without room holds at most, one of them in part


@pytest.mark.parametrize("seed", range(8))
async def test_cancel_and_result_have_one_winner(calls: Calls, taken: set[RequestId], seed: int) -> None:
    """Requests, cancellations and reads in random order: what is cancelled before its answer is sent gets none, and no
    other one goes without."""
    dice = random.Random(seed)
    async with linked(conversation(), room=1) as shim:
        await shim.shake_hands()
        answered: list[int] = []
        too_late: dict[int, int] = {}
        """From which answer on one to this id comes too late."""

        async def take() -> None:
            number = (await shim.next())["id"]
            assert len(answered) < too_late.get(number, 1000), f"{number} was cancelled"
            answered.append(number)

        open_calls: list[int] = []
        for number in range(1, 61):
            await shim.call(number, dice.choice(["read", "read", "block"]), name=str(number) + "x" * 5000)
            open_calls.append(number)
            for _ in range(dice.randrange(5)):
                await anyio.lowlevel.checkpoint()
            if dice.random() < 0.5:
                victim = open_calls.pop(dice.randrange(len(open_calls)))
                await shim.say(a_cancel(victim))
                await until_taken(taken, victim)
                too_late[victim] = len(answered) + ON_THE_WAY
        calls.go.set()
        while not set(open_calls) <= set(answered):
            await take()
        await until_idle(shim)
        assert len(answered) == len(set(answered))
        assert len(answered) < 60


async def test_the_link_counts_requests_down_to_none(calls: Calls) -> None:
    async with linked(conversation()) as shim:
        await shim.shake_hands()
        await shim.say({"jsonrpc": "2.0", "id": 1, "method": "no/such/method"})
        await shim.say(a_call(2, "no_such_tool"), a_call(3, "block"), a_ping(4))
        for _ in range(4):
            await shim.next()
        await shim.call(5, "block", name="x")
        await until_started(calls, 1)
        await shim.say(a_cancel(5))
        await until_idle(shim)
