"""The local board: a Central of this user's own, for who has none (`pursersctl local`).

The wish for it is on disk and holds for every daemon that comes; its Central is one process that outlives us
(docs/decisions/0029).
"""

import logging
import random
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus

from pursersd import api
from pursersd.errors import LocalBoardError, Unauthenticated
from pursersd.feed.centrals import Centrals
from pursersd.local import health
from pursersd.local.doors import keep_doors, other_boards, remove_doors, require_own
from pursersd.local.founding import Owner
from pursersd.local.instance import RENEW_BEFORE, Instance, require_installed
from pursersd.local.process import CentralProcess
from pursersd.local.record import Record, load, record_file, save
from pursersd.local.supervisor import Supervisor
from pursersd.rules import local_board as rules
from pursersd.state.doors import Doors

log = logging.getLogger(__name__)


class LocalBoard:
    """Owns the files below `folder` and the wish for the board; `run()` owns the task that keeps it served."""

    def __init__(self, folder: Path, centrals: Centrals, daemon_lock: str) -> None:
        self._folder = folder.resolve()  # Central takes no path with a link in it
        self._file = record_file(self._folder)
        self._centrals = centrals
        self._instance = Instance(self._folder)
        self._process = CentralProcess(self._folder, daemon_lock)
        self._supervisor = Supervisor(self._process, self._instance.root)
        self._record: Record | None = None
        self._trouble: str | None = None
        """Why the record cannot be used."""
        self._tasks: TaskGroup | None = None
        self._keeping: anyio.CancelScope | None = None
        self._kept = anyio.Event()
        """Set when the task of `_keeping` has ended."""
        self._one_at_a_time = anyio.Lock()

    @property
    def is_wanted(self) -> bool:
        """Whether the board is to be served: then this daemon is needed."""
        return self._record is not None and self._record.wanted

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Serve the board for as long as it is wanted, until cancelled. Its Central goes on then, for the next daemon."""
        try:
            self._record = await to_thread.run_sync(load, self._file)
        except LocalBoardError as error:
            self._trouble = str(error)
            log.warning("%s", error)
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            if self.is_wanted:
                await self._begin()
            task_status.started()
            await anyio.sleep_forever()

    async def up(self, request: api.LocalUp) -> api.LocalBoard:
        """Serve the board from now on, and keep a door for each role; what is done already is not done again.

        Raises LocalBoardError, DoorsError or CentralError. Once its Central could be made, it stays wanted also then.
        """
        async with self._one_at_a_time:
            require_installed()
            record = await self._wish(request)
            board, port, doors = record.board, record.port, Doors(Path(request.folder))
            await require_own(doors, board, port)
            if self._record is None:  # before there is anything that would have to be deleted
                await self._note(msgspec.structs.replace(record, wanted=False))
            await self._instance.prepare(board, port)
            await self._note(record)
            if self._supervisor.state != "running":
                await self._halt()
                await self._begin()
            await self._answering()
            await self._found(board, port)
            kept = await keep_doors(self._centrals, self._instance, doors, board, port)
            others = other_boards(await to_thread.run_sync(doors.load), board)
            return api.LocalBoard(local=self.status(), doors=kept, notes=_notes(board, others))

    async def down(self, *, reset: bool) -> api.LocalGone:
        """End its Central and do not start it again; with `reset` delete everything that `up` made.

        Raises LocalBoardError and DoorsError.
        """
        async with self._one_at_a_time:
            if self._record is not None and self._record.wanted:
                await self._note(msgspec.structs.replace(self._record, wanted=False))
            await self._halt()
            await self._process.end()
            removed = await to_thread.run_sync(self._remove) if reset else []
            return api.LocalGone(local=self.status(), removed=removed, kept=self._left() if reset else [])

    async def create_ticket(self, request: api.LocalTicket) -> api.LocalTicketMade:
        """Create a ticket on the board, as its owner. Raises LocalBoardError and CentralError."""
        record = self._record
        if record is None or self._supervisor.state != "running":
            raise LocalBoardError("The local board is not up. Bring it up with: pursersctl local up", code="local_down")
        ticket = await self._owner(record.port).create_ticket(record.board, request.title, request.description)
        return api.LocalTicketMade(ticket=ticket, board=record.board)

    async def leave(self) -> None:
        """This daemon leaves and no other one follows: end Central. It is still wanted when one comes all the same."""
        await self._halt()
        await self._process.end()

    def status(self) -> api.LocalStatus:
        """How it is."""
        record, found = self._record, self._supervisor
        state: api.LocalState = "none" if record is None else found.state
        return api.LocalStatus(
            state="failing" if self._trouble else state,
            board=record.board if record else None,
            url=rules.url(record.port) if record else None,
            port=record.port if record else None,
            pid=self._process.pid,
            up_s=_rounded(found.up_s),
            restarts=found.restarts,
            folder=str(self._folder),
            log=str(self._process.log),
            last_error=self._trouble or found.last_error,
            last_error_s=_rounded(found.last_error_s),
            next_try_s=_rounded(found.next_try_s),
        )

    # --- inside -----------------------------------------------------------------------------------------------------

    async def _wish(self, request: api.LocalUp) -> Record:
        """The record as the request wants it. Raises LocalBoardError for one that contradicts what there is."""
        if self._trouble:
            raise LocalBoardError(self._trouble, code="local_damaged")
        known = self._record
        if known is None:
            board = request.board or rules.BOARD
            if not rules.is_board(board):
                raise LocalBoardError("A board's name has 1 to 80 letters, digits, dots, dashes and underscores.")
            if self._instance.is_made:
                raise LocalBoardError(
                    f"{self._instance.root} is there without its record. Begin anew with: pursersctl local up --reset",
                    code="local_damaged",
                )
            return Record(board=board, port=_port(request.port), wanted=True, doors=[request.folder])
        for wanted, has, what in ((request.board, known.board, "named"), (request.port, known.port, "at port")):
            if wanted not in (None, has):
                raise LocalBoardError(
                    f"The local board is {what} {has}, and its doors say so. For another one, this one must go first: "
                    "pursersctl local down --reset"
                )
        folders = list(dict.fromkeys([*known.doors, request.folder]))
        return msgspec.structs.replace(known, wanted=True, doors=folders)

    async def _note(self, record: Record) -> None:
        await to_thread.run_sync(save, self._file, record)
        self._record = record

    async def _begin(self) -> None:
        assert self._tasks is not None, "LocalBoard.run() is not running"
        assert self._record is not None
        await self._tasks.start(self._keep, self._record.port)

    async def _keep(self, port: int, *, task_status: TaskStatus[None]) -> None:
        self._keeping, self._kept = anyio.CancelScope(), anyio.Event()
        try:
            with self._keeping:
                await self._supervisor.keep(port, task_status=task_status)
        finally:
            self._keeping = None
            self._kept.set()

    async def _halt(self) -> None:
        """Keep it served no longer; its Central is left alone."""
        if self._keeping is not None:
            self._keeping.cancel()
            await self._kept.wait()

    async def _answering(self) -> None:
        """Wait until Central answers. Raises LocalBoardError if it does not come up at the first attempt."""
        await self._supervisor.settled.wait()
        if self._supervisor.state != "running":
            raise LocalBoardError(
                f"The local board is not served: {self._supervisor.last_error}. It is tried again by itself. Give it up with: "
                "pursersctl local down, or begin anew with: pursersctl local up --reset",
                code="local_failing",
            )

    async def _found(self, board: str, port: int) -> None:
        """Found the board, and sign the owner's token anew if it ends soon or has ended."""
        try:
            left_s = await self._owner(port).found(board)
        except Unauthenticated:
            await self._instance.renew()
            left_s = await self._owner(port).found(board)
        if left_s is not None and left_s < RENEW_BEFORE:
            await self._instance.renew()

    def _owner(self, port: int) -> Owner:
        return Owner(self._centrals, port, self._instance.owner)

    def _remove(self) -> list[str]:
        """Delete what we made and nothing else."""
        record = self._record
        removed = remove_doors(record.doors, record.board, record.port) if record else []
        try:
            removed += self._instance.remove()
            log_file = self._process.log
            for file in (log_file, log_file.with_name(log_file.name + ".1"), self._process.lock, self._file):
                if file.exists():
                    file.unlink()
                    removed.append(str(file))
            if self._folder.exists() and not self._left():
                self._folder.rmdir()
        except OSError as error:
            raise LocalBoardError(
                f"{error.filename} cannot be deleted: {error.strerror}", code="local_folder"
            ) from error
        self._record = self._trouble = None
        return removed

    def _left(self) -> list[str]:
        return sorted(str(path) for path in self._folder.iterdir()) if self._folder.exists() else []


def _port(wanted: int | None) -> int:
    """A port for a new board. Raises LocalBoardError."""
    ports = [wanted] if wanted is not None else random.sample(rules.PORTS, len(rules.PORTS))
    for port in ports:
        if health.is_free(port):
            return port
    which = f"Port {wanted} is" if wanted is not None else f"All ports from {rules.PORTS[0]} to {rules.PORTS[-1]} are"
    raise LocalBoardError(
        f"{which} taken by other programs. Choose another one: pursersctl local up --port N", code="port_taken"
    )


def _notes(board: str, others: list[str]) -> list[str]:
    if not others:
        return []
    return [
        f"Doors for other boards are stored, too ({', '.join(others)}): in a host's configuration ONBOARD_BOARD_ID={board} "
        "means this one, and those that name no board must name theirs now."
    ]


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
