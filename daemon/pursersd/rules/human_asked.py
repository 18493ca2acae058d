"""Which questions a call of board_human_requests has put to the human one by one, for the daemon that takes the call up again.

The shim remembers it for its conversation (`pursers/keep`), so it holds names of questions, and nothing that a human said.
"""

from pursersd.rules.human_question import Target

KEPT = "asked"
"""Its name among what the shim remembers."""

CALLS = 4
QUESTIONS = 200
"""The newest calls, and the newest questions of each, that are remembered."""


def targets(kept: object, call: str) -> list[Target]:
    """The questions of this call, in the order in which they were put."""
    rows = kept.get(call) if isinstance(kept, dict) else None
    return [Target(*row) for row in rows if _is_target(row)] if isinstance(rows, list) else []


def with_target(kept: object, call: str, target: Target) -> dict[str, object]:
    """What is to be remembered when this question is put, too. What was remembered before is left as it is."""
    row = [target.board, target.ticket_id, target.request_id]
    rows = [[it.board, it.ticket_id, it.request_id] for it in targets(kept, call) if it != target]
    others = {key: value for key, value in kept.items() if key != call} if isinstance(kept, dict) else {}
    newest = list(others.items())[-(CALLS - 1) :]
    return {**dict(newest), call: [*rows, row][-QUESTIONS:]}


def _is_target(row: object) -> bool:
    return isinstance(row, list) and len(row) == 3 and all(isinstance(part, str) for part in row)
