"""Cancellations that cross results, in random order, through real shims and a real daemon (RB-CAN-001, RB-PLC-001)."""

import random
import threading
import time

import pytest

from rig.central import Central
from rig.daemon import Home
from rig.shim import ShimProcess
from rig.wait import until
from system.scene import PATIENCE, Converse, Json, ask

SESSIONS = 6
CALLS = 40  # per session
BARRIER = "barrier {}"


class Hasty:
    """A host that cancels half of what it asks for; `run` in a thread of its own."""

    def __init__(self, shim: ShimProcess, seed: str) -> None:
        self.asked: set[str] = set()
        self.cancelled: dict[str, int] = {}
        """By id, how many barriers had been sent when it was cancelled."""
        self._shim = shim
        self._dice = random.Random(seed)
        self._barriers = 0
        self.thread = threading.Thread(target=self.run, name=f"hasty {seed}")

    def run(self) -> None:
        dice = self._dice
        for number in range(CALLS):
            self._ask(f"call {number}")
            time.sleep(dice.choice([0, 0.001, 0.002, 0.005, 0.01, 0.02]))
            open_calls = sorted(self.asked - self.cancelled.keys())
            if dice.random() < 0.7 and open_calls:
                self._cancel(dice.choice([open_calls[-1], dice.choice(open_calls)]))
            if dice.random() < 0.1:
                self._shim.cancel(dice.choice(["never asked", *sorted(self.cancelled)]))

    def finish(self) -> None:
        """Cancel what may block for long and send a last barrier."""
        for number in sorted(self.asked - self.cancelled.keys()):
            if not self._shim.answers(number):
                self._cancel(number)

    def check(self) -> int:
        """Each call has one answer, or was cancelled in time; returns how many cancellations won."""
        shim, won = self._shim, 0
        until(lambda: shim.answers(BARRIER.format(self._barriers)), PATIENCE, "the last barrier")
        place = {m.get("id"): index for index, m in enumerate(shim.received) if isinstance(m.get("id"), str)}
        for number in self.asked:
            count = len(shim.answers(number))
            assert count <= 1, number
            if number in self.cancelled:
                won += not count
                # The shim had taken the cancellation before it took the barrier behind it.
                assert not count or place[number] < place[BARRIER.format(self.cancelled[number])], number
            else:
                assert count == 1, number
        assert shim.rubbish == []
        return won

    def _ask(self, number: str) -> None:
        params: Json = self._dice.choice(
            [
                {"name": "a2a_wait", "arguments": {"timeout_s": 60}},
                {"name": "a2a_wait", "arguments": {"timeout_s": 1}},
                {"name": "a2a_wait", "arguments": {"timeout_s": 0}},  # refused at once
                {"name": "project_registry_get", "arguments": {}},
            ]
        )
        method = self._dice.choice(["tools/call", "tools/call", "tools/list"])
        self.asked.add(number)
        asked = {"jsonrpc": "2.0", "id": number, "method": method}
        self._shim.say({**asked, "params": params} if method == "tools/call" else asked)

    def _cancel(self, number: str) -> None:
        self._barriers += 1
        self.cancelled[number] = self._barriers
        self._shim.cancel(number)
        self._shim.say({"jsonrpc": "2.0", "id": BARRIER.format(self._barriers), "method": "ping"})


@pytest.mark.parametrize("seed", [1, 2])
def test_cancel_and_result_have_one_winner_and_nothing_goes_on_behind(
    central: Central, home: Home, board: str, converse: Converse, seed: int
) -> None:
    hosts = [Hasty(converse(f"h{n}"), f"{seed}.{n}") for n in range(SESSIONS)]
    for host in hosts:
        host.thread.start()
    while any(host.thread.is_alive() for host in hosts):
        central.create_ticket(board, "wakes all")
        time.sleep(0.05)
    for host in hosts:
        host.thread.join()
        host.finish()
    won = sum(host.check() for host in hosts)
    assert won > 0

    def is_quiet() -> bool:
        centrals = ask(home, "status")["centrals"]
        idle = all(row["state"] == "idle" for row in ask(home, "ps")["seats"])
        return idle and all(c["waits"] == 0 and c["call_connections"] == 0 for c in centrals)

    until(is_quiet, PATIENCE, "no wait and no call is left")
    until(lambda: central.streams() <= 2, PATIENCE, "no stream of a cancelled wait is left")
