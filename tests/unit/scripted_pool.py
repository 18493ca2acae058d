"""A pool as a test directs it: a journal in memory in Central's place, and every request noted."""

import time
from collections.abc import Mapping
from typing import Any, cast

import anyio

from pursersd.central.pool import Counters, Pool
from pursersd.central.reach import Reach
from pursersd.errors import CentralError, ToolFailed
from pursersd.ids import agent_id
from pursersd.seats.seat import Seat, SeatRequest
from pursersd.windows import Windows
from unit.scripted_streams import Script

BOARD = "b"
PRINCIPAL = "PR-1"


def seat(name: str, board: str = BOARD) -> Seat:
    """A joined worker's seat."""
    request = SeatRequest(board, name, "worker")
    return Seat(request, agent_id(board, PRINCIPAL, name), PRINCIPAL, "worker", 900, None)


class ScriptedPool:
    """Answers board_catchup from `rows` and board_join as Central does; `stream` opens its streams."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.stream = Script()
        self.listen = self.stream.open
        self.on_connect_refused: Any = None
        self.reach = Reach(self.ask)
        self.windows = Windows()
        self.heads: dict[str, int] = {}
        self.central_time = time.time()
        self.credential = "kid/abc123"
        self.generation: str | None = None
        self.instance: str | None = None
        self.replaced = False
        """Whether another Central answers now than before."""
        self.rows: list[tuple[dict[str, Any], frozenset[str] | None]] = []
        """Each event with the names of its recipients; None for everybody."""
        self.asked: list[str] = []
        """Who read from where, who joined how."""
        self.errors: list[CentralError] = []
        """What the next requests fail with."""
        self.go = anyio.Event()
        self.go.set()
        self.page = 100
        self.joined: list[Mapping[str, Any]] = []
        """The arguments of every board_join that was answered."""
        self.members: list[str] = []
        """Names of the seats that are on the board."""
        self.compacted_through = 0
        self.changes: dict[str, Any] = {}
        """What is different in the answers from what they should be."""

    @property
    def as_pool(self) -> Pool:
        """This, for those who want a pool."""
        return cast("Pool", self)

    def write(self, *recipients: str, kind: str = "ticket_annotated", actor: str = "boss", **fields: Any) -> int:
        """Write an event for these seats, for all if none is named; returns its number."""
        row = {"seq": len(self.rows) + 1, "kind": kind, "actor": agent_id(BOARD, PRINCIPAL, actor), **fields}
        self.rows.append((row, frozenset(recipients) if recipients else None))
        return len(self.rows)

    async def ask(self) -> None:
        self.asked.append("probe")
        if self.errors:
            raise self.errors.pop(0)

    async def doubt(self) -> None:
        self.reach.doubt()

    async def is_replaced(self) -> bool:
        replaced, self.replaced = self.replaced, False
        return replaced

    async def require_board(self, board: str) -> None:
        self.asked.append(f"board {board}")

    async def read(
        self, tool: str, arguments: Mapping[str, Any], *, generation: str | None = None, background: bool = False
    ) -> dict[str, Any]:
        name = str(arguments.get("agent_name"))
        match tool:
            case "board_catchup":
                self.asked.append(f"{name} from {arguments.get('cursor')}")
            case "board_join":
                self.asked.append(f"{name} joins as {arguments['renewal_source']}")
            case "board_status":
                self.asked.append("who is there")
        await self.go.wait()
        if self.errors:
            raise self.errors.pop(0)
        match tool:
            case "board_join":
                answer = self._join(arguments)
            case "board_status":
                answer = {"agents": [_member(name) for name in self.members], "latest_seq": len(self.rows)}
            case _:
                answer = self._catchup(name, arguments)
        return {**answer, **self.changes}

    async def call(self, tool: str, arguments: Mapping[str, Any], *, generation: str | None = None) -> dict[str, Any]:
        """A call that is sent once."""
        if tool == "agent_retire":
            self.asked.append(f"{arguments['agent_name']} retires")
            return {}
        return await self.read(tool, arguments)

    def _join(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self.joined.append(arguments)
        board, name = arguments["board_id"], arguments["agent_name"]
        return {
            "agent_id": agent_id(board, PRINCIPAL, name),
            "principal_id": PRINCIPAL,
            "role": arguments.get("role", "worker"),
            "claim_ttl_s": 900,
            "generation_token": self.generation,
        }

    def _catchup(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        cursor = arguments.get("cursor") or 0
        head = len(self.rows)
        if cursor > head:
            raise ToolFailed("board_catchup", "cursor is ahead of journal")
        if cursor < self.compacted_through:
            gone = {"events": [], "next_cursor": cursor, "scan_count": 0, "has_more": False}
            return {**gone, "latest_cursor": head, "resync_required": True, "reset_cursor": head}
        scanned = self.rows[cursor : cursor + min(self.page, arguments["limit"])]
        me = agent_id(BOARD, PRINCIPAL, name)
        events = [row for row, to in scanned if row["actor"] != me and (to is None or name in to)]
        after = cursor + len(scanned)
        return {
            "events": events,
            "next_cursor": after,
            "latest_cursor": head,
            "scan_count": len(scanned),
            "has_more": after < head,
            "resync_required": False,
            "reset_cursor": None,
        }


def _member(name: str) -> dict[str, Any]:
    return {"agent_id": agent_id(BOARD, PRINCIPAL, name), "lifecycle_status": "active"}
