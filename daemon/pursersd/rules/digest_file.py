"""The file with the records of all identities of a home board, and what is taken over from the bridge's (bridge.md §7.3).

The bridge has one record for a whole board and writes its file as it remembers it, whoever has written there meanwhile. So
ours is a file of its own beside it: neither undoes what the other has written.
"""

import json
from collections.abc import Mapping

import msgspec

from pursersd.rules.digest_record import Record

SCHEMA = 1
BRIDGE_SCHEMA = 1

SUFFIX = ".json"
OURS = ".identities.json"


class Damaged(ValueError):
    """The text is not such a file."""


class Newer(ValueError):
    """A later version wrote it; what it means is not known here."""


class _Schema(msgspec.Struct):
    schema: int


class _File(msgspec.Struct):
    schema: int
    identities: dict[str, Record]


def own_name(bridge: str) -> str:
    """The name of our file beside the bridge's."""
    return bridge.removesuffix(SUFFIX) + OURS


def identity(url: str, agent_id: str) -> str:
    """Whose record it is: a seat of one Central. Its board and principal are in the agent id."""
    return json.dumps([url, agent_id], separators=(",", ":"))


def read(text: bytes) -> dict[str, Record]:
    """The records by identity. Raises Damaged or Newer."""
    try:
        schema = msgspec.json.decode(text, type=_Schema).schema
        if schema > SCHEMA:
            raise Newer(f"it has schema {schema}, this version knows {SCHEMA}")
        if schema < 1:
            raise Damaged(f"it has schema {schema}")
        return msgspec.json.decode(text, type=_File).identities
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(str(error)) from error


def write(records: Mapping[str, Record]) -> bytes:
    """The text of the file; the same for the same records."""
    return msgspec.json.encode(_File(SCHEMA, dict(records)), order="deterministic") + b"\n"


class _Event(msgspec.Struct):
    actor: object = None


class _Bridge(msgspec.Struct):
    schema_version: int
    ack_cursor_map: dict[str, int] = {}
    watched_ticket_ids: list[str] = []
    watched_tags: list[str] = []
    human_request_acks: list[str] = []
    events: list[_Event] = []


def taken_over(text: bytes, agent_id: str) -> Record:
    """The first record of a seat, from the bridge's file of its home board.

    Nobody's own acts are in what a bridge has read for its seat. So a file with acts of this seat is another one's: its
    acknowledgements would hide what this one has not seen, and are left. Raises Damaged or Newer.
    """
    try:
        found = msgspec.json.decode(text, type=_Bridge)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(str(error)) from error
    if found.schema_version != BRIDGE_SCHEMA:
        raise Newer(f"it has schema_version {found.schema_version}, this version knows {BRIDGE_SCHEMA}")
    if any(event.actor == agent_id for event in found.events):
        return Record()
    return Record(
        cursors={board: max(0, place) for board, place in found.ack_cursor_map.items()},
        human_requests=frozenset(found.human_request_acks),
        watched_ticket_ids=frozenset(found.watched_ticket_ids),
        watched_tags=frozenset(found.watched_tags),
    )
