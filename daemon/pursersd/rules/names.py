"""Which name a conversation gets that came through a stored door and was given none (bridge.md §10, D12).

The bridge takes a name that was never used at each start, so that every start makes one more agent at Central. Here a name
is remembered for whoever had it: the same kind of host in the same folder gets it back.
"""

from collections.abc import Container, Iterable, Sequence

import msgspec

from pursersd.rules import seat_name

GIVEN_UP_S = 7 * 86_400.0
"""Seconds after which a name that its place does not use any more is for others, too: longer than Central keeps it active."""

PLACES = 64
"""So many automatic names does one door get; then those of other places are used again, the one used longest ago first."""

LIMIT = 1000
"""So many names are remembered in all."""


class DoorId(msgspec.Struct, frozen=True):
    """Which door a name belongs to."""

    url: str
    board: str
    role: str


class Place(msgspec.Struct, frozen=True):
    """Where a conversation lives: the same place gets the same name again."""

    host: str
    """Kind of host, such as `claude-code`."""
    folder: str


NOBODY = Place("", "")
"""Of a name that waits for the first place that wants one."""


class Entry(msgspec.Struct, frozen=True):
    """What is remembered of one name."""

    door: DoorId
    name: str
    place: Place | None = None
    """Whose name it is; None for one that its user chose."""
    conversation: str | None = None
    """The conversation that had it last."""
    shim: tuple[int, float] | None = None
    """The process of that conversation: pid and start time."""
    used_at: float = 0.0
    """When it was last taken, in seconds since 1970."""
    held: bool = False
    """Whether Central gave us the seat, or may have: then a join may take it over, for it is ours."""
    foreign: bool = False
    """Whether Central said that somebody else has it."""


class Wish(msgspec.Struct, frozen=True):
    """Who wants a name."""

    door: DoorId
    place: Place
    conversation: str


def choose(
    entries: Iterable[Entry], wish: Wish, *, taken: Container[str], used: Iterable[str], hostname: str, now: float
) -> str:
    """The name for a conversation: its own, else one of its place, else one that was given up, else a new one.

    `taken` are the names of other living conversations, `used` those that the door's file has seen: a name in it that is
    not remembered is a bridge's. `hostname` and `now` (seconds since 1970) are this machine's.
    """
    known = [entry for entry in entries if entry.door == wish.door]
    automatic = [entry for entry in known if entry.place is not None and not entry.foreign]
    for entry in automatic:
        if entry.conversation == wish.conversation:
            return entry.name
    free = sorted((e for e in automatic if e.name not in taken), key=lambda e: (-e.used_at, e.name))
    own = [entry for entry in free if entry.place == wish.place]
    given_up = [entry for entry in free if now - entry.used_at > GIVEN_UP_S or entry.place == NOBODY]
    if own or given_up:
        return (own or given_up[-1:])[0].name
    if free and len(automatic) >= PLACES:
        return free[-1].name
    not_ours = _Either({entry.name for entry in known}, set(used), taken)
    return seat_name.automatic(wish.door.role, hostname, not_ours)


def remember(entries: Sequence[Entry], entry: Entry) -> list[Entry]:
    """The entries with this one in the place of its predecessor; above LIMIT those used longest ago go."""
    others = [e for e in entries if (e.door, e.name) != (entry.door, entry.name)]
    return sorted([*others, entry], key=lambda e: e.used_at)[-LIMIT:]


def find(entries: Iterable[Entry], url: str, board: str, name: str) -> list[Entry]:
    """What is remembered of a name on a board: one entry for each door that led there."""
    return [e for e in entries if (e.door.url, e.door.board, e.name) == (url, board, name)]


class _Either(Container[str]):
    """In any of several collections."""

    def __init__(self, *collections: Container[str]) -> None:
        self._collections = collections

    def __contains__(self, name: object) -> bool:
        return any(name in collection for collection in self._collections)
