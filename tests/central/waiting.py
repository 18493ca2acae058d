"""a2a_wait's engine without a conversation: a caller with settings of its own, on a real pool."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio import to_thread

from central.feeding import PATIENCE, eventually, pool
from pursersd.central.pool import PoolKey
from pursersd.feed.centrals import Central
from pursersd.rules import arguments
from pursersd.rules.denials import Denials
from pursersd.rules.suppression import Suppression, SyntheticGuard
from pursersd.seats.seat import SeatRequest
from pursersd.settings import Settings, resolve
from pursersd.waits import engine
from pursersd.waits.board import BoardWait, Memory
from pursersd.waits.caller import Caller
from rig.central import Central as Server


@dataclass
class Lasting:
    """A credential that nobody replaces."""

    settings: Settings
    key: PoolKey | None = None

    def refused(self) -> bool:
        return False

    def until_renewed(self) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass
class Waiting:
    """One conversation's waits. `environ` are its settings; the last wait's boards are in `boards`."""

    central: Central
    board: str
    name: str
    environ: dict[str, str] = field(default_factory=dict)
    progress_every_s: float | None = None
    progress: list[tuple[float, float, str]] = field(default_factory=list)
    capabilities: tuple[tuple[str, Any], ...] | None = None
    boards: list[BoardWait] = field(default_factory=list)
    waited: engine.Waited | None = None
    _memory: Memory | None = None

    async def wait(self, since_seq: int | None = None, timeout_s: int = 20, *, age_s: float = 0.0, **given: Any) -> Any:
        """One call of a2a_wait; returns its result."""
        caller = self._caller()
        checked = arguments.check(
            since_seq=since_seq,
            timeout_s=timeout_s,
            timeout_given=True,
            **{
                "only_mine": True,
                "project": None,
                "agent_name": None,
                "boards": None,
                "wait_for": "auto",
                "block_limit_s": caller.settings.host.block_limit_s,
                **given,
            },
        )
        self.waited = await engine.wait(caller, checked, age_s=age_s)
        return self.waited.result

    async def caught_up(self) -> int:
        """The cursor of a caller that knows all there is: the end of the board's journal."""
        boards = (await self.central.pool.read("board_list", {}))["boards"]
        return next(int(found["latest_seq"]) for found in boards if found["board_id"] == self.board)

    async def acknowledge(self) -> None:
        """What happens when the shim has said that the host has the last wait's result."""
        assert self.waited is not None
        assert self.waited.acknowledge is not None
        await self.waited.acknowledge()

    @property
    def is_blocking(self) -> bool:
        """Whether the wait has read its history and waits for what comes, on both streams."""
        return bool(self.boards) and all(
            board.entered
            and not board.waiter.marks
            and board.waiter.opened
            and (not board.waiter.push or board.waiter.seat.uri in self.central.feed.seats.covered)
            for board in self.boards
        )

    def _caller(self) -> Caller:
        settings = resolve(
            {
                "ONBOARD_CENTRAL_TOKEN": "held by the pool",
                "ONBOARD_BOARD_ID": self.board,
                "ONBOARD_AGENT_NAME": self.name,
                "PURSERS_ROLE": "worker",
                **self.environ,
            },
            lambda path: "",
        )
        if self._memory is None:
            self._memory = Memory(Suppression(settings.resurface_s), SyntheticGuard(settings.resurface_s))
        self.boards = []
        settings = replace(settings, host=replace(settings.host, progress_every_s=self.progress_every_s))
        return Caller(
            id="test",
            settings=settings,
            renewal=Lasting(settings),
            memory=self._memory,
            denials=Denials(),
            connect=self._connect,
            seat_request=lambda board, name: SeatRequest(
                board, self.name if name is None else name, settings.role, self.capabilities
            ),
            watching=self._watching,
            progress=self._report,
        )

    async def _connect(self) -> Central:
        return self.central

    def _watching(self, boards: Sequence[BoardWait]) -> None:
        self.boards = list(boards)

    async def _report(self, waited_s: float, total_s: float, text: str) -> None:
        self.progress.append((waited_s, total_s, text))


@asynccontextmanager
async def waiting(
    url: str, token: str, board: str, name: str = "ann", *, instance_id: str | None = None, **options: Any
) -> AsyncIterator[Waiting]:
    async with pool(url, token, instance_id) as ours:
        yield Waiting(ours, board, name, **options)


@asynccontextmanager
async def blocking(
    ann: Waiting, since_seq: int | None, timeout_s: int = 20, **given: Any
) -> AsyncIterator[list[dict[str, Any]]]:
    """A wait that blocks during the block; its result is in the list after it, at most PATIENCE later."""
    results: list[dict[str, Any]] = []

    async def wait() -> None:
        results.append(await ann.wait(since_seq, timeout_s, **given))

    with anyio.fail_after(timeout_s + PATIENCE):
        async with anyio.create_task_group() as tasks:
            ann.boards = []
            tasks.start_soon(wait)
            await eventually(lambda: ann.is_blocking)
            yield results


async def make(central: Server, board: str, title: str) -> str:
    return await to_thread.run_sync(central.create_ticket, board, title)


def tickets(result: dict[str, Any]) -> list[str]:
    return [event["ticket_id"] for event in result["events"]]
