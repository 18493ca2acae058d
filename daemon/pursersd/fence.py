"""The fence around this daemon: from the moment that a newer one exists it has no effect any more, and it says so.

A lock held for life cannot be lost; its file can. Who cleans the runtime folder takes the lock's name away, and the next
daemon makes a file of its own and locks that (docs/decisions/0017). So the lock counts only while the file at its path is
the one that we hold, which costs one system call to know, and the epoch in the state folder only while nobody counted on.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

import anyio

from pursersd.errors import OwnershipError
from pursersd.ownership import Ownership
from pursersd.rules.fencing import Lock, Standing, standing
from pursersd.state.epoch import read_epoch, restore_epoch

log = logging.getLogger(__name__)

LOOK = 5.0
"""Seconds between two looks at what nobody asks about."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Why this daemon must leave."""

    reason: str
    is_superseded: bool
    """A newer one exists or has existed: nothing that we began is ours to finish."""


class Fence:
    """Knows whether this daemon still is the daemon; `watch()` returns when it is not."""

    def __init__(self, ownership: Ownership, state: Path, epoch: int) -> None:
        self._ownership = ownership
        self._state = state
        self._epoch = epoch
        self._stir = anyio.Event()
        self._told: str | None = None
        """The trouble that the log has been told of, so that it is not told at every look."""

    def holds(self) -> bool:
        """Whether nobody else can be the daemon at this moment. Locks again what nobody else has locked."""
        if self._ownership.is_held:
            return True
        self._stir.set()
        return self._regain() is not Lock.TAKEN

    async def admit(self) -> None:
        """Return when an effect outside this process is ours to have: at once, or never, because `watch` ends us."""
        while not self.holds():
            await anyio.sleep(LOOK)

    async def watch(self) -> Lost:
        """Look from time to time and whenever the lock's file was not ours; repair what can be. Returns why we must leave."""
        while True:
            with anyio.move_on_after(LOOK):
                await self._stir.wait()
            self._stir = anyio.Event()
            lost = self._look()
            if lost is not None:
                return lost

    def _regain(self) -> Lock:
        lock = self._ownership.regain()
        if lock is Lock.HELD:
            log.warning("%s was removed or replaced; it is locked again", self._ownership.place.lock)
        return lock

    def _look(self) -> Lost | None:
        ours = self._ownership
        lock = Lock.HELD if ours.is_held else self._regain()
        counted = read_epoch(self._state)
        match standing(lock, counted=counted, epoch=self._epoch, socket_is_ours=ours.has_socket):
            case Standing.SUPERSEDED:
                who, hint = f"holds {ours.place.lock}", ""
                if lock is not Lock.TAKEN:
                    who = f"has counted epoch {counted} in {self._state}"
                    hint = (
                        " If it is on another machine with the same machine id, give each a PURSERSD_HOME of its own."
                    )
                text = (
                    f"A newer pursersd {who}: this one (epoch {self._epoch}) has no effect any more and leaves.{hint}"
                )
                return Lost(text, True)
            case Standing.UNREACHABLE:
                return Lost(
                    f"{ours.place.socket} was removed or replaced: nobody reaches this pursersd, it leaves.", False
                )
            case Standing.BLOCKED:
                self._tell(f"{ours.place.folder} or the lock in it was replaced: nobody new reaches this pursersd.")
            case Standing.FORGOTTEN:
                self._count_again()
            case Standing.OURS:
                self._told = None
        return None

    def _count_again(self) -> None:
        """The state folder went back in time; the next daemon must not count what we have counted already."""
        try:
            restore_epoch(self._state, self._epoch)
        except OwnershipError as error:
            self._tell(str(error))
        else:
            log.warning("the epoch in %s had gone back; it is %d again", self._state, self._epoch)

    def _tell(self, trouble: str) -> None:
        if trouble != self._told:
            log.warning("%s", trouble)
        self._told = trouble
