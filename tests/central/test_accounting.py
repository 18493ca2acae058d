"""Every call to a real Central is charged to whoever caused it, with the bytes that it really has."""

import json
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio import to_thread

from central.feeding import eventually, pool
from central.waiting import Waiting, blocking, make, waiting
from pursersd.central.account import Account, charged_to, cycle_of
from pursersd.errors import CentralError
from pursersd.feed import board as board_module
from pursersd.ids import journal_uri
from pursersd.rules.stats_document import seat_key
from pursersd.state.stats import StatsWriter, StatsWriters
from rig.central import ADMIN_SEAT, Central, free_port
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def writer(tmp_path: Path) -> StatsWriter:
    return StatsWriters(str(tmp_path)).of({}, "/")


def payer(writer: StatsWriter, board: str, agent: str) -> Account:
    return Account(writer, lambda: (board, agent))


def seats(writer: StatsWriter) -> dict[str, dict[str, Any]]:
    """The calls of today by agent."""
    days: list[Any] = list(msgspec.to_builtins(writer.count.document)["days"].values())
    return {seat["agent_name"]: seat for day in days for seat in day["seats"].values()}


def count(writer: StatsWriter, agent: str, tool: str) -> int:
    number: int = seats(writer).get(agent, {}).get("calls", {}).get(tool, {}).get("count", 0)
    return number


def compact(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode())


async def test_bytes_are_those_of_the_compact_result(central: Central, board: str, writer: StatsWriter) -> None:
    await make(central, board, "für ünser “Büro” \u2028 \x7f \\ / 😀")
    arguments: dict[str, Any] = {"board_id": board, "limit": 10}
    async with pool(central.url, central.worker("ann", board)) as ours:
        with charged_to(payer(writer, board, "ann")):
            answer = await ours.pool.read("ticket_list", arguments, generation="for what")
            refused = pytest.raises(CentralError)
            with refused:
                await ours.pool.read("board_state_get", {"board_id": board, "key": "none"})
    calls = seats(writer)["ann"]["calls"]
    sent = {"name": "ticket_list", "arguments": arguments, "meta": {"io.onboard/expected-generation": "for what"}}
    expected = {"count": 1, "request_bytes": compact(sent), "response_bytes": compact(answer)}
    assert calls["ticket_list"] == expected
    assert calls["board_state_get"]["response_bytes"] == compact({"error": "ToolFailed"})


async def test_what_the_feed_reads_for_a_wait_belongs_to_its_account_and_cycle(
    central: Central, board: str, writer: StatsWriter
) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        account = payer(writer, board, "ann")
        with cycle_of(account):
            since = await ann.caught_up()
            async with blocking(ann, since):
                before = count(writer, "ann", "board_catchup"), account.cycle[board, "ann"]
                await make(central, board, "an event")
        assert count(writer, "ann", "board_catchup") > before[0]
        assert account.cycle[board, "ann"] > before[1]
        assert count(writer, "ann", "ticket_get") == 1
        cycles = writer.count.document.poll_cycles[seat_key(board, "ann")]
        assert [sample.response_bytes for sample in cycles.samples] == [account.cycle[board, "ann"]]


async def test_each_call_is_charged_once_also_those_that_several_share(
    central: Central, board: str, writer: StatsWriter
) -> None:
    """Two seats of one credential wait; a broadcast wakes both with one read."""
    async with pool(central.url, central.worker("ann", board)) as ours:
        waits = [Waiting(ours, board, name) for name in ("ann", "bob")]
        requests = ours.pool.counters.requests
        async with anyio.create_task_group() as tasks:
            for wait in waits:
                with cycle_of(payer(writer, board, wait.name)):
                    tasks.start_soon(wait.wait)
            await eventually(lambda: all(wait.is_blocking for wait in waits))
            await make(central, board, "for both")
        charged = sum(tool["count"] for seat in seats(writer).values() for tool in seat["calls"].values())
        assert charged == ours.pool.counters.requests - requests
        assert set(seats(writer)) == {"ann", "bob"}


async def test_the_keepalive_of_a_board_is_charged_to_one_who_waits(
    central: Central, board: str, writer: StatsWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_module, "sweep_pause_s", lambda seats: 0.05)
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        with charged_to(payer(writer, board, "ann")):
            async with blocking(ann, await ann.caught_up()):
                await eventually(lambda: count(writer, "ann", "board_join") >= 3)
                await make(central, board, "enough")


async def test_a_fallback_is_noted_while_the_wait_goes_on(
    central: Central, proxy: Proxy, board: str, writer: StatsWriter
) -> None:
    await to_thread.run_sync(proxy.deny, journal_uri(board))

    def noted() -> list[tuple[str, str, str]]:
        found = writer.count.document.push_unavailable.values()
        return [(entry.board_id, entry.agent_name, entry.reason) for entry in found]

    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        with charged_to(payer(writer, board, "ann")):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ann.wait, await ann.caught_up())
                await eventually(lambda: len(noted()) == 1)
                assert ann.waited is None
                await make(central, board, "the end")
    ((noted_board, agent, reason),) = noted()
    assert (noted_board, agent) == (board, "ann")
    assert "denied" in reason


async def test_a_seat_that_chose_to_poll_lacks_nothing(central: Central, board: str, writer: StatsWriter) -> None:
    options = {"environ": {"PURSERS_WAIT_MODE": "poll"}}
    async with waiting(central.url, central.worker("ann", board), board, **options) as ann:
        with charged_to(payer(writer, board, "ann")):
            assert (await ann.wait(await ann.caught_up(), 1))["mode"] == "poll"
    assert writer.count.document.push_unavailable == {}


@pytest.mark.parametrize(
    ("what", "given", "past_setup"),
    [
        ("a timeout", {}, True),
        ("a name that Central refuses", {"agent_name": "no such name"}, True),
        ("boards of which none lets us in", {"boards": ["nobody-knows-it"]}, True),
        ("Central is down", {}, False),
        ("the credential is unknown", {}, False),
        ("the home board is unknown", {}, False),
    ],
)
async def test_results_count_from_the_first_seat_on(
    central: Central, board: str, what: str, given: dict[str, Any], past_setup: bool
) -> None:
    url, token, home = central.url, central.worker("ann", board), board
    if what == "Central is down":
        url = f"http://127.0.0.1:{free_port()}/mcp"
    elif what == "the credential is unknown":
        token = "nobody's"
    elif what == "the home board is unknown":
        home = "nobody-knows-it"
    async with waiting(url, token, home) as ann:
        result = await ann.wait(0, 1, **given)
    assert ("error" in result) is (what != "a timeout")
    assert ann.waited is not None
    assert ann.waited.past_setup is past_setup


async def test_a_board_that_is_lost_during_the_wait_counts(central: Central, board: str) -> None:
    def expel() -> None:
        gone = {"agent_name": ADMIN_SEAT, "principal_id": central.principal_id("ann")}
        central.call(central.admin, "board_member_remove", board_id=board, **gone)

    async with waiting(central.url, central.worker("ann", board), board) as ann:
        async with blocking(ann, await ann.caught_up()) as results:
            await to_thread.run_sync(expel)
            await make(central, board, "what it may not read any more")
        assert results[0]["mode"] == "error"
        assert ann.waited is not None
        assert ann.waited.past_setup
