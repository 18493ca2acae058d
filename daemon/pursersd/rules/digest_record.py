"""What one identity has acknowledged and what it watches (bridge.md §5.3); belongs to it alone (bridge.md D20)."""

from collections.abc import Iterable, Mapping

import msgspec

REMEMBERED = 32
"""Acknowledgements whose answers are kept, so that a repeated call is told from a later one."""


class Answer(msgspec.Struct, frozen=True):
    """An acknowledgement that was carried out: the key of its call, and what it answered."""

    key: str
    cursor_map: dict[str, int]
    acknowledged_human_requests: int


class Record(msgspec.Struct, frozen=True):
    """The record of one identity."""

    cursors: dict[str, int] = {}
    """Up to where it has acknowledged, by board."""
    human_requests: frozenset[str] = frozenset()
    """The requests for humans that were waiting at its last acknowledgement."""
    watched_ticket_ids: frozenset[str] = frozenset()
    watched_tags: frozenset[str] = frozenset()
    answers: tuple[Answer, ...] = ()
    """Those of its newest acknowledgements, the newest last."""


Changed = tuple[Record, dict[str, object]]
"""The record after a change, and the tool's result."""


def acknowledge(
    record: Record, cursors: Mapping[str, int], pending: frozenset[str], *, key: str, was_sent_before: bool
) -> Changed:
    """Acknowledge up to these places, and the requests for humans that wait now. Places only move up.

    A call that comes again, and had been carried out, changes nothing: what it meant by "everything" was less then.
    """
    repeated = next((answer for answer in record.answers if answer.key == key), None) if was_sent_before else None
    if repeated is not None:
        return record, _answer(repeated)
    moved = record.cursors | {board: max(record.cursors.get(board, 0), place) for board, place in cursors.items()}
    answer = Answer(key, moved, len(pending - record.human_requests))
    others = [other for other in record.answers if other.key != key]
    after = msgspec.structs.replace(
        record, cursors=moved, human_requests=pending, answers=(*others, answer)[-REMEMBERED:]
    )
    return after, _answer(answer)


def watch(record: Record, ticket_ids: Iterable[str], tags: Iterable[str]) -> Changed:
    """Watch these, too."""
    after = msgspec.structs.replace(
        record,
        watched_ticket_ids=record.watched_ticket_ids | frozenset(ticket_ids),
        watched_tags=record.watched_tags | frozenset(tags),
    )
    return after, _watched(after)


def unwatch(record: Record, ticket_ids: Iterable[str], tags: Iterable[str], *, everything: bool) -> Changed:
    """Watch these no longer, or nothing at all."""
    after = msgspec.structs.replace(
        record,
        watched_ticket_ids=frozenset() if everything else record.watched_ticket_ids - frozenset(ticket_ids),
        watched_tags=frozenset() if everything else record.watched_tags - frozenset(tags),
    )
    return after, _watched(after)


def _answer(answer: Answer) -> dict[str, object]:
    return {
        "ok": True,
        "cursor_map": dict(answer.cursor_map),
        "acknowledged_human_requests": answer.acknowledged_human_requests,
    }


def _watched(record: Record) -> dict[str, object]:
    return {
        "ok": True,
        "watched_ticket_ids": sorted(record.watched_ticket_ids),
        "watched_tags": sorted(record.watched_tags),
    }
