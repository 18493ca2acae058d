"""event_stream: the daemon's events over its own socket, and what becomes of a reader that does not read."""

import gc
import os
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from pursersd import event_stream, events
from pursersd.api.events import Snapshot, Went
from unit.running_app import Client, RunningApp, running, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def following(client: Client) -> Client:
    """The client, after its snapshot."""
    await client.say({"id": 3, "verb": "events"})
    assert (await told(client))["event"] == "snapshot"
    return client


async def told(client: Client) -> Any:
    """The next event; the shims of these tests cause warnings, which are passed over."""
    while True:
        answer = await client.next()
        assert answer["id"] == 3
        if answer["result"]["event"] != "warning":
            return answer["result"]


async def until_listeners(daemon: RunningApp, count: int) -> None:
    async def reached() -> bool:
        return len(daemon.app._conversations.events._listeners) == count

    await until(reached)


async def test_first_everything_then_what_changes() -> None:
    async with running() as daemon, daemon.control() as client, daemon.shim() as (_, greeting):
        await client.say({"id": 3, "verb": "events"})
        snapshot = await told(client)
        assert (snapshot["event"], snapshot["epoch"], snapshot["schema"]) == ("snapshot", 1, 1)
        assert [row["conversation"] for row in snapshot["seats"]] == [greeting["conversation"]]
        async with daemon.shim() as (shim, other):
            came = await told(client)
            assert (came["event"], came["row"]["conversation"]) == ("came", other["conversation"])
            await shim.shake_hands()
            await shim.request(1, "tools/call", name="project_registry_get", arguments={})
            states = [await told(client) for _ in range(2)]
            assert [(s["before"], s["state"], s["tool"]) for s in states] == [
                ("idle", "working", "project_registry_get"),
                ("working", "idle", "project_registry_get"),
            ]
        assert (await told(client))["state"] == "detached"
        daemon.app._conversations._all[other["conversation"]].end("the test has enough of it")
        went = await told(client)
        assert (went["event"], went["reason"]) == ("went", "the test has enough of it")


async def test_looking_does_not_disturb_other_requests_and_ends_with_the_reader() -> None:
    async with running() as daemon, daemon.control() as asking:
        async with daemon.control() as client:
            await following(client)
            assert (await asking.ask("ping"))["pid"] == os.getpid()
            await until_listeners(daemon, 1)
        await until_listeners(daemon, 0)


async def test_there_are_so_many_readers_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LISTENERS", 1)
    async with running() as daemon, daemon.control() as client, daemon.control() as other:
        await following(client)
        assert (await other.ask("events"))["code"] == "too_many"
        assert await other.next() is None


async def test_a_reader_that_stalls_is_cut_with_the_reason_and_costs_a_bounded_memory() -> None:
    async with running() as daemon, daemon.control() as client:
        await following(client)
        hub = daemon.app._conversations.events
        (listener,) = hub._listeners
        made = 0
        while not listener.is_slow:  # what the socket takes, then what is kept for it
            hub.tell(lambda at: Went(at=at, conversation="c-1", seat="s" * 1000, board=None, host="h", reason="r"))
            made += 1
            assert made < 50_000
            if made % 100 == 0:
                await checkpoint()
        for _ in range(5000):
            hub.tell(lambda at: Went(at=at, conversation="c-1", seat="s" * 1000, board=None, host="h", reason="r"))
        gc.collect()
        assert sum(isinstance(thing, Went) for thing in gc.get_objects()) <= events.MOST + 10
        last = None
        while (answer := await client.next()) is not None:
            last = answer
        assert last["error"]["code"] == "too_slow"
        assert f"more than {events.MOST} changes untaken" in last["error"]["text"]
        await until_listeners(daemon, 0)


async def test_a_reader_that_takes_nothing_of_a_line_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "STALL", 0.05)
    never = anyio.Event()

    async def send(event: object) -> None:
        await never.wait()

    with pytest.raises(event_stream.TooSlow, match=r"took nothing for 0\.05 s") as slow:
        await event_stream.tell(events.Events(), lambda: empty("1"), send)
    assert slow.value.is_torn


async def test_what_does_not_tell_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "LOOK", 0.02)
    looks = iter(range(1, 100))
    seen: list[str] = []
    done = anyio.Event()

    def look() -> Snapshot:
        number = next(looks)
        return empty(str(number), replaced=number > 2)

    async def send(event: object) -> None:
        seen.append(type(event).__name__)
        if len(seen) == 2:
            done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(event_stream.tell, events.Events(), look, send)
        with anyio.fail_after(30):
            await done.wait()
        tasks.cancel_scope.cancel()
    assert seen == ["Snapshot", "WarningChanged"]


def empty(at: str, *, replaced: bool = False) -> Snapshot:
    from pursersd.api import Warning

    found = [Warning(code="central_replaced", since_s=0.0, text="t", action="a")] if replaced else []
    return Snapshot(at=at, version="1", epoch=1, seats=[], centrals=[], warnings=found)
