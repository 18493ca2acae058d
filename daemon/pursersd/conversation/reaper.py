"""Find what is there for nobody, and end it when a person says so. The watch on every process usually has done it before."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

from pursersd.api import ReapRow, SeatRow
from pursersd.conversation.conversation import Conversation
from pursersd.conversation.lineage import Lineage
from pursersd.conversation.registry import Conversations
from pursersd.rules.reaping import Orphan, Subject, orphan

REAPED = "ended with pursersctl reap"


@dataclass(frozen=True, slots=True)
class _Found:
    orphan: Orphan
    row: SeatRow
    lineage: Lineage
    conversation: Conversation | None


def reap(conversations: Conversations, *, really: bool) -> list[ReapRow]:
    """What has nobody behind it, and why; with `really` it is ended, too."""
    found = list(_orphans(conversations))
    if really:
        for one in found:
            _end(one)
    return [
        ReapRow(
            kind=one.orphan.kind,
            why=one.orphan.why,
            seat=one.row.seat,
            board=one.row.board,
            host=one.row.host,
            host_pid=one.row.host_pid,
            shim_pid=one.row.shim_pid,
            conversation=one.row.conversation,
        )
        for one in found
    ]


def _orphans(conversations: Conversations) -> Iterator[_Found]:
    rows = {row.conversation: row for row in conversations.rows()}
    present = {conversation.lineage.shim for conversation in conversations.all()}
    for conversation in conversations.all():
        lineage = conversation.lineage
        found = orphan(_subject(lineage, has_ended=False, is_detached=conversation.state == "detached"))
        if found is not None:
            yield _Found(found, rows[conversation.id], lineage, conversation)
    for left in conversations.departures:
        if left.lineage.shim in present:
            continue  # it came back as another conversation
        present.add(left.lineage.shim)
        found = orphan(_subject(left.lineage, has_ended=True, is_detached=True))
        if found is not None:
            yield _Found(found, left.row, left.lineage, None)


def _subject(lineage: Lineage, *, has_ended: bool, is_detached: bool) -> Subject:
    return Subject(
        has_ended=has_ended,
        is_detached=is_detached,
        shim_lives=lineage.shim.is_alive,
        host_lives=None if lineage.host is None else lineage.host.is_alive,
    )


def _end(found: _Found) -> None:
    if found.conversation is not None:
        found.conversation.end(REAPED)  # which also tells the shim, should it listen
    if found.orphan.kind == "shim":
        found.lineage.shim.send(signal.SIGTERM)
        found.lineage.shim.send(signal.SIGCONT)  # a stopped process cannot obey
