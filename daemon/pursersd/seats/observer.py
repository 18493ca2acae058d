"""Who hears by the way what Central tells."""

from collections.abc import Mapping, Sequence
from typing import Any


class Observer:
    """Hears what joins, pages, ticket reads and cues of one Central tell by the way. This one does not listen."""

    def joined(self, board: str, answer: Mapping[str, Any]) -> None:
        """Central answered the join of a seat."""

    def tickets(self, board: str, answer: Mapping[str, Any]) -> None:
        """Central answered ticket_get or ticket_list; ids in it are whole."""

    def events(self, board: str, events: Sequence[Mapping[str, Any]]) -> None:
        """These events were read from the board's journal, maybe again."""

    def journal_cued(self, board: str) -> None:
        """Something was written to the board's journal, or cues may have been missed."""

    def may_join(self, agent: str) -> bool:
        """Whether a join that nobody needs does no harm to this seat: it renews all that the seat holds."""
        return True
