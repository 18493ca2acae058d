"""Two conversations on one seat: work wakes one of them, news of work in hand wakes both (design: shared seats)."""

from rig.central import Central
from rig.daemon import Home
from rig.shim import Pending, ShimProcess
from rig.wait import until

AGENT = "shared"


def conversations(home: Home, central: Central, board: str) -> list[ShimProcess]:
    token = central.worker("ann", board)
    found = [home.shim(home.environment(url=central.url, token=token, board=board, agent=AGENT)) for _ in range(2)]
    for shim in found:
        shim.initialize()
    return found


def wait(shim: ShimProcess, since_seq: int | None, timeout_s: int = 20) -> Pending:
    arguments = {"timeout_s": timeout_s} if since_seq is None else {"timeout_s": timeout_s, "since_seq": since_seq}
    return shim.start_tool("a2a_wait", arguments)


def both_waiting(home: Home) -> bool:
    rows = home.ps()
    return [row["state"] for row in rows] == ["waiting"] * 2 and all(row["shared_by"] == 2 for row in rows)


def test_a_new_ticket_wakes_the_one_that_waits_longest(central: Central, home: Home, board: str) -> None:
    first, second = conversations(home, central, board)
    heads = [wait(shim, None, 1).result()["new_seq"] for shim in (first, second)]
    early = wait(first, heads[0])
    until(lambda: any(row["state"] == "waiting" for row in home.ps()), message="the first waits")
    late = wait(second, heads[1], timeout_s=4)
    until(lambda: both_waiting(home), message="both wait on one seat")
    ticket = central.create_ticket(board, "for one of you")
    assert [event["ticket_id"] for event in early.result()["events"]] == [ticket]
    slept = late.result()
    assert slept["timed_out"]
    # It is still open, so the next entry tells the other, too.
    assert [event["ticket_id"] for event in wait(second, slept["new_seq"]).result()["events"]] == [ticket]


def test_news_of_a_held_ticket_wake_both(central: Central, home: Home, board: str) -> None:
    token = central.worker("ann", board)
    first, second = conversations(home, central, board)
    ticket = central.create_ticket(board, "in hand")
    central.call(token, "board_join", board_id=board, agent_name=AGENT, role="worker", allow_takeover=True)
    central.call(token, "ticket_claim", board_id=board, agent_name=AGENT, ticket_id=ticket)
    heads = [wait(shim, None, 1).result()["new_seq"] for shim in (first, second)]
    waits = [wait(shim, head) for shim, head in zip((first, second), heads, strict=True)]
    until(lambda: both_waiting(home), message="both wait on one seat")
    central.call(
        central.admin, "ticket_annotate", board_id=board, agent_name="boss", ticket_id=ticket, text="look here"
    )
    for answer in waits:
        (event,) = answer.result()["events"]
        assert (event["kind"], event["reason"]) == ("ticket_annotated", "held_ticket_update")
