"""The doors of the local board in `doors.json`: one for each role, stored once Central has accepted it.

No seat is taken with them: one that nobody sits on would be offered work, and a seat that declares itself turns the whole
board to offers. Seats are for the conversations that come (docs/decisions/0030).
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from anyio import to_thread

from pursersd.api import LocalDoor
from pursersd.errors import LocalBoardError
from pursersd.feed.centrals import Centrals
from pursersd.local.founding import is_accepted
from pursersd.local.instance import Instance
from pursersd.rules import door_list
from pursersd.rules import local_board as rules
from pursersd.rules.door import Door
from pursersd.rules.door_request import requested
from pursersd.state.doors import Doors


async def require_own(doors: Doors, board: str, port: int) -> None:
    """Raise LocalBoardError if a door of another Central is stored for this board. Raises DoorsError."""
    stored = await to_thread.run_sync(doors.load)
    if any(door.board == board and door.url != rules.url(port) for door in _ours(stored, board)):
        raise LocalBoardError(
            f"A door for a board {board} at another Central is stored. Choose another name for the local one: "
            "pursersctl local up --board NAME",
            code="local_board_taken",
        )


async def keep_doors(centrals: Centrals, instance: Instance, doors: Doors, board: str, port: int) -> list[LocalDoor]:
    """See to it that a door which Central accepts is stored for each role. Raises LocalBoardError and DoorsError."""
    kept = []
    for role in rules.ROLES:
        stored = door_list.find(await to_thread.run_sync(doors.load), board, role)
        if stored is not None and await is_accepted(centrals, stored):
            kept.append(_kept(instance, stored, is_new=False))
            continue
        door = requested(await instance.issue(board, role, port), name=None, role=None, allow_remote=False)
        if not await is_accepted(centrals, door):
            raise LocalBoardError(f"The local board's Central does not accept the {role}'s door that was just issued.")
        await to_thread.run_sync(partial(doors.store, door, rotate=stored is not None))
        kept.append(_kept(instance, door, is_new=True))
    return kept


def remove_doors(folders: Sequence[str], board: str, port: int) -> list[str]:
    """Delete the doors that lead to the local board; returns which. Raises DoorsError."""
    removed = []
    for doors in (Doors(Path(folder)) for folder in folders):
        for door in _ours(doors.load(), board):
            if door.url == rules.url(port) and doors.forget(board, door.role):
                removed.append(f"door {board} ({door.role}) in {doors.folder}")
    return removed


def other_boards(stored: Sequence[Door], board: str) -> list[str]:
    """The boards of the other stored doors."""
    return sorted({door.board for door in stored} - {board})


def _kept(instance: Instance, door: Door, *, is_new: bool) -> LocalDoor:
    file = instance.hand_out(door.role, door.token)
    return LocalDoor(board=door.board, role=door.role, kid=door.kid, is_new=is_new, token_file=str(file))


def _ours(stored: Sequence[Door], board: str) -> list[Door]:
    return [door for door in stored if door.board == board and door.role in rules.ROLES]
