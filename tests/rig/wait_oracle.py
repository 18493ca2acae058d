"""The real bridge's own functions of a2a_wait, to ask what they make of a case: in this process, without a Central."""

import asyncio
import importlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any, Literal
from unittest import mock

from pursers_client import BoardClientError

from unit.virtual_time import now, run

Json = Any

PRINCIPAL = "PR-1"
SEAT = "seat"


def _load() -> ModuleType:
    """The bridge's module as a conversation without settings has it; it reads them while it is imported."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ONBOARD_", "PURSERS_"))}
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with mock.patch.dict(os.environ, clean | {"PURSERS_BRIDGE_STATE_DIR": "/nonexistent/pursers"}, clear=True):
        module = importlib.import_module("pursers_wait_server")
    root.handlers[:] = handlers
    root.setLevel(level)
    return module


bridge = _load()
HOME: str = bridge.BOARD_ID


def seat_id(board: str) -> str:
    """The agent id of the oracle's seat on a board."""
    return str(bridge._derived_agent_id(PRINCIPAL, SEAT, board))


@dataclass
class Board:
    """What happens on one board of a wait."""

    name: str
    refused: str | None = None
    """The words with which Central refuses the join."""
    cursor: int = 0
    """Where the entry catchup ends."""
    read: Sequence[Json] = ()
    """The journal events that it reads; all of them concern the caller."""
    resynced: bool = False
    partial: bool = False
    warnings: Sequence[Json] = ()
    live: Sequence[tuple[str, Json]] = ()
    """What its stream says at once, as (kind, detail)."""
    offers: Sequence[Json] = ()
    """The tickets that Central holds out to the seat, after a look at the entry that finds none."""
    scanned: Sequence[Json] = ()
    """Cues of the scan in the middle of the wait."""


@dataclass
class _Wait:
    boards: Mapping[str, Board]
    mode: Literal["push", "poll"]
    entered: set[str] = field(default_factory=set)
    looked: set[str] = field(default_factory=set)

    def patches(self) -> Mapping[str, Any]:
        return {
            "_BoardView": self._view,
            "_catchup_all": self._catchup,
            "_project_catchup_pages": self._project,
            "_ticket_projection": self._projection,
            "_filter_relevant": self._relevant,
            "_is_relevant": self._is_relevant,
            "_scan_open_backlog": self._scan,
            "_push_cues": self._push,
            "_log": lambda text: None,
            "clamp_timeout": lambda timeout_s, role=None: timeout_s,
            "AGENT_NAME": SEAT,
            "WAIT_MODE": self.mode,
            "DEFAULT_POLL_INTERVAL_S": 0.002,
            "BACKLOG_SCAN_INTERVAL_S": 0.005 if any(board.scanned for board in self.boards.values()) else 30.0,
            "_BOARD_DENIALS": {},
            "_IMMEDIATE_SYNTHETIC_CURSORS": type(bridge._IMMEDIATE_SYNTHETIC_CURSORS)(),
        }

    def client(self) -> Any:
        """The shared client, which is also the view of the home board."""
        return self._view(None, HOME)

    def _view(self, parent: Any, name: str) -> Any:
        board = self.boards.get(name) or Board(name)

        async def join(**arguments: Any) -> Json:
            if board.refused is not None:
                raise BoardClientError(board.refused)
            return {"agent_id": seat_id(name), "principal_id": PRINCIPAL, "agent_name": SEAT}

        async def offers() -> Json:
            first = name not in self.looked
            self.looked.add(name)
            return {"tickets": [] if first else list(board.offers)}

        return SimpleNamespace(
            name=name,
            identity=SimpleNamespace(principal_id=PRINCIPAL, agent_name=SEAT, role="worker"),
            board_join=join,
            dispatch_my_offers=offers,
        )

    async def _catchup(self, view: Any, cursor: Any, *rest: Any, **more: Any) -> Json:
        board = self.boards[view.name]
        first = view.name not in self.entered
        return {
            "events": list(board.read) if first else [],
            "cursor": board.cursor,
            "resynced": board.resynced,
            "partial": board.partial,
            "warnings": list(board.warnings) if first else [],
        }

    async def _project(self, *arguments: Any) -> Any:
        return [], set(), []

    async def _projection(self, *arguments: Any) -> Any:
        return [], True, None

    async def _relevant(self, view: Any, events: Any, *rest: Any, **more: Any) -> Any:
        return list(events)

    async def _is_relevant(self, *arguments: Any) -> bool:
        return True

    async def _scan(self, view: Any, *rest: Any, **more: Any) -> Any:
        first = view.name not in self.entered
        self.entered.add(view.name)
        return [] if first else list(self.boards[view.name].scanned)

    async def _push(self, name: str, view: Any, cursor: int, queue: Any) -> None:
        for kind, detail in self.boards[name].live:
            queue.put_nowait((name, kind, detail))
        await asyncio.Event().wait()


def wait_many(
    boards: Sequence[Board], since_seq: int | dict[str, int] | None, mode: Literal["push", "poll"] = "push"
) -> dict[str, Json]:
    """What the bridge's multi-board wait returns."""
    wait = _Wait({board.name: board for board in boards}, mode)
    with _patched(wait.patches()):
        names = [board.name for board in boards]
        return _finished(
            lambda: bridge._wait_for_work_many(wait.client(), boards=names, since_seq=since_seq, timeout_s=0.03)
        )


def wait_one(board: Board, since_seq: int | None, mode: Literal["push", "poll"] = "poll") -> dict[str, Json]:
    """What the bridge's single-board wait returns; the board must be HOME."""
    wait = _Wait({board.name: board}, mode)
    with _patched(wait.patches()):
        return _finished(lambda: bridge._wait_for_work(wait.client(), since_seq=since_seq, timeout_s=0.03))


def _finished(waiting: Callable[[], Awaitable[Any]]) -> dict[str, Json]:
    """The result of a wait in virtual time, which a busy machine cannot make shorter than what it waits for."""
    with mock.patch.object(bridge, "time", SimpleNamespace(monotonic=now, time=time.time)):
        return dict(run(waiting))


@dataclass(frozen=True)
class Choice:
    """Which boards the bridge waits on for a call."""

    boards: tuple[str, ...]
    shape: Literal["single", "multi"]
    cursors: dict[str, int | None]
    routed: bool
    registry_warning: str | None
    read: bool
    """Whether it read the registry."""


def choose(boards: Json, since_seq: Json, boards_filter: str | None, registry: Json) -> Choice:
    """What the bridge makes of a call; `registry` is a validated one or the exception of its read."""
    seen: dict[str, Any] = {"routed": False, "read": False}

    async def read(client: object) -> Json:
        seen["read"] = True
        if isinstance(registry, Exception):
            raise registry
        return registry

    async def one(client: object, *, since_seq: int | None, **more: Any) -> Json:
        return {"shape": "single", "boards": (HOME,), "cursors": {HOME: since_seq}}

    async def many(client: object, *, boards: list[str], since_seq: Json, **more: Any) -> Json:
        order = bridge._normalize_boards(boards)
        cursors = bridge._multi_cursors(order, since_seq) if since_seq is not None else dict.fromkeys(order)
        return {"shape": "multi", "boards": tuple(order), "cursors": cursors}

    def enrich(result: Json, registry: Json, *, claimable: bool) -> Json:
        seen["routed"] = True
        return result

    patches = {
        "_read_project_registry": read,
        "_wait_for_work": one,
        "_wait_for_work_many": many,
        "_enrich_registry_routes": enrich,
    }
    with _patched(patches), _pursers_boards(boards_filter):
        found = asyncio.run(bridge._a2a_wait_impl(None, since_seq, boards=boards))
    return Choice(**{"registry_warning": None, **seen, **found})


def claimable(wait_for: str, role: str | None) -> bool:
    """Whether the bridge takes a call for one that waits for work to claim."""
    seen: list[bool] = []

    async def nothing(*arguments: Any, **more: Any) -> Json:
        return {"projects": {}}

    def enrich(result: Json, registry: Json, *, claimable: bool) -> Json:
        seen.append(claimable)
        return result

    patches = {
        "_read_project_registry": nothing,
        "_wait_for_work_many": nothing,
        "_enrich_registry_routes": enrich,
        "_declared_role": lambda: role,
    }
    with _patched(patches), _pursers_boards(None):
        asyncio.run(bridge._a2a_wait_impl(None, 0, boards="registry", wait_for=wait_for))
    return seen[0]


@contextmanager
def _pursers_boards(value: str | None) -> Iterator[None]:
    others = {name: member for name, member in os.environ.items() if name != "PURSERS_BOARDS"}
    with mock.patch.dict(os.environ, others | ({} if value is None else {"PURSERS_BOARDS": value}), clear=True):
        yield


@contextmanager
def _patched(attributes: Mapping[str, Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in attributes.items():
            stack.enter_context(mock.patch.object(bridge, name, value))
        yield
