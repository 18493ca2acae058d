"""central/account: who pays for a call, and what for."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint

from pursersd.central.account import Account, Charge, charged_to, current, cycle_of
from pursersd.errors import ToolFailed
from pursersd.state.stats import StatsWriter, StatsWriters

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def writer(tmp_path: Path) -> StatsWriter:
    return StatsWriters(str(tmp_path)).of({}, "/")


def payer(writer: StatsWriter, board: str, agent: str) -> Account:
    return Account(writer, lambda: (board, agent))


def counted(writer: StatsWriter) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(writer.count.document)
    return found


def calls(writer: StatsWriter) -> dict[tuple[str, str, str], tuple[int, int, int]]:
    """By board, agent and tool: count, bytes of requests, bytes of answers."""
    return {
        (seat["board_id"], seat["agent_name"], tool): (of["count"], of["request_bytes"], of["response_bytes"])
        for day in counted(writer)["days"].values()
        for seat in day["seats"].values()
        for tool, of in seat["calls"].items()
    }


def call(tool: str = "ticket_list", answer: int = 7, **arguments: object) -> None:
    with Charge(tool, arguments, None) as charge:
        charge.answered(b"x" * answer, {})


async def test_a_call_is_charged_to_the_seat_that_it_names_or_else_to_the_account(writer: StatsWriter) -> None:
    with charged_to(payer(writer, "home", "ann")):
        call(x=1)
        call(board_id="b", agent_name="bob")
        call(board_id="b")
    sent = len('{"name":"ticket_list","arguments":{"board_id":"b","agent_name":"bob"}}')
    assert calls(writer)["home", "ann", "ticket_list"] == (1, len('{"name":"ticket_list","arguments":{"x":1}}'), 7)
    assert calls(writer)["b", "bob", "ticket_list"] == (1, sent, 7)
    assert calls(writer)["b", "ann", "ticket_list"][0] == 1


async def test_a_failed_call_counts_with_the_name_of_its_error(writer: StatsWriter) -> None:
    account = payer(writer, "b", "ann")
    with charged_to(account), pytest.raises(ToolFailed), Charge("t", {}, None):
        raise ToolFailed("t", "no")
    with charged_to(account), anyio.CancelScope() as scope, Charge("u", {}, None):
        scope.cancel()
        await anyio.sleep_forever()
    assert calls(writer)["b", "ann", "t"][2] == len('{"error":"ToolFailed"}')
    assert calls(writer)["b", "ann", "u"][2] == len('{"error":"CancelledError"}')


async def test_an_answer_that_cannot_be_understood_is_a_failed_call(writer: StatsWriter) -> None:
    with charged_to(payer(writer, "b", "ann")), suppress(ValueError), Charge("t", {}, None) as charge:
        charge.answered(b"{}", {})
        raise ValueError
    assert calls(writer)["b", "ann", "t"][2] == len('{"error":"ValueError"}')


async def test_escapes_count_as_the_letters_that_they_stand_for(writer: StatsWriter) -> None:
    with charged_to(payer(writer, "b", "ann")), Charge("t", {}, None) as charge:
        charge.answered(b'{"a":"\\u00fc\\ud83d\\ude00\\n"}', {"a": "ü😀\n"})
    assert calls(writer)["b", "ann", "t"][2] == len('{"a":"ü😀\\n"}'.encode())


async def test_without_an_account_nothing_is_counted() -> None:
    assert current() is None
    call()
    with charged_to(None):
        call()


async def test_the_account_is_that_of_the_task_and_of_those_that_it_starts(writer: StatsWriter) -> None:
    started = anyio.Event()

    async def other() -> None:
        with charged_to(payer(writer, "b", "bob")):
            started.set()
            await checkpoint()
            call()

    async with anyio.create_task_group() as tasks:
        with charged_to(payer(writer, "b", "ann")):
            tasks.start_soon(other)
            await started.wait()
            call()

            async def child() -> None:
                call("of_a_child")

            tasks.start_soon(child)
        assert current() is None
    assert sorted(calls(writer)) == [
        ("b", "ann", "of_a_child"),
        ("b", "ann", "ticket_list"),
        ("b", "bob", "ticket_list"),
    ]


async def test_a_cycle_is_what_context_reads_brought_however_the_wait_ends(writer: StatsWriter) -> None:
    with suppress(ValueError), cycle_of(payer(writer, "b", "ann")):
        call("board_catchup", 10)
        call("board_catchup", 5)
        call("ticket_list", 100)
        call("board_snapshot", 3, board_id="c", agent_name="bob")
        raise ValueError
    found = [
        (seat["board_id"], seat["agent_name"], seat["latest_response_bytes"], len(seat["samples"]))
        for seat in counted(writer)["poll_cycles"].values()
    ]
    assert sorted(found) == [("b", "ann", 15, 1), ("c", "bob", 3, 1)]


async def test_a_wait_without_context_reads_is_no_cycle(writer: StatsWriter) -> None:
    with cycle_of(payer(writer, "b", "ann")):
        call("ticket_list", 100)
    with cycle_of(None):
        call("board_catchup", 100)
    assert counted(writer)["poll_cycles"] == {}


async def test_a_result_is_counted_as_what_it_is(writer: StatsWriter) -> None:
    account = payer(writer, "b", "ann")
    result: dict[str, object] = {"events": [{"title": "é"}], "timed_out": False, "mode": "push", "reason": "journal"}
    account.polled("b", "denied")
    account.polled("c", "denied, too")
    account.returned(result)
    account.returned({"timed_out": True})
    (seat,) = counted(writer)["model_wait"].values()
    size = len('{"events":[{"title":"é"}],"timed_out":false,"mode":"push","reason":"journal"}'.encode())
    assert [{**one, "at": ""} for one in seat["returns"]] == [
        {"at": "", "response_bytes": size, "outcome": "cue", "mode": "push", "reason": "journal"},
        {"at": "", "response_bytes": 18, "outcome": "timeout", "mode": "unknown", "reason": "timeout"},
    ]
    (hour,) = seat["hours"].values()
    assert hour == {"returns": 2, "response_bytes": size + 18, "outcomes": {"cue": 1, "timeout": 1}}
    assert [(e["board_id"], e["reason"]) for e in counted(writer)["push_unavailable"].values()] == [
        ("c", "denied, too")
    ]


async def test_a_failed_wait_is_noted_for_each_board_that_wanted_push(writer: StatsWriter) -> None:
    error = {"code": "push_unavailable", "cause_class": "transport"}
    account = payer(writer, "b", "ann")
    account.returned({"error": error, "mode": "error", "mode_by_board": {"b": "error", "c": "error"}})
    noted = counted(writer)["push_unavailable"].values()
    assert [(entry["board_id"], entry["agent_name"], entry["reason"]) for entry in noted] == [
        ("b", "ann", "push_unavailable:transport"),
        ("c", "ann", "push_unavailable:transport"),
    ]
