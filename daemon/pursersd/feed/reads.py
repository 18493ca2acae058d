"""Reads that depend on the credential and not on the seat, shared by all waiters of a pool (central.md §6.6).

An answer may serve again as long as nothing has happened on the board since it was asked for: no cue arrived, and it is
at least as new as the journal position that the reader has already seen. Not for ever, because not everything is cued.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from pursersd.central.pool import Pool
from pursersd.rules.id_map import expand_ids
from pursersd.seats.observer import Observer

KEPT = 64
"""Answers kept per board until its next cue; the one that nobody has used for longest goes first."""


FRESH = 300.0
"""Seconds for which an answer serves. Central changes some things without an event: the tier, the skills or the exclusions
of a ticket, and with them whether it is everybody's; what has run out and was not reaped yet."""


@dataclass(slots=True)
class _Entry:
    """One question: being asked by somebody (`done` unset) or answered."""

    asked_at: float
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: dict[str, Any] | None = None


class SharedReads:
    """The shared reads of one board."""

    def __init__(
        self,
        pool: Pool,
        board: str,
        observer: Observer | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool = pool
        self._board = board
        self._observer = observer or Observer()
        self._clock = clock
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        """What was asked since the newest cue."""

    def __repr__(self) -> str:
        return f"<SharedReads {self._board}: {len(self._entries)}/{KEPT}>"

    def cued(self) -> None:
        """Something happened on the board: answers asked for earlier are history, and are let go of."""
        self._entries.clear()

    async def read(
        self, tool: str, arguments: Mapping[str, Any], *, at_least: int = 0, live: bool = True
    ) -> dict[str, Any]:
        """The answer of `tool`, at least as new as journal position `at_least` and as the newest cue.

        With `live` false no stream tells what happens on the board, so every reader asks for itself.
        """
        key = (tool, tuple(sorted(arguments.items(), key=lambda item: item[0])))
        entry = self._entries.get(key)
        while entry is not None and live and self._serves(entry):
            await entry.done.wait()
            if entry.answer is not None and int(entry.answer.get("latest_seq", 0)) >= at_least:
                if self._entries.get(key) is entry:
                    self._entries.move_to_end(key)
                return entry.answer
            # The one who asked was cancelled or failed, or asked too early: ask ourselves, unless somebody already does.
            following = self._entries.get(key)
            entry = following if following is not entry else None
        return await self._ask(key, tool, arguments)

    def _serves(self, entry: _Entry) -> bool:
        return self._clock() < entry.asked_at + FRESH

    async def _ask(self, key: Hashable, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        entry = self._entries[key] = _Entry(self._clock())
        self._entries.move_to_end(key)
        while len(self._entries) > KEPT:
            self._entries.popitem(last=False)
        try:
            answer = await self._pool.read(tool, {"board_id": self._board, **arguments}, background=True)
            entry.answer = expand_ids(answer)  # once for all who share it
            self._observer.tickets(self._board, entry.answer)
            return entry.answer
        finally:
            entry.done.set()
            if entry.answer is None and self._entries.get(key) is entry:
                del self._entries[key]
