"""Read a seat's journal page by page, without any effect at Central (touch=false)."""

import logging
from collections.abc import AsyncIterator
from typing import Any

from pursersd.central.pool import Pool
from pursersd.errors import Overloaded, ProtocolRefused, ToolFailed, Unreachable
from pursersd.lanes import Lanes
from pursersd.seats.seat import Seat, Seats, is_of_another_generation

PAGE = {"limit": 500, "max_events": 500, "max_bytes": 750_000}
"""Page bounds of a catchup (bridge.md §2.1)."""

ACKNOWLEDGEMENTS = 3
"""How often an acknowledgement is sent, each time after Central has answered something else."""

log = logging.getLogger(__name__)

_AHEAD = "cursor is ahead of journal"

_NUMBERS = ("next_cursor", "latest_cursor", "scan_count")


class CursorAhead(Exception):
    """The cursor lies beyond the end of the journal; `head` is where the journal ends."""

    def __init__(self, head: int) -> None:
        super().__init__(f"cursor is ahead of the journal, which ends at {head}")
        self.head = head


class Catchup:
    """Pure catchups of one pool; joins a seat again when Central asks for it."""

    def __init__(self, pool: Pool, seats: Seats) -> None:
        self._pool = pool
        self._seats = seats
        self._own_cursor = Lanes()
        """By agent id: taken while a seat's own cursor at Central is moved, or read from."""

    def head_of(self, board: str) -> int | None:
        """Where the board's journal ended when anybody here read it last; None if nobody has. Central is not asked."""
        return self._pool.heads.get(board)

    async def page(self, seat: Seat, cursor: int | None, *, background: bool = False) -> dict[str, Any]:
        """One page after `cursor`; None reads from the seat's own cursor at Central, once it is where it must be.

        Raises CursorAhead, ToolFailed and the other CentralErrors.
        """
        if cursor is None:
            # The host may call again before Central has heard what it was given: it would be given the same twice.
            async with self._own_cursor.lane(seat.agent_id):
                return await self._page(seat, None, background)
        return await self._page(seat, cursor, background)

    async def pages(self, seat: Seat, cursor: int | None, *, background: bool = False) -> AsyncIterator[dict[str, Any]]:
        """All pages from `cursor` to the head, in order; a page that asks for a resync is yielded and jumped over."""
        while True:
            page = await self.page(seat, cursor, background=background)
            yield page
            before, cursor = cursor, position_after(page)
            if not page.get("has_more") and not page.get("resync_required"):
                return
            if before is not None and cursor <= before:
                raise ProtocolRefused(f"Central answered board_catchup with a page that does not lead on from {before}")

    async def head(self, seat: Seat) -> int:
        """Where the journal ends."""
        return await self._seats.seated(seat, lambda seat: self._head(seat, background=True))

    async def acknowledge(self, seat: Seat, cursor: int) -> None:
        """Move the seat's cursor at Central to `cursor`: exactly there, whatever has happened since.

        Central acknowledges the end of the page that it serves (central.md §6.1), so we ask for the one row before it.
        This is model activity (touch=true): the model has just been given these events. A Central that does not answer is
        waited for: without the acknowledgement the seat would be given the same again. In a journal that is numbered anew
        the cursor means nothing, so there it is not moved.
        """
        if cursor <= 0:
            return
        arguments = {**_arguments(seat, cursor - 1), "limit": 1, "touch": True, "ack": True}
        async with self._own_cursor.lane(seat.agent_id):
            for _ in range(ACKNOWLEDGEMENTS - 1):
                try:
                    await self._acknowledge(seat, arguments)
                    return
                except (Unreachable, Overloaded) as error:
                    log.info("%s on %s: acknowledging again later: %s", seat.agent_name, seat.board, error)
                    await self._pool.reach.back()
            await self._acknowledge(seat, arguments)

    async def _acknowledge(self, seat: Seat, arguments: dict[str, Any]) -> None:
        # Reading is allowed to a seat that left, this is not: the caller would be given the same for ever.
        try:
            await self._seats.seated(
                seat, lambda _: self._pool.read("board_catchup", arguments, generation=seat.generation)
            )
        except ToolFailed as error:
            if not is_of_another_generation(error):
                raise
            log.info("%s on %s: the journal is another one now, nothing is acknowledged", seat.agent_name, seat.board)

    async def _page(self, seat: Seat, cursor: int | None, background: bool) -> dict[str, Any]:
        try:
            return await self._seats.seated(seat, lambda seat: self._read(seat, cursor, PAGE, background))
        except ToolFailed as error:
            if not str(error).startswith(_AHEAD):
                raise
            raise CursorAhead(await self._head(seat, background)) from error

    async def _head(self, seat: Seat, background: bool) -> int:
        first_row = await self._read(seat, 0, {"limit": 1}, background)
        return int(first_row["latest_cursor"])

    async def _read(self, seat: Seat, cursor: int | None, bounds: dict[str, int], background: bool) -> dict[str, Any]:
        arguments = {**_arguments(seat, cursor), **bounds, "touch": False, "ack": False}
        page = _checked(await self._pool.read("board_catchup", arguments, background=background))
        self._pool.heads[seat.board] = page["latest_cursor"]
        self._seats.observer.events(seat.board, page["events"])
        return page


def _checked(page: dict[str, Any]) -> dict[str, Any]:
    """The page, which everybody who waits on this board will trust, or ProtocolRefused."""
    events = page.get("events")
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise ProtocolRefused("Central answered board_catchup with a page without a list of events")
    for name in (*_NUMBERS, "reset_cursor") if page.get("resync_required") else _NUMBERS:
        if not isinstance(page.get(name), int):
            raise ProtocolRefused(f"Central answered board_catchup with a page without {name}")
    return page


def _arguments(seat: Seat, cursor: int | None) -> dict[str, Any]:
    arguments: dict[str, Any] = {"board_id": seat.board, "agent_name": seat.agent_name}
    if cursor is not None:
        arguments["cursor"] = cursor
    return arguments


def position_after(page: dict[str, Any]) -> int:
    """Where to read on after a page: behind it, or at the reset cursor when the journal no longer has our place."""
    if page.get("resync_required"):
        return int(page["reset_cursor"])
    return int(page["next_cursor"])
