"""Request ids of a real conversation: of two types, in use, unknown, cancelled; and nobody else notices."""

from collections.abc import Iterator

import pytest

from rig.central import Central
from rig.shim import ShimProcess
from rig.wait import until
from system.scene import PATIENCE, WAIT_S, Bystander, Json, rows


@pytest.fixture
def shim(central: Central, board: str, bystander: Bystander) -> Iterator[ShimProcess]:
    """A conversation with a seat, in the bystander's daemon."""
    home = bystander.home
    with home.shim(home.environment(central.url, central.worker("ann", board), board, "ids")) as shim:
        shim.initialize()
        yield shim


def say_wait(shim: ShimProcess, number: object, **arguments: object) -> None:
    params = {"name": "a2a_wait", "arguments": {"timeout_s": WAIT_S, **arguments}}
    shim.say({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def until_waiting(shim: ShimProcess, bystander: Bystander) -> None:
    def waits() -> bool:
        return any(row["state"] == "waiting" and row["shim_pid"] == shim.pid for row in rows(bystander.home))

    until(waits, PATIENCE, "the conversation waits")


def result(shim: ShimProcess, number: object) -> Json:
    """The one result of the wait with this id."""
    until(lambda: shim.answers(number), PATIENCE, f"an answer to {number!r}")
    [answer] = shim.answers(number)
    structured: Json = answer["result"]["structuredContent"]
    return structured


def tickets(result: Json) -> list[str]:
    return [event["ticket_id"] for event in result["events"]]


def test_1_and_the_text_1_are_two_requests_and_each_gets_its_own_answer(
    central: Central, board: str, shim: ShimProcess, bystander: Bystander
) -> None:
    say_wait(shim, 901)
    say_wait(shim, "901", timeout_s=1)
    assert result(shim, "901")["timed_out"] is True
    assert shim.answers(901) == []
    until_waiting(shim, bystander)
    ticket = central.create_ticket(board, "for the number")
    assert tickets(result(shim, 901)) == [ticket]
    assert len(shim.answers("901")) == 1


def test_cancelling_the_number_1_leaves_the_text_1_and_the_other_way_round(
    central: Central, board: str, shim: ShimProcess, bystander: Bystander
) -> None:
    """Whichever of the two came first."""
    cancelled, kept = [902, "903", "904", 905], ["902", 903, 904, "905"]
    for number in (902, "902", "903", 903, 904, "904", "905", 905):
        say_wait(shim, number)
    until_waiting(shim, bystander)
    for number in cancelled:
        shim.cancel(number)
    assert shim.request("ping") == {}
    ticket = central.create_ticket(board, "for those that were not cancelled")
    for number in kept:
        assert tickets(result(shim, number)) == [ticket]
    assert shim.request("ping") == {}
    assert [shim.answers(number) for number in cancelled] == [[]] * 4


def test_an_id_that_is_in_use_is_refused_and_its_first_request_is_answered(
    central: Central, board: str, shim: ShimProcess, bystander: Bystander
) -> None:
    say_wait(shim, "x")
    until_waiting(shim, bystander)
    shim.say({"jsonrpc": "2.0", "id": "x", "method": "tools/list"})
    until(lambda: shim.answers(None), PATIENCE, "a refusal")
    [refusal] = shim.answers(None)
    assert "Use a new id" in refusal["error"]["message"]
    ticket = central.create_ticket(board, "for the first x")
    assert tickets(result(shim, "x")) == [ticket]
    shim.say({"jsonrpc": "2.0", "id": "x", "method": "ping"})  # free again
    until(lambda: len(shim.answers("x")) == 2, PATIENCE, "the id can be used again")


@pytest.mark.parametrize("number", [424242, "nobody", "1", None, True, 1.5, {}], ids=repr)
def test_cancelling_what_does_not_exist_is_nothing(shim: ShimProcess, number: object) -> None:
    before = len(shim.received)
    shim.cancel(number)
    shim.notify("notifications/cancelled", {})
    shim.notify("notifications/cancelled")
    assert shim.request("ping") == {}
    assert len(shim.received) == before + 1
    assert shim.rubbish == []


def test_cancelling_the_id_of_a_call_of_another_conversation_is_nothing(
    shim: ShimProcess, bystander: Bystander
) -> None:
    shim.cancel(bystander.wait_id)
    assert shim.request("ping") == {}
