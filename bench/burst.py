"""A thousand events as fast as Central takes them, while fifty conversations take what came and wait again.

Spread over boards: Central writes a board's whole document on each change, so that on one board the thousandth event
costs several times what the first did, and the burst would measure that.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from bench import starts
from bench.crowd import FIRST_ANSWER
from bench.programs import OURS
from bench.scale import SUBJECT, Links, Say
from rig.central import ADMIN_SEAT, WORKER_SCOPE, Central, ticket_fields
from rig.daemon import Home
from rig.plain import PlainClient
from rig.proxy import Proxy

BOARDS = tuple(f"burst-{number}" for number in range(5))
CALLERS = 50
EVENTS = 1000
CREATORS = 2
WAIT_S = 50  # what each a2a_wait is asked for
LIMIT_S = 150.0  # seconds after which a caller that has not seen all gives up

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Burst:
    """What the burst showed."""

    events: int
    callers: int
    boards: int
    created_s: float
    """Until the last event was created."""
    seen_s: float
    """Until the last caller had seen the last event of its board."""
    requests: int
    """To Central, by the daemon, in all."""
    whole: int
    """Callers that were told every event of their board, each once and in order."""


def measure(say: Say) -> Burst:
    """Run once, on a Central of its own. Everything that was started has ended when this returns or raises."""
    with Central() as central, Proxy(central.port) as proxy, Home() as home, ExitStack() as stack:
        for board in BOARDS:
            central.create_board(board, {SUBJECT: "member"})
        starts.warm(home)
        token = central.mint(SUBJECT, WORKER_SCOPE)  # one credential for all boards, so one pool
        groups = {board: Links(OURS, proxy, board) for board in BOARDS}
        say("entering the waits")
        for links in groups.values():
            links.open(home, token, CALLERS // len(BOARDS), stack)
            links.arm(WAIT_S)
        say(f"{EVENTS} events")
        return _burst(groups, central, proxy)


def is_whole(events: Sequence[Event], created: set[str]) -> bool:
    """Whether the events tell each ticket exactly once, in the order of the journal."""
    seqs = [event["seq"] for event in events]
    tickets = [event["ticket_id"] for event in events]
    return seqs == sorted(set(seqs)) and len(tickets) == len(created) and set(tickets) == created


def _burst(groups: dict[str, Links], central: Central, proxy: Proxy) -> Burst:
    before, began = proxy.mark(), time.perf_counter()
    callers = [(links, number) for links in groups.values() for number in range(len(links.speakers))]
    with ThreadPoolExecutor(len(callers)) as following, ThreadPoolExecutor(CREATORS) as making:
        told = [following.submit(_follow, *caller, began + LIMIT_S) for caller in callers]
        made = [making.submit(_create, central, range(maker, EVENTS, CREATORS)) for maker in range(CREATORS)]
        pairs = [pair for future in made for pair in future.result()]
        created_s = time.perf_counter() - began
        created = {board: {ticket for on, ticket in pairs if on == board} for board in BOARDS}
        results = [future.result() for future in told]
    whole = [is_whole(events, created[links.board]) for (links, _), (events, _) in zip(callers, results, strict=True)]
    seen_s = max(at for _, at in results) - began
    return Burst(EVENTS, len(callers), len(BOARDS), created_s, seen_s, proxy.count(None, before), sum(whole))


def _follow(links: Links, number: int, until: float) -> tuple[list[Event], float]:
    """Take what comes and wait again until all tickets of the board were told or perf_counter() is `until`.

    Returns the journal's events in the order told, and when the last answer came.
    """
    told: list[Event] = []
    while True:
        wait = links.waits[number]
        told += [event for event in wait.result(FIRST_ANSWER)["events"] if event.get("seq") is not None]
        at = time.perf_counter() if wait.answered_at is None else wait.answered_at
        if len({event["ticket_id"] for event in told}) >= EVENTS // len(BOARDS) or at > until:
            return told, at
        links.again(number, WAIT_S)


def _create(central: Central, numbers: range) -> list[tuple[str, str]]:
    """Boards and tickets, on the boards in turn."""
    client = PlainClient(central.port, central.admin)  # one connection, or opening them would be what is measured
    try:
        return [_create_one(client, BOARDS[number % len(BOARDS)], number) for number in numbers]
    finally:
        client.close()


def _create_one(client: PlainClient, board: str, number: int) -> tuple[str, str]:
    fields = {"board_id": board, "agent_name": ADMIN_SEAT, **ticket_fields(board)}
    made = client.tool("ticket_create", title=f"burst {number}", **fields)
    return board, str(made["ticket"]["ticket_id"])
