"""What it costs to keep leases alive: each conversation holds one and its model is busy elsewhere."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import psutil

from bench import starts, usage
from bench.crowd import Callers, Crowd
from bench.programs import OURS, THEIRS, Program
from bench.scale import Links
from rig.central import ADMIN_SEAT, Central
from rig.daemon import Home
from rig.proxy import Proxy
from rig.speaker import Speaker
from rig.wait import until

BOARD = "leases"
SUBJECT = "leases"
TTL_S = 60  # seconds; Central's default is 900, which makes all of this 15 times rarer
SPAN_S = 72.0  # seconds that are measured: three renewals of each lease
FOUND_LIMIT_S = 90.0  # seconds until every lease must have been renewed once
RUNS = ((OURS, 50), (OURS, 10), (THEIRS, 10))

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Keeping:
    """What one program needed per minute to keep `n` leases with a TTL of TTL_S alive."""

    program: str
    n: int
    requests: float
    joins: float
    cpu_s: float
    lapsed: int
    """Leases that were lost meanwhile."""
    as_model: int
    """Leases that Central takes for renewed by a model, although none did anything."""


def measure(program: Program, n: int, say: Say) -> Keeping:
    """Run once, on a Central of its own. Everything that was started has ended when this returns or raises."""
    with Central() as central, Proxy(central.port) as proxy, Home() as home, ExitStack() as stack:
        central.create_board(BOARD)
        central.call(central.admin, "board_claim_ttl_set", board_id=BOARD, agent_name=ADMIN_SEAT, claim_ttl_s=TTL_S)
        token = central.worker(SUBJECT, BOARD)
        daemon = [psutil.Process(starts.warm(home))] if program.has_daemon else []
        say("starting conversations")
        callers, name, processes = _open(program, n, home, proxy, token, stack)
        callers.join()
        say("claiming")
        work = [central.create_ticket(BOARD, f"lease {number}") for number in range(n)]
        for number, ticket in enumerate(work):
            central.call(token, "ticket_claim", board_id=BOARD, agent_name=f"{name}-w{number}", ticket_id=ticket)
        claimed = _leases(central)
        say("waiting until each lease was renewed")
        until(
            lambda: all(_renewed(claimed, _leases(central), x) for x in work), FOUND_LIMIT_S, "each lease was renewed"
        )
        say(f"{SPAN_S:.0f} s of keeping")
        before, stamps, cpu = proxy.mark(), _leases(central), usage.cpu_s(daemon + processes)
        time.sleep(SPAN_S)  # the measured span, not a synchronisation
        minutes = SPAN_S / 60
        after = _leases(central)
        return Keeping(
            program=program.name,
            n=n,
            requests=proxy.count(None, before) / minutes,
            joins=proxy.count("board_join", before) / minutes,
            cpu_s=(usage.cpu_s(daemon + processes) - cpu) / minutes,
            lapsed=sum(x not in after for x in work),
            as_model=sum(
                x in after and after[x]["last_model_renewed_at"] != stamps[x]["last_model_renewed_at"] for x in work
            ),
        )


def _open(
    program: Program, n: int, home: Home, proxy: Proxy, token: str, stack: ExitStack
) -> tuple[Callers[Speaker], str, list[psutil.Process]]:
    """The conversations, the name of their seats, and their processes if they have some."""
    if program.has_daemon:
        links = Links(program, proxy, BOARD)
        links.open(home, token, n, stack)
        return links, "scale", []  # type: ignore[return-value]
    crowd = Crowd(program, home, proxy, token, BOARD)
    stack.callback(crowd.close)
    crowd.start(n)
    return crowd, "bench", crowd.processes()  # type: ignore[return-value]


def _leases(central: Central) -> dict[str, dict[str, str]]:
    """The held tickets with when and by whom their leases were renewed; a pure read."""
    listed = central.call(central.admin, "ticket_list", board_id=BOARD, status="claimed", limit=500, view="full")
    names = ("renewed_at", "last_model_renewed_at")
    return {row["ticket_id"]: {name: row[f"lease_{name}"] for name in names} for row in listed["tickets"]}


def _renewed(before: dict[str, dict[str, str]], now: dict[str, dict[str, str]], ticket: str) -> bool:
    return ticket in now and now[ticket]["renewed_at"] != before[ticket]["renewed_at"]
