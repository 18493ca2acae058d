"""A stage: one place on one side, that is, a board with its cast, a network, and the conversation under test."""

import contextlib
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Self

from parity.play import Play
from parity.script import Place, Scenario
from pursersd.ids import agent_id
from rig.central import ADMIN_SEAT, REVIEWER_SCOPE, WORKER_SCOPE, Central, ToolFailed, free_port
from rig.daemon import Home
from rig.plain import PlainClient
from rig.proxy import Proxy
from rig.shim import BRIDGE, SHIM, Ended, Json, ShimProcess

MEMBERS = {"ann": "member", "bob": "member", "rex": "reviewer", "ria": "reviewer"}
"""The cast with their roles on every board; `boss` is its admin. `eve` belongs to no board."""

SCOPES = {"member": WORKER_SCOPE, "reviewer": REVIEWER_SCOPE}
ROLES = {"member": "worker", "reviewer": "reviewer"}

SideName = Literal["bridge", "ours"]


class Stage:
    """Its conversation is started with it, in the home of its side; for `ours` a daemon must run there."""

    def __init__(self, side: SideName, place: Place, central: Central, home: Home) -> None:
        self.side = side
        self.place = place
        self.board = f"{side}-{place.name}"
        self.proxy = Proxy(central.port)
        self.greeting: Json = {}
        """The answer to `initialize`, or how the process ended instead."""
        self._central = central
        self._home = home
        self._closed = f"http://127.0.0.1:{free_port()}/mcp"
        self._tokens = {name: central.mint(name, SCOPES[role], self.board) for name, role in MEMBERS.items()}
        self._tokens |= {"eve": central.mint("eve", WORKER_SCOPE, self.board), "boss": central.admin}

    def __enter__(self) -> Self:
        present = {name: role for name, role in MEMBERS.items() if name in (self.place.member, *self.place.seats)}
        self._central.create_board(self.board, present)
        for name in present:
            self.act(name, "board_join", {"role": ROLES[MEMBERS[name]], "allow_takeover": True})
        self.proxy.__enter__()
        try:
            command = [SHIM if self.side == "ours" else BRIDGE]
            self.process = ShimProcess(command, self._environment())
            self.greeting = self._greet()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if hasattr(self, "process"):
                self.process.close()
        finally:
            self.proxy.__exit__(None, None, None)

    def play(self, scenario: Scenario) -> list[Any]:
        """The normalised outcomes of the scenario, in order. Its tickets are finished afterwards."""
        play = Play(self, self._catch_up() if self.place.member in MEMBERS else self.head())
        try:
            for step in scenario.steps:
                play.take(step)
            return play.outcomes
        finally:
            self._finish(play.tickets)

    def act(self, who: str, tool: str, arguments: Mapping[str, Any], seat: str | None = None, times: int = 1) -> Json:
        """A member of the cast calls a tool of Central on this board."""
        name = seat or (ADMIN_SEAT if who == "boss" else who)
        client = PlainClient(self._central.port, self._tokens[who])
        try:
            for _ in range(times):
                result = client.tool(tool, board_id=self.board, agent_name=name, **arguments)
            return result
        finally:
            client.close()

    def head(self) -> int:
        """The head of the board's journal."""
        page = self.act("boss", "board_catchup", {"cursor": 0, "limit": 1, "touch": False, "ack": False})
        return int(page["latest_cursor"])

    def exists(self, board: str) -> bool:
        """Whether Central has a board of that name."""
        return self.filled_in(board) in self._central.health()["boards"]

    def is_blocking(self, since: int) -> bool:
        """Whether the wait begun after the mark `since` has asked for all that it asks for at its entry."""
        if self.side == "ours":
            return bool(self.proxy.count("board_catchup", since) and self.proxy.count("ticket_list", since))
        if self.place.variables.get("PURSERS_WAIT_MODE") == "poll":
            return bool(self.proxy.count("dispatch_my_offers", since))
        # The bridge reads once more, in small pages, when its stream is open.
        return any(page.arguments.get("limit") == 100 for page in self.proxy.seen("board_catchup", since))

    def names(self) -> dict[str, str]:
        """Identifiers of this stage, and what to call them."""
        found = {self.board: "<board>", self.proxy.url: "<url>", self._closed: "<closed url>"}
        for name in (*MEMBERS, "boss", "eve"):
            principal = self._principal(name)
            found[principal] = f"<principal {name}>"
            for seat in (ADMIN_SEAT if name == "boss" else name, f"{name}-2"):
                found[agent_id(self.board, principal, seat)] = f"<seat {seat}>"
        return found

    def filled_in(self, text: str) -> str:
        """The text with what only this stage knows."""
        unbound = self._central.mint(self.place.member, WORKER_SCOPE) if "{unbound}" in text else ""
        return text.replace("{board}", self.board).replace("{closed}", self._closed).replace("{unbound}", unbound)

    def _greet(self) -> Json:
        try:
            return self.process.initialize()
        except Ended:
            return {"ended": self.process.wait()}

    def _environment(self) -> dict[str, str]:
        own = self._home.folder / self.place.name
        member = self.place.member
        values: dict[str, str | None] = {
            "ONBOARD_CENTRAL_URL": self.proxy.url,
            "ONBOARD_CENTRAL_TOKEN": self._tokens[member],
            "ONBOARD_BOARD_ID": self.board,
            "ONBOARD_AGENT_NAME": member,
            "PURSERS_ROLE": ROLES[MEMBERS.get(member, "member")],
            "PURSERS_BRIDGE_STATE_DIR": str(own),
            "PURSERS_BRIDGE_STATS": str(own / "stats.json"),
        }
        values |= {name: value and self.filled_in(value) for name, value in self.place.variables.items()}
        return self._home.environment(role=None, extra={n: v for n, v in values.items() if v is not None})

    def _principal(self, name: str) -> str:
        if name == "boss":
            return self._central.principal_id("local-board-owner", "pursers-central-quickstart")
        return self._central.principal_id(name)

    def _catch_up(self) -> int:
        """Let the seat have seen everything: what a wait without a cursor reads begins here, at the head of the journal."""
        page = self.act(self.place.member, "board_catchup", {"limit": 1000, "max_events": 1000, "ack": True})
        return int(page["latest_cursor"])

    def _finish(self, tickets: Iterable[str]) -> None:
        """Cancel those of the tickets that are not finished."""
        for ticket_id in tickets:
            with contextlib.suppress(ToolFailed):
                self.act("boss", "ticket_cancel", {"ticket_id": ticket_id, "reason": "The scenario is over."})
