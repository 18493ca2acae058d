"""Two hundred conversations through one daemon: all by push, each told what it must see, nobody held up by another.

The conversations are links of this process: what a shim adds is proven elsewhere and would cost memory only.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from rig import processes
from rig.central import Central
from rig.daemon import Home
from rig.link import Link
from rig.proxy import Proxy
from rig.speaker import LEGACY
from rig.wait import until
from system.scene import PATIENCE, ask, until_blocking, until_quiet

BOARDS = ("scale-a", "scale-b", "scale-c")
COUNT = 200
BURST = int(os.environ.get("BURST", "100"))
"""Tickets that are created as fast as Central does it. `make scale` has 1000 of them, which take a minute or two."""
LONG = 60.0  # seconds for what two hundred do at once on a loaded machine

PATIENT = {"PURSERS_BACKLOG_RESURFACE_INTERVAL_S": "86400"}
"""However long it takes, nobody is reminded of work that was told before."""

OPENING = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "rig", "version": "1"}}


@pytest.fixture(scope="module")
def crowded() -> Iterator[Central]:
    """A Central of its own: two hundred seats make every board of it slower."""
    with Central() as central:
        for board in BOARDS:
            central.create_board(board, {"ann": "member"})
        yield central


class Crowd:
    """Conversations on the boards in turn, all with one credential."""

    def __init__(self, home: Home, central: Central, url: str, count: int, stack: ExitStack) -> None:
        token = central.mint("ann", "board:read board:write")
        self.boards = [BOARDS[number % len(BOARDS)] for number in range(count)]
        self.links = [
            stack.enter_context(
                Link(
                    home.place.socket,
                    home.environment(url=url, token=token, board=board, agent=f"w{number}", extra=PATIENT),
                )
            )
            for number, board in enumerate(self.boards)
        ]
        for link in self.links:
            link.request("initialize", OPENING)
            link.notify("notifications/initialized")
        for board in set(self.boards):  # so that nobody's first wait blocks
            central.create_ticket(board, "there already")
        answers = self.all_wait([None] * count)
        assert not [answer["error"] for answer in answers if "error" in answer]
        self.cursors = [answer["new_seq"] for answer in answers]

    def start_wait(self, number: int, cursor: int | None, timeout_s: int = 50) -> Any:
        arguments = {"timeout_s": timeout_s} | ({} if cursor is None else {"since_seq": cursor})
        return self.links[number].start_tool("a2a_wait", arguments)

    def all_wait(self, cursors: list[int | None], timeout_s: int = 50) -> list[dict[str, Any]]:
        waits = [self.start_wait(number, cursor, timeout_s) for number, cursor in enumerate(cursors)]
        return [wait.result(LONG) for wait in waits]

    def told(self, number: int, wait: Any, wanted: set[str]) -> list[dict[str, Any]]:
        """The events of this wait and of those after it, until all wanted tickets are among them."""
        answer = wait.result(LONG)
        events = list(answer["events"])
        while not wanted <= {event["ticket_id"] for event in events}:
            answer = self.start_wait(number, answer["new_seq"]).result(LONG)
            events += answer["events"]
        return events


@contextmanager
def _most_connections(proxy: Proxy) -> Iterator[list[int]]:
    """How many connections there are, again and again during the block."""
    seen, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(0.005):
            seen.append(proxy.live)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        over.set()
        looking.join()


def test_two_hundred_wait_by_push_on_two_streams_and_a_burst_reaches_each_once_in_order(
    crowded: Central, home: Home
) -> None:
    home.start_daemon()
    with Proxy(crowded.port) as proxy, ExitStack() as stack:
        with _most_connections(proxy) as most:
            crowd = Crowd(home, crowded, proxy.url, COUNT, stack)
        # All enter at once, as after a restart of the daemon: each joins once and reads its history, by a few connections.
        assert max(most) <= 8
        assert proxy.count("board_join") == COUNT, proxy.names()
        assert proxy.count("board_list") == 1
        waits = [crowd.start_wait(number, cursor) for number, cursor in enumerate(crowd.cursors)]
        until_blocking(home, COUNT)
        until_quiet(proxy.count)
        assert len(proxy.streams) == 2
        assert proxy.live <= 6
        assert all(row["delivery"] == "push" for row in ask(home, "ps")["seats"])

        mark = proxy.mark()
        first = crowded.create_ticket(BOARDS[0], "for a third of them")
        woken = [wait.result(LONG) for number, wait in enumerate(waits) if crowd.boards[number] == BOARDS[0]]
        assert all([event["ticket_id"] for event in answer["events"]] == [first] for answer in woken)
        assert proxy.count("board_catchup", mark) <= 3, proxy.names(mark)

        answers = {number: wait.result(0) for number, wait in enumerate(waits) if crowd.boards[number] == BOARDS[0]}
        for number, answer in answers.items():
            waits[number] = crowd.start_wait(number, answer["new_seq"])
        until_blocking(home, COUNT)
        made = [BOARDS[number % len(BOARDS)] for number in range(BURST)]
        with ThreadPoolExecutor(2) as makers:
            created = list(makers.map(lambda board: (board, crowded.create_ticket(board, "burst")), made))
        for number, board in enumerate(crowd.boards):
            wanted = {ticket for where, ticket in created if where == board}
            told = crowd.told(number, waits[number], wanted)
            seqs = [event["seq"] for event in told if "seq" in event]
            assert seqs == sorted(set(seqs))
            assert {event["ticket_id"] for event in told} == wanted


def test_a_conversation_that_does_not_read_holds_nobody_up(crowded: Central, home: Home) -> None:
    """Its shim is stopped; its answers stay where they are, and the others hear as soon as ever."""
    home.start_daemon()
    board = "without-open-work"
    crowded.create_board(board, {"ann": "member"})
    token = crowded.mint("ann", "board:read board:write")

    def environment(agent: str) -> dict[str, str]:
        return home.environment(url=crowded.url, token=token, board=board, agent=agent)

    with ExitStack() as stack:
        stuck = stack.enter_context(home.shim(environment("stuck")))
        stuck.initialize()
        quick = stack.enter_context(Link(home.place.socket, environment("quick")))
        quick.request("initialize", OPENING)
        quick.notify("notifications/initialized")
        head = quick.start_tool("a2a_wait", {"timeout_s": 1}).result(LONG)["new_seq"]
        stuck.start_tool("a2a_wait", {"timeout_s": 50, "since_seq": head})
        until_blocking(home, 1)
        os.kill(stuck.pid, signal.SIGSTOP)
        try:
            for number in range(5):
                wait = quick.start_tool("a2a_wait", {"timeout_s": 50, "since_seq": head})
                until(lambda: any(r["state"] == "waiting" and r["seat"] == "quick" for r in ask(home, "ps")["seats"]))
                ticket = crowded.create_ticket(board, f"while one is stuck {number}")
                answer = wait.result(PATIENCE)
                head = answer["new_seq"]
                assert [event["ticket_id"] for event in answer["events"]] == [ticket]
        finally:
            os.kill(stuck.pid, signal.SIGCONT)


HASTY_DAEMON = """
import sys
from pursersd.feed import board
board.SWEEP = 1.0
from pursersd.__main__ import main
sys.exit(main())
"""


@contextmanager
def _hasty_daemon(home: Home) -> Iterator[None]:
    """A daemon that joins its boards each second instead of each minute."""
    command = [sys.executable, "-c", HASTY_DAEMON, "--foreground"]
    daemon = subprocess.Popen(
        command, env=home.environment(role=None), stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        until(lambda: ask(home, "ping"), PATIENCE, "the daemon answers")
        yield
    finally:
        processes.stop(daemon, (signal.SIGTERM,))


@pytest.mark.parametrize("count", [1, COUNT])
def test_the_lease_of_a_vanished_agent_expires_and_wakes_who_waits(home: Home, count: int) -> None:
    """Central frees an expired lease only when somebody joins: the daemon does so for each board about once a minute."""
    with _hasty_daemon(home), Central() as central, Proxy(central.port) as proxy, ExitStack() as stack:
        board = BOARDS[0]
        for name in BOARDS:
            central.create_board(name, {"ann": "member", "bob": "member"})
        central.call(central.admin, "board_claim_ttl_set", board_id=board, agent_name="boss", claim_ttl_s=3)
        bob = central.mint("bob", "board:read board:write")
        central.call(bob, "board_join", board_id=board, agent_name="vanishes", role="worker", allow_takeover=True)
        ticket = central.create_ticket(board, "left behind")
        crowd = Crowd(home, central, proxy.url, count, stack)
        waits = [crowd.start_wait(number, cursor) for number, cursor in enumerate(crowd.cursors)]
        until_blocking(home, count)
        mark, began = proxy.mark(), time.monotonic()
        central.call(bob, "ticket_claim", board_id=board, agent_name="vanishes", ticket_id=ticket)
        for wait in [wait for wait, name in zip(waits, crowd.boards, strict=True) if name == board]:
            events = wait.result(LONG)["events"]
            assert (events[-1]["ticket_id"], events[-1]["status_to"]) == (ticket, "open")
        # One join per board and pause, which is three quarters of a second at least, however many wait there.
        rounds = (time.monotonic() - began) / 0.75 + 1
        assert proxy.count("board_join", mark) <= rounds * len(set(crowd.boards))
