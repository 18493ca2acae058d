"""a2a_wait under names for one call, with capabilities, on the registry's boards: what Central is asked for, who is told."""

import json
from typing import Any

import pytest
from anyio import to_thread

from central.feeding import eventually, pool
from central.waiting import Waiting, blocking, make, tickets, waiting
from pursersd.feed import board as board_module
from rig.central import ADMIN_SEAT, WORKER_SCOPE, Central
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio

OWN, NAME = "session-a", "session-a-2"
"""A conversation's seat, and one that its name is the beginning of."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def cursor_of(central: Central, token: str, board: str, name: str) -> int:
    page = central.call(token, "board_catchup", board_id=board, agent_name=name, cursor=0, limit=1, touch=False)
    return int(page["acknowledged_cursor"])


async def test_a_name_for_one_call_is_a_seat_of_its_own(central: Central, board: str) -> None:
    token = central.worker("ann", board)
    async with waiting(central.url, token, board, OWN) as own:
        work = await make(central, board, "for the name alone")
        assert tickets(await own.wait(agent_name=NAME)) == [work]
        await own.acknowledge()
        await to_thread.run_sync(
            lambda: central.call(token, "ticket_claim", board_id=board, agent_name=NAME, ticket_id=work)
        )
        head = await own.caught_up()
        note = {"ticket_id": work, "text": "look", "agent_name": ADMIN_SEAT}
        async with blocking(own, head, agent_name=NAME) as named:
            await to_thread.run_sync(lambda: central.call(central.admin, "ticket_annotate", board_id=board, **note))
        assert [event["kind"] for event in named[0]["events"]] == ["ticket_annotated"]
        # The conversation's own seat is not even on the board yet; then it has a cursor of its own, and no work in hand.
        assert (await own.wait(head, 1))["timed_out"]
        assert cursor_of(central, token, board, OWN) == 0
        assert cursor_of(central, token, board, NAME) > 0


async def test_names_that_begin_alike_are_told_apart_while_they_wait(central: Central, board: str) -> None:
    token = central.worker("ann", board)
    async with pool(central.url, token) as ours:
        own, other = Waiting(ours, board, OWN), Waiting(ours, board, "elsewhere")
        await own.wait(0, 1)
        await other.wait(0, 1, agent_name=NAME)
        head = await own.caught_up()
        async with blocking(own, head) as mine, blocking(other, head, agent_name=NAME) as named:
            create = {"agent_name": ADMIN_SEAT, "title": "work", "assigned_to": NAME, "ticket_id": "T-named"}
            await to_thread.run_sync(lambda: central.call(central.admin, "ticket_create", board_id=board, **create))
            await eventually(lambda: named)
            assert not mine
            create |= {"assigned_to": OWN, "ticket_id": "T-own"}
            await to_thread.run_sync(lambda: central.call(central.admin, "ticket_create", board_id=board, **create))
        assert (tickets(named[0]), tickets(mine[0])) == (["T-named"], ["T-own"])


async def test_a_name_that_handed_off_joins_once_at_its_next_call(central: Central, proxy: Proxy, board: str) -> None:
    token = central.worker("ann", board)

    def joins(since: int) -> list[str]:
        return [seen.arguments["agent_name"] for seen in proxy.seen("board_join", since)]

    async with waiting(proxy.url, token, board, OWN) as own:
        await own.wait(0, 1, agent_name=NAME)
        await to_thread.run_sync(
            lambda: central.call(
                token, "memory_handoff", board_id=board, agent_name=NAME, summary="done", next_steps=["x"]
            )
        )
        ticket = await make(central, board, "while it was gone")
        mark, head = proxy.mark(), 0
        for _ in range(2):
            result = await own.wait(head, 1, agent_name=NAME)
            head = result["new_seq"]
        assert joins(mark) == [NAME]
        async with blocking(own, head, agent_name=NAME) as results:
            ticket = await make(central, board, "now that it is back")
        assert tickets(results[0]) == [ticket]


@pytest.mark.parametrize("how", ["hands off", "is retired"])
async def test_a_name_that_leaves_in_the_middle_of_its_wait_joins_and_is_told_what_comes(
    central: Central, proxy: Proxy, board: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of being retired it is cued; a handoff of its own is noticed with the next sweep."""
    if how == "hands off":
        monkeypatch.setattr(board_module, "SWEEP", 0.5)
    token = central.worker("ann", board)

    def leave() -> None:
        if how == "hands off":
            handoff = {"summary": "done", "next_steps": ["x"]}
            central.call(token, "memory_handoff", board_id=board, agent_name=NAME, **handoff)
        else:
            central.call(token, "agent_retire", board_id=board, agent_name=NAME)

    async with waiting(proxy.url, token, board, OWN) as own:
        await own.wait(0, 1)
        head = await own.caught_up()
        async with blocking(own, head, 60, agent_name=NAME) as results:
            mark = proxy.mark()
            await to_thread.run_sync(leave)
            await eventually(lambda: proxy.seen("board_join", mark))
            await eventually(lambda: own.central.feed.boards[board].is_quiet)
            ticket = await make(central, board, "now that it is back")
        assert tickets(results[0]) == [ticket]
        joined = [seen.arguments["agent_name"] for seen in proxy.seen("board_join", mark)]
        assert set(joined) == {NAME}
        assert how == "hands off" or len(joined) == 1


async def test_capabilities_are_declared_with_every_join_and_stay(central: Central, proxy: Proxy, board: str) -> None:
    token = central.worker("ann", board)
    declared = (("can_work", True), ("tier_max", 3))

    def capabilities() -> Any:
        agents = central.call(token, "board_status", board_id=board)["agents"]
        found = next(agent for agent in agents if agent["agent_name"] == OWN)
        return found["capabilities_explicit"], found["capabilities"]["tier_max"]

    async with waiting(proxy.url, token, board, OWN, capabilities=declared) as own:
        head = await own.caught_up()
        async with blocking(own, head, 60) as results:
            reconnects = own.central.feed.journals.reconnects
            await to_thread.run_sync(proxy.reset_all)
            await eventually(lambda: own.central.feed.journals.reconnects > reconnects and own.is_blocking)
            assert await to_thread.run_sync(capabilities) == (True, 3)
            await own.central.seats.keepalive(own.boards[0].waiter.seat)
            assert await to_thread.run_sync(capabilities) == (True, 3)
            await make(central, board, "work")
        assert results
        assert [seen.arguments["capabilities"] for seen in proxy.seen("board_join")] == [dict(declared)] * 2


async def test_the_registry_is_read_once_a_call(central: Central, proxy: Proxy, board: str) -> None:
    other = f"{board}-other"
    central.create_board(other, {"ann": "member"})
    projects = {name: {"board_id": name, "work_dir": f"/srv/{name}", "status": "active"} for name in (board, other)}
    value = json.dumps({"schema_version": 1, "projects": projects})
    central.call(
        central.admin, "board_state_update", board_id=board, agent_name=ADMIN_SEAT, key="project_registry", value=value
    )
    central.admit(board, "ann")
    async with waiting(proxy.url, central.mint("ann", WORKER_SCOPE), board) as ann:
        async with blocking(ann, 0, 2, boards="registry") as results:
            await make(central, other, "of no project: no seat may claim it, and the wait goes on")
        assert (results[0]["timed_out"], set(results[0]["mode_by_board"])) == (True, {board, other})
        assert proxy.count("board_state_get") == 1
