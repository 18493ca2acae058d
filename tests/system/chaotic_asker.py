"""In the chaos: a model that asks its coordinator one question after the other; each is at Central once, or it was told so."""

import json
import time
from collections import Counter

from pursersd.ids import agent_id
from rig.central import ADMIN_SEAT, Central
from rig.daemon import Home
from rig.shim import Ended, Pending, ShimProcess, ToolError
from rig.wait import until
from system.scene import PATIENCE, Json

BOARD = "chaos-questions"
PER_TICKET = 40
"""Questions about one ticket; Central takes fifty."""

TICKETS = 30
PAUSE = 0.5  # seconds from an outcome to the next question

ASKED, REFUSED, UNKNOWN = "asked", "refused", "unknown"
"""What was said of a question: it was asked, it was not, nobody knows."""


def prepare(central: Central) -> None:
    """The board, where every seat of eve's may ask."""
    central.create_board(BOARD, {"eve": "admin"})
    owner = agent_id(BOARD, "PR-" + "0" * 64, "owner")
    value = json.dumps({BOARD: [owner]})
    place = {"board_id": BOARD, "agent_name": ADMIN_SEAT}
    central.call(central.admin, "board_state_update", **place, key="project_coordinators", value=value)


class Asker:
    """The model. Its host may die; the next one goes on with the next question."""

    def __init__(self, central: Central, home: Home, url: str, number: int) -> None:
        self.name = f"asker-{number}"
        self.said: dict[str, str] = {}
        """By the question's words, what was said of it; UNKNOWN as long as nothing was."""
        self._central, self._home = central, home
        token = central.mint("eve", "board:read board:write", BOARD, lifetime=24 * 3600)
        self._environment = home.environment(url, token, BOARD, self.name)
        self._tickets = [central.create_ticket(BOARD, f"of {self.name}") for _ in range(TICKETS)]
        self._call: Pending[Json] | None = None
        self._ids: list[int] = []
        self._next_at = 0.0
        self.shim = self._start()

    def pump(self) -> None:
        """Ask, or take what became of the question."""
        call = self._call
        if call is None:
            if time.monotonic() >= self._next_at and self.shim.process.poll() is None:
                self._ask()
        elif call.done:
            self._take(call)
            self._call, self._next_at = None, time.monotonic() + PAUSE

    def give_up(self) -> None:
        """Cancel the question that is under way; it may have been asked all the same."""
        if self._call is not None and not self._call.done:
            self.shim.cancel(self._call.id)
            self._call = None

    def next_host(self) -> None:
        """The old host is gone."""
        self.shim.close()
        self._call = None
        self._ids = []
        self.shim = self._start()

    def settle(self) -> None:
        """The last question is answered."""
        call = self._call
        if call is not None:
            until(lambda: call.done, PATIENCE, f"the last question of {self.name} is answered")
            self.pump()

    def check(self) -> None:
        """What was said is true, and nothing was asked twice."""
        found: Counter[str] = Counter()
        for ticket in self._tickets:
            seen = self._central.call(self._central.admin, "ticket_get", board_id=BOARD, ticket_id=ticket)["ticket"]
            found.update(question["message"] for question in seen.get("coordinator_questions", []))
        for words, said in self.said.items():
            allowed = {ASKED: {1}, REFUSED: {0}, UNKNOWN: {0, 1}}[said]
            assert found[words] in allowed, f"{words} was {said}, and is there {found[words]} times"
        assert found.keys() <= self.said.keys()
        assert all(len(self.shim.answers(number)) <= 1 for number in self._ids)

    def _ask(self) -> None:
        number = len(self.said)
        words, ticket = f"{self.name} asks {number}", self._tickets[number // PER_TICKET % len(self._tickets)]
        self.said[words] = UNKNOWN
        self._call = self.shim.start_tool(
            "ticket_question_ask", {"ticket_id": ticket, "message": words, "kind": "decision"}
        )
        self._ids.append(self._call.id)

    def _take(self, call: Pending[Json]) -> None:
        words = next(reversed(self.said))
        try:
            call.result(0)
        except Ended:
            return
        except ToolError as error:
            failure = (error.structured or {}).get("error", {})
            self.said[words] = UNKNOWN if failure.get("outcome") == "unknown" else REFUSED
        else:
            self.said[words] = ASKED

    def _start(self) -> ShimProcess:
        shim = self._home.shim(self._environment)
        shim.initialize()
        return shim
