"""Single fields of a ticket's notes, for a digest (bridge.md §5.2, notes_subset)."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

COMMIT = "branch_and_commit"
"""What a submission must name in some workflows: it is also found in the middle of a sentence."""


def notes_subset(ticket: Mapping[str, object], keys: Sequence[str]) -> dict[str, object]:
    """What the ticket says for each key, in the order of the keys; what it does not say is left out.

    Looked for in the ticket's own field, then in the newest submission that has one, then in the notes and summaries, the
    ticket's before those of its submissions, the newest first: as a member of JSON text or as a line `key: value`.
    """
    found: dict[str, object] = {}
    for key in keys:
        is_there, value = _value(ticket, key)
        if is_there:
            found[key] = value
    return found


def _value(ticket: Mapping[str, object], key: str) -> tuple[bool, object]:
    submissions = _submissions(ticket)
    for place in (ticket, *submissions):
        if place.get(key) is not None:
            return True, place[key]
    texts = list(_texts([ticket, *submissions]))
    for text in texts:
        is_there, value = _in_text(text, key)
        if is_there:
            return True, value
    if key == COMMIT:
        for text in texts:
            if said := re.search(rf"(?im)\b{COMMIT}[:=]?\s*([^\n\r]+)", text):
                return True, said[1].strip()
    return False, None


def _submissions(ticket: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The newest first."""
    history = ticket.get("submission_history")
    return [entry for entry in reversed(history) if isinstance(entry, dict)] if isinstance(history, list) else []


def _texts(places: Sequence[Mapping[str, object]]) -> Iterator[str]:
    for place in places:
        yield from (text for name in ("notes", "summary") if isinstance(text := place.get(name), str))


def _in_text(text: str, key: str) -> tuple[bool, object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and key in document:
        return True, document[key]
    line = re.search(rf"(?im)^\s*{re.escape(key)}\s*[:=]\s*(.+)$", text)
    return (True, line[1].strip()) if line else (False, None)
