"""The fence around this daemon: from the moment that a newer one exists it has no effect any more, and it says so.

A lock held for life cannot be lost; its file can. Who cleans the runtime folder takes the lock's name away, and the next
daemon makes a file of its own and locks that (docs/decisions/0009). So the lock counts only while the file at its path is
the one that we hold, which costs one system call to know, and the epoch in the state folder only while nobody counted on.
"""

import logging
from pathlib import Path

import anyio

from pursersd.errors import OwnershipError
from pursersd.ownership import Ownership
from pursersd.rules.fencing import Lock, Standing, standing
from pursersd.state.epoch import read_epoch, restore_epoch

log = logging.getLogger(__name__)

LOOK = 5.0
"""Seconds between two looks at what nobody asks about."""


class Fence:
    """Knows whether this daemon still is the daemon; `watch()` returns when it is not."""

    def __init__(self, ownership: Ownership, state: Path, epoch: int) -> None:
        self._ownership = ownership
        self._state = state
        self._epoch = epoch
        self._stir = anyio.Event()
        self._cannot_count = False

    def holds(self) -> bool:
        """Whether nobody can have become the daemon since the last look; else the watch looks closer at once."""
        if self._ownership.is_held:
            return True
        self._stir.set()
        return False

    async def admit(self) -> None:
        """Return when an effect outside this process is ours to have: at once, or never, because `watch` ends us."""
        while not self.holds():
            await anyio.sleep(LOOK)

    async def watch(self) -> str:
        """Look from time to time and whenever `holds` is false; repair what can be repaired. Returns why we must leave."""
        while True:
            with anyio.move_on_after(LOOK):
                await self._stir.wait()
            self._stir = anyio.Event()
            reason = self._look()
            if reason is not None:
                return reason

    def _look(self) -> str | None:
        ours = self._ownership
        was_held = ours.is_held
        lock = Lock.HELD if was_held else ours.regain()
        counted = read_epoch(self._state)
        match standing(lock, counted=counted, epoch=self._epoch, socket_is_ours=ours.has_socket):
            case Standing.SUPERSEDED:
                who = (
                    f"holds {ours.place.lock}"
                    if lock is Lock.TAKEN
                    else f"has counted epoch {counted} in {self._state}"
                )
                return f"A newer pursersd {who}: this one (epoch {self._epoch}) has no effect any more and leaves."
            case Standing.UNREACHABLE:
                return f"Lock or socket in {ours.place.folder} was removed or replaced: nobody reaches this pursersd, it leaves."
            case Standing.FORGOTTEN:
                self._count_again()
            case Standing.OURS:
                self._cannot_count = False
        if not was_held:
            log.warning("%s was removed or replaced; it is locked again", ours.place.lock)
        return None

    def _count_again(self) -> None:
        """The state folder went back in time; the next daemon must not count what we have counted already."""
        try:
            restore_epoch(self._state, self._epoch)
        except OwnershipError as error:
            if not self._cannot_count:
                log.warning("%s", error)
            self._cannot_count = True
        else:
            log.warning("the epoch in %s had gone back; it is %d again", self._state, self._epoch)
