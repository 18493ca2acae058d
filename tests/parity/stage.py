"""A stage: one place on one side, that is, boards with their cast, a network, and the conversation under test."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

from parity.play import Play
from parity.script import HOME, Place, Scenario
from pursersd.ids import agent_id, agent_uri, journal_uri
from pursersd.rules.host_binding import host_binding
from pursersd.secret import Secret
from rig.central import ADMIN_SEAT, REVIEWER_SCOPE, WORKER_SCOPE, Central, ToolFailed, free_port
from rig.daemon import Home
from rig.plain import PlainClient
from rig.proxy import Proxy
from rig.relay import Seen
from rig.shim import BRIDGE, SHIM, Ended, Json, ShimProcess
from rig.speaker import modern_meta


@dataclass(frozen=True, slots=True)
class Member:
    """One of the cast: its membership on every board, the role of its seats (None: Central decides), its scopes."""

    membership: str
    role: str | None
    scope: str


WORKER = Member("member", "worker", WORKER_SCOPE)
REVIEWER = Member("reviewer", "reviewer", REVIEWER_SCOPE)

CAST = {
    "ann": WORKER,
    "bob": WORKER,
    "rex": REVIEWER,
    "ria": REVIEWER,
    "cora": Member("member", "coordinator", "board:read board:coordinate"),
    "moe": Member("member", None, "board:read board:write board:review"),
}
"""Who belongs to every board, if its place has no other wish; `boss` is its admin. `eve` belongs to none."""

NAMED = (*CAST, "boss", "eve")

SideName = Literal["bridge", "ours"]


class Muffled(Proxy):
    """The network of the bridge. It refuses what the bridge does beside its calls, to keep leases: a subscription with
    journals alone, at whose every cue all boards of the registry are joined, and these joins.

    Nothing of it is compared, and it would take more time than all the rest.
    """

    def refusal(self, seen: Seen) -> str | None:
        """Called by a relay: the words in which the request shall be refused."""
        has_seat = any("/agent/" in uri for uri in seen.uris)
        joins = seen.tool == "board_join" and "renewal_source" in seen.arguments
        if joins or (seen.uris and not has_seat):
            return "this keepalive is not compared"
        return super().refusal(seen)


class Stage:
    """Its conversation is started with it, in the home of its side; for `ours` a daemon must run there.

    Its waits last `patience` times as long as the scenario says.
    """

    def __init__(self, side: SideName, place: Place, central: Central, home: Home, patience: int = 1) -> None:
        self.side = side
        self.place = place
        self.board = f"{side}-{place.name}"
        self.boards = {HOME: self.board} | {board.name: f"{self.board}-{board.name}" for board in place.further}
        """By the names that scripts use, the home board first."""
        self.proxy = Muffled(central.port) if side == "bridge" and not place.follows else Proxy(central.port)
        self.patience = patience
        self.greeting: Json = {}
        """The answer to `initialize`, or how the process ended instead."""
        self._unlistened: set[str] = set()
        self._left: list[tuple[str, str]] = []
        self._central = central
        self._home = home
        self._closed = f"http://127.0.0.1:{free_port()}/mcp"
        confined = None if place.further else self.board
        self._tokens = {name: central.mint(name, member.scope, confined) for name, member in CAST.items()}
        self._tokens |= {"eve": central.mint("eve", WORKER_SCOPE, self.board), "boss": central.admin}
        self._memberships = {HOME: {n: m.membership for n, m in CAST.items() if n in (place.member, *place.seats)}}
        for board in place.further:
            mixed = {name: board.memberships.get(name, own) for name, own in self._memberships[HOME].items()}
            self._memberships[board.name] = {name: role for name, role in mixed.items() if role is not None}

    def __enter__(self) -> Self:
        for label, members in self._memberships.items():
            self._central.create_board(self.boards[label], members)
            for name in members:
                self._join(name, label)
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
        """The normalised outcomes of the scenario, in order. Its tickets are finished before the next one."""
        self._finish()
        concerned = [label for label in self.boards if label in scenario.boards]
        play = Play(self, {self.boards[label]: self._catch_up(label) for label in concerned})
        try:
            for step in scenario.steps:
                play.take(step)
            return play.outcomes
        finally:
            self._left = play.tickets

    def act(
        self,
        who: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        seat: str | None = None,
        times: int = 1,
        board: str = HOME,
    ) -> Json:
        """A member of the cast calls a tool of Central on a board."""
        name = seat or (ADMIN_SEAT if who == "boss" else who)
        client = PlainClient(self._central.port, self._tokens[who])
        try:
            for _ in range(times):
                result = client.tool(tool, board_id=self.boards[board], agent_name=name, **arguments)
            return result
        finally:
            client.close()

    def head(self, board: str = HOME) -> int:
        """The head of a board's journal."""
        page = self.act("boss", "board_catchup", {"cursor": 0, "limit": 1, "touch": False, "ack": False}, board=board)
        return int(page["latest_cursor"])

    def exists(self, board: str) -> bool:
        """Whether Central has a board of that name."""
        return self.filled_in(board) in self._central.health()["boards"]

    def deny(self, board: str, what: Literal["journal", "seat"], on: bool) -> None:
        """The network denies subscriptions with the journal of a board, or with the seat there, and cuts the open ones; or
        it no longer denies them."""
        name = self.boards[board]
        seat = agent_uri(name, agent_id(name, self._principal(self.place.member), self.place.member))
        self.proxy.deny(journal_uri(name) if what == "journal" else seat, on)
        if on:
            self._unlistened.add(board)
            self.proxy.cut_streams()
        else:
            self._unlistened.discard(board)

    def is_blocking(self, tool: str, since: int, board: str = HOME) -> bool:
        """Whether the wait begun after the mark `since` has asked for all that it asks for at its entry to a board."""
        if self.side == "ours":
            also = ("ticket_list",) if tool == "a2a_wait" else ()
            return all(self._asked(tool, since, board) for tool in ("board_catchup", *also))
        if self.place.variables.get("PURSERS_WAIT_MODE") == "poll" or board in self._unlistened:
            return bool(self._asked("dispatch_my_offers", since, board))
        # The bridge reads once more, in small pages, when its stream is open.
        return any(arguments.get("limit") == 100 for arguments in self._asked("board_catchup", since, board))

    def _asked(self, tool: str, since: int, board: str) -> list[dict[str, Any]]:
        """The arguments of the conversation's calls of a tool on a board."""
        calls = [seen.arguments for seen in self.proxy.seen(tool, since)]
        return [arguments for arguments in calls if arguments.get("board_id") == self.boards[board]]

    def names(self) -> dict[str, str]:
        """Identifiers of this stage, and what to call them."""
        found = {self.proxy.url: "<url>", self._closed: "<closed url>"}
        found |= {board: f"<{label}>" for label, board in self.boards.items()}
        for name in NAMED:
            principal = self._principal(name)
            found[principal] = f"<principal {name}>"
            for label, board in self.boards.items():
                for seat in (ADMIN_SEAT if name == "boss" else name, f"{name}-2"):
                    where = "" if label == HOME else f" on {label}"
                    found[agent_id(board, principal, seat)] = f"<seat {seat}{where}>"
        return found

    def filled_in(self, text: str) -> str:
        """The text with what only this stage knows."""
        known = {**self.boards, "closed": self._closed}
        known |= {f"principal {name}": self._principal(name) for name in CAST}
        known |= {f"seat {name}": self._seat(name) for name in NAMED}
        known |= {f"binding {name}": host_binding(Secret(self._tokens[name]), self._seat(name)) for name in CAST}
        if "{unbound}" in text:
            known["unbound"] = self._central.mint(self.place.member, WORKER_SCOPE)
        for name, value in known.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    @property
    def meta(self) -> Json | None:
        """What each request of the conversation carries in `_meta`."""
        return modern_meta() if self.place.modern else None

    def _greet(self) -> Json:
        try:
            if self.meta is not None:
                return self.process.request("server/discover", {"_meta": self.meta})
            return self.process.initialize(capabilities=dict(self.place.capabilities))
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
            "PURSERS_ROLE": CAST.get(member, WORKER).role,
            "PURSERS_BRIDGE_STATE_DIR": str(own),
            "PURSERS_BRIDGE_STATS": str(own / "stats.json"),
        }
        values |= {name: value and self.filled_in(value) for name, value in self.place.variables.items()}
        return self._home.environment(role=None, extra={n: v for n, v in values.items() if v is not None})

    def _principal(self, name: str) -> str:
        if name == "boss":
            return self._central.principal_id("local-board-owner", "pursers-central-quickstart")
        return self._central.principal_id(name)

    def _seat(self, name: str) -> str:
        return agent_id(self.board, self._principal(name), ADMIN_SEAT if name == "boss" else name)

    def _join(self, name: str, board: str) -> None:
        role = CAST[name].role
        chosen = {} if role is None else {"role": role}
        self.act(name, "board_join", {"allow_takeover": True, **chosen}, board=board)

    def _catch_up(self, board: str) -> int:
        """Let the conversation's seat have seen everything on a board: what a wait without a cursor reads begins here, at
        the head of the journal."""
        if self.place.member not in self._memberships[board]:
            return self.head(board)
        everything = {"limit": 1000, "max_events": 1000, "ack": True}
        return int(self.act(self.place.member, "board_catchup", everything, board=board)["latest_cursor"])

    def _finish(self) -> None:
        """Cancel those of the last scenario's tickets that are not finished."""
        for board, ticket_id in self._left:
            with contextlib.suppress(ToolFailed):
                self.act(
                    "boss", "ticket_cancel", {"ticket_id": ticket_id, "reason": "The scenario is over."}, board=board
                )
