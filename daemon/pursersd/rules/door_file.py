"""The format of `doors.json`, schema 1: what is read, what is refused and in which words, what is written (bridge.md §7.1).

The bridge reads and writes the same file. It refuses the whole file for a single bad entry, so nothing may be written
that it cannot read: a door whose role it does not know belongs into COORDINATING, which only this daemon reads.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pursersd.errors import DoorsError
from pursersd.rules.door import SEAT_ROLES, Door, from_fields

SCHEMA_VERSION = 1

_FIELDS = frozenset(("u", "b", "r", "t", "kid", "exp", "joined_at", "seat_names_used"))


@dataclass(frozen=True, slots=True)
class DoorFile:
    """One of the files that keep doors."""

    name: str
    roles: tuple[str, ...]
    """The roles of its doors."""


SHARED = DoorFile("doors.json", SEAT_ROLES)
"""Shared with the bridge."""

COORDINATING = DoorFile("coordinator-doors.json", ("coordinator", "orchestrator"))
"""The same format, with roles that the bridge refuses."""


def parse(text: str, file: DoorFile = SHARED) -> tuple[Door, ...]:
    """The doors of a file, in its order. Raises DoorsError with the bridge's text: one bad entry spoils the whole file."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise DoorsError("doors.json is unreadable or invalid") from None
    if not isinstance(document, dict) or document.get("schema_version") != SCHEMA_VERSION:
        raise DoorsError("doors.json has an unsupported schema")
    entries = document.get("doors")
    if not isinstance(entries, list):
        raise DoorsError("doors.json doors must be a list")
    doors: dict[tuple[str, str], Door] = {}
    for entry in entries:
        door = _door(entry, file)
        if (door.board, door.role) in doors:
            raise DoorsError("doors.json has duplicate board/role entries")
        doors[door.board, door.role] = door
    return tuple(doors.values())


def serialise(doors: Iterable[Door]) -> str:
    """The text of a file with these doors, by board and role. The only place besides the wire where tokens are plain."""
    entries = [
        {
            "u": door.url,
            "b": door.board,
            "r": door.role,
            "t": door.token.reveal(),
            "kid": door.kid,
            "exp": door.expires,
            "joined_at": door.joined_at,
            "seat_names_used": list(door.seat_names_used),
        }
        for door in sorted(doors, key=lambda door: (door.board, door.role))
    ]
    document = {"doors": entries, "schema_version": SCHEMA_VERSION}
    return json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"


def _door(entry: object, file: DoorFile) -> Door:
    if not isinstance(entry, dict):
        raise DoorsError("doors.json contains an invalid entry")
    if entry.keys() != _FIELDS:
        raise DoorsError("doors.json entry has invalid fields")
    door = from_fields({name: entry[name] for name in "ubrt"}, roles=file.roles)
    if door.kid != entry["kid"] or door.expires != entry["exp"]:
        raise DoorsError("doors.json token metadata does not match the token")
    joined_at, names = entry["joined_at"], entry["seat_names_used"]
    if not isinstance(joined_at, str) or not joined_at:
        raise DoorsError("doors.json joined_at must be a timestamp")
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise DoorsError("doors.json seat_names_used must be unique strings")
    if len(names) != len(set(names)):
        raise DoorsError("doors.json seat_names_used must be unique strings")
    return replace(door, joined_at=joined_at, seat_names_used=tuple(names))
