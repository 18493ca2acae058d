"""The arguments of board_digest (bridge.md §1.4, §5.2): which boards, from where, and how much of each ticket."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pursersd.errors import ArgumentError
from pursersd.rules.digest_notes import COMMIT

REGISTRY = "registry"


@dataclass(frozen=True, slots=True)
class Query:
    """A checked call."""

    boards: tuple[str, ...] | None
    """Each once; None: those that the registry names."""
    since: int | Mapping[str, int] | None
    """None: where the identity has acknowledged up to."""
    notes_keys: tuple[str, ...] = (COMMIT,)
    most_transitions: int | None = None

    def places(self, boards: Sequence[str], acknowledged: Mapping[str, int]) -> dict[str, int]:
        """From where each of these boards is told."""
        if isinstance(self.since, int):
            return dict.fromkeys(boards, max(0, self.since))
        known = acknowledged if self.since is None else self.since
        return {board: max(0, known.get(board, 0)) for board in boards}


def check(
    *,
    boards: list[str] | str,
    since: dict[str, int] | int | None,
    include_notes_keys: list[str] | None,
    max_transitions_per_ticket: int | None,
) -> Query:
    """The call with these arguments. Raises ArgumentError with a text that says what is allowed."""
    if max_transitions_per_ticket is not None and max_transitions_per_ticket < 1:
        raise ArgumentError(
            f"max_transitions_per_ticket must be a positive integer; received {max_transitions_per_ticket!r}"
        )
    return Query(
        boards=_boards(boards),
        since=since,
        notes_keys=(COMMIT,) if include_notes_keys is None else tuple(include_notes_keys),
        most_transitions=max_transitions_per_ticket,
    )


def _boards(boards: list[str] | str) -> tuple[str, ...] | None:
    if boards == REGISTRY:
        return None
    if isinstance(boards, str):
        return tuple(dict.fromkeys(listed(boards)))
    if not all(board.strip() for board in boards):
        raise ArgumentError(f"boards must contain non-empty strings; received {boards!r}")
    if not boards:
        raise ArgumentError(f"boards must contain at least one board ID; received {boards!r}")
    return tuple(dict.fromkeys(board.strip() for board in boards))


def listed(words: list[str] | str | None) -> list[str]:
    """A list as it is, or a text with commas, without blanks around its members and without empty ones."""
    if words is None:
        return []
    parts = words.split(",") if isinstance(words, str) else words
    return [part.strip() for part in parts if part.strip()]
