"""What a bridge-stats.json holds (schema 4, bridge.md §7.2), and its text.

Numbers and names only, never what was said. The structs have the file's own field names.
"""

import json
from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

SCHEMA = 4

LIMIT = 900_000
"""Bytes of the file. Its readers stop at 1,000,000 (registry_doctor, bridge.md §8.6)."""

NAME = 80
"""Characters of a board or an agent: Central takes no longer ones."""

REASON = 500
"""Characters of the reason why a seat gets no push."""

MOST = 2**53
"""A count stays here: greater integers are not exact in every reader."""

HOUR = "%Y-%m-%dT%H:00:00Z"
"""How the hours of a seat's returns are named, for strftime."""

Count = Annotated[int, Meta(ge=0, le=MOST)]
Name = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=REASON)]

Entry = TypeVar("Entry")


class Damaged(Exception):
    """This is not the text of such a file."""


class ToolCalls(msgspec.Struct):
    """The calls of one tool."""

    count: Count = 0
    request_bytes: Count = 0
    response_bytes: Count = 0


class SeatCalls(msgspec.Struct):
    """The calls of one seat on one day."""

    board_id: Name
    agent_name: Name
    request_bytes: Count = 0
    response_bytes: Count = 0
    calls: dict[Name, ToolCalls] = {}


class Day(msgspec.Struct):
    """One UTC day."""

    seats: dict[str, SeatCalls] = {}


class Sample(msgspec.Struct):
    """What the context reads of one wait brought."""

    at: Name
    response_bytes: Count


class SeatCycles(msgspec.Struct):
    """The newest poll cycles of one seat."""

    board_id: Name
    agent_name: Name
    latest_at: Name = ""
    latest_response_bytes: Count = 0
    samples: list[Sample] = []


class Hour(msgspec.Struct):
    """The waits that returned within one hour."""

    returns: Count = 0
    response_bytes: Count = 0
    outcomes: dict[Name, Count] = {}


class Return(msgspec.Struct):
    """One result as the model got it."""

    at: Name
    response_bytes: Count
    outcome: Name = ""
    mode: Name = ""
    reason: Text = ""


class SeatReturns(msgspec.Struct):
    """What one seat's waits returned."""

    board_id: Name
    agent_name: Name
    hours: dict[str, Hour] = {}
    returns: list[Return] = []


class Unavailable(msgspec.Struct):
    """Why a seat got its events by polling when it was last seen to."""

    board_id: Name
    agent_name: Name
    reason: Text
    observed_at: Name


class Document(msgspec.Struct):
    """The file, or what is to be added to it. The keys of seats are made by `seat_key`."""

    days: dict[str, Day] = {}
    poll_cycles: dict[str, SeatCycles] = {}
    model_wait: dict[str, SeatReturns] = {}
    push_unavailable: dict[str, Unavailable] = {}
    schema_version: int = SCHEMA


def seat_key(board: str, agent: str) -> str:
    """The key of a seat, letter for letter as the bridge writes it."""
    return json.dumps([board[:NAME], agent[:NAME]], separators=(",", ":"))


def read(text: bytes) -> Document:
    """The document in a file of any schema: the maps that we know, and of these the entries that can be understood. Its
    schema is ours if it was older.

    Raises Damaged for what is no JSON object.
    """
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(str(error)) from error
    if not isinstance(found, dict):
        raise Damaged("it is not a JSON object")
    days, schema = found.get("days"), found.get("schema_version")
    return Document(
        schema_version=max(schema, SCHEMA) if isinstance(schema, int) else SCHEMA,
        days={
            day: Day(_entries(value.get("seats"), SeatCalls))
            for day, value in (days.items() if isinstance(days, dict) else ())
            if isinstance(value, dict)
        },
        poll_cycles=_entries(found.get("poll_cycles"), SeatCycles),
        model_wait=_entries(found.get("model_wait"), SeatReturns),
        push_unavailable=_entries(found.get("push_unavailable"), Unavailable),
    )


def text(document: Document) -> bytes:
    """The text of a document: compact, sorted, one line.

    One that would be longer than LIMIT is shortened: first the single returns, then the oldest days, then all seats.
    """
    encoded = _encoded(document)
    kept = max((len(seat.returns) for seat in document.model_wait.values()), default=0)
    while len(encoded) > LIMIT and kept > 1:
        kept //= 2
        for seat in document.model_wait.values():
            seat.returns = seat.returns[-kept:]
        encoded = _encoded(document)
    while len(encoded) > LIMIT and len(document.days) > 1:
        del document.days[min(document.days)]
        encoded = _encoded(document)
    while len(encoded) > LIMIT:
        _halve(document)
        encoded = _encoded(document)
    return encoded


def _encoded(document: Document) -> bytes:
    return msgspec.json.encode(document, order="sorted") + b"\n"


def _halve(document: Document) -> None:
    for day in document.days.values():
        day.seats = _half(day.seats)
    document.poll_cycles = _half(document.poll_cycles)
    document.model_wait = _half(document.model_wait)
    document.push_unavailable = _half(document.push_unavailable)


def _half(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    return dict(list(entries.items())[(len(entries) + 1) // 2 :])


def _entries(found: object, kind: type[Entry]) -> dict[str, Entry]:
    kept = {}
    for key, value in found.items() if isinstance(found, dict) else ():
        try:
            kept[key] = msgspec.convert(value, kind)
        except (msgspec.ValidationError, RecursionError):
            continue
    return kept
