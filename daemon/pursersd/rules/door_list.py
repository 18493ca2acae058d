"""How a list of stored doors changes: it has one door for each board and role (bridge.md §9)."""

from collections.abc import Sequence
from dataclasses import replace

from pursersd.errors import DoorsError
from pursersd.rules import seat_name
from pursersd.rules.door import Door


def find(doors: Sequence[Door], board: str, role: str) -> Door | None:
    """The stored door for a board and role, None if there is none."""
    return next((door for door in doors if (door.board, door.role) == (board, role)), None)


def stored(doors: Sequence[Door], door: Door, *, rotate: bool, joined_at: str) -> tuple[Door, ...]:
    """The list with `door` in it. Another token for the same board and role wants `rotate`, and `rotate` wants one.

    The names that were used stay. Raises DoorsError with the bridge's text.
    """
    known = find(doors, door.board, door.role)
    if rotate and known is None:
        raise DoorsError("--rotate requires an existing door for the same board and role")
    if known is not None and not rotate and known.token != door.token:
        raise DoorsError("a door already exists for this board and role; use --rotate")
    names = known.seat_names_used if known else ()
    return _with(doors, replace(door, joined_at=joined_at, seat_names_used=names))


def forgotten(doors: Sequence[Door], board: str, role: str) -> tuple[Door, ...]:
    """The list without the door for a board and role."""
    return tuple(door for door in doors if (door.board, door.role) != (board, role))


def reserved(
    doors: Sequence[Door], board: str, role: str, name: str | None, hostname: str
) -> tuple[tuple[Door, ...], str]:
    """The list with a name noted as used, and that name: `name`, or the next automatic one.

    Raises DoorsError with the bridge's text if the name is not safe or there is no such door.
    """
    door = find(doors, board, role)
    if door is None:
        raise DoorsError("no stored door matches the selected board and role")
    used = door.seat_names_used
    if name is None:
        name = seat_name.automatic(role, hostname, used)
    elif not seat_name.is_safe(name):
        raise DoorsError("seat name must be a safe 1-80 character identifier")
    if name not in used:
        used = (*used, name)
    return _with(doors, replace(door, seat_names_used=used)), name


def _with(doors: Sequence[Door], door: Door) -> tuple[Door, ...]:
    others = forgotten(doors, door.board, door.role)
    return tuple(sorted((*others, door), key=lambda door: (door.board, door.role)))
