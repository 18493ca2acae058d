"""Which rows of a list are wanted, and in which order. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeVar, get_args

from pursersd import api

Sort = Literal["seat", "board", "host", "role", "state", "for", "age", "left", "lag", "wakes"]
SORTS: tuple[str, ...] = get_args(Sort)

Row = TypeVar("Row", api.SeatRow, api.EndedRow)

_LARGEST_FIRST = ("for", "age", "lag", "wakes")


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted. Patterns are of names as in a shell (`bench-*`), whatever their case; of several one must fit."""

    states: tuple[str, ...] = ()
    boards: tuple[str, ...] = ()
    seats: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    sort: str | None = None
    """One of SORTS; None for the usual order."""
    reverse: bool = False


def pick(rows: Sequence[Row], wish: Wish) -> list[int]:
    """The places in `rows` of what is wanted, in the wanted order; what has nothing to sort by comes last."""
    places = [i for i, row in enumerate(rows) if _is_wanted(row, wish)]
    if wish.sort is None:
        places = places if isinstance(next(iter(rows), None), api.EndedRow) else _usual(rows, places)
        return places[::-1] if wish.reverse else places
    key = _key(wish.sort)
    known: list[tuple[str | float, int]] = [(value, i) for i in places if (value := key(rows[i])) is not None]
    known.sort(key=lambda pair: pair[0], reverse=wish.reverse != (wish.sort in _LARGEST_FIRST))
    unknown: list[int] = [i for i in places if key(rows[i]) is None]
    return [*(i for _, i in known), *unknown]


def _is_wanted(row: api.SeatRow | api.EndedRow, wish: Wish) -> bool:
    boards = [row.board, *row.boards] if isinstance(row, api.SeatRow) else [row.board]
    state = row.state if isinstance(row, api.SeatRow) else None
    return (
        _fits(wish.states, state)
        and _fits(wish.boards, *boards)
        and _fits(wish.seats, row.seat)
        and _fits(wish.hosts, row.host)
        and _fits(wish.roles, row.role)
    )


def _fits(patterns: tuple[str, ...], *names: str | None) -> bool:
    known = [name.lower() for name in names if name is not None]
    return not patterns or any(fnmatchcase(name, pattern.lower()) for pattern in patterns for name in known)


def _usual(rows: Sequence[Row], places: list[int]) -> list[int]:
    """By board, seat and conversation, the unknown last."""

    def order(i: int) -> tuple[bool, str, bool, str, str]:
        row = rows[i]
        board, seat = (row.board or "").lower(), (row.seat or "").lower()
        return (row.board is None, board, row.seat is None, seat, row.conversation)

    return sorted(places, key=order)


def _key(sort: str) -> Callable[[api.SeatRow | api.EndedRow], str | float | None]:
    """What to sort by."""

    def key(row: api.SeatRow | api.EndedRow) -> str | float | None:
        if sort in ("seat", "board", "host", "role"):
            name: str | None = getattr(row, sort)
            return None if name is None else name.lower()
        if sort == "age":
            return row.age_s
        if sort == "for":
            return row.since_s if isinstance(row, api.SeatRow) else row.ago_s
        if isinstance(row, api.EndedRow):
            return None
        if sort == "left":
            return min((lease.left_s for lease in row.leases), default=None)
        return {"state": row.state, "lag": row.lag, "wakes": row.wakes}[sort]

    return key
