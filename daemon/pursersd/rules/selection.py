"""Which boards a wait is for, and from where in each journal (bridge.md §2.3, §2.5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pursersd.errors import PursersError
from pursersd.rules.arguments import REGISTRY, Cursor
from pursersd.rules.registry import active_boards

Boards = tuple[str, ...] | Literal["registry"] | None


@dataclass(frozen=True, slots=True)
class Selection:
    """The boards of one wait."""

    boards: tuple[str, ...]
    """At least one, each once, in the order in which they are joined and told."""
    shape: Literal["single", "multi"]
    """Which of the two results the caller gets."""
    cursors: Mapping[str, int | None]
    """The caller's cursor of each board, in the order of `boards`; None: go on where Central says that the seat is."""
    routed: bool = False
    """Whether the events get routes (rules/routing)."""
    registry_warning: str | None = None
    """What a result must say when the registry was wanted and could not be had."""


def wants_registry(boards: Boards, boards_filter: str | None) -> bool:
    """Whether the home board's registry must be read before `select`: the caller's sentinel, or PURSERS_BOARDS for it."""
    wish = _wish(boards_filter)
    return boards is not None and (wish == REGISTRY or (boards == REGISTRY and wish != "home"))


def select(
    boards: Boards,
    since_seq: Cursor,
    *,
    home: str,
    boards_filter: str | None = None,
    registry: Mapping[str, object] | PursersError | None = None,
) -> Selection:
    """The boards of a call with these checked arguments; `boards_filter` is PURSERS_BOARDS as it was written.

    `registry` is the validated one or why there is none; needed exactly when `wants_registry`. Without it the call waits
    on the home board alone, and goes on there where a map of cursors says.
    """
    if wants_registry(boards, boards_filter):
        assert registry is not None, "the registry must be read first"
        if isinstance(registry, PursersError):
            warning = f"project_registry unavailable; using {home!r} only: {registry}"
            return Selection((home,), "single", _cursors((home,), since_seq), registry_warning=warning)
        found = spanned(active_boards(registry, home), home, boards_filter)
        return Selection(found, "multi", _cursors(found, since_seq), routed=True)
    if boards is None:
        return Selection((home,), "single", _cursors((home,), since_seq))
    # The sentinel comes this far only under PURSERS_BOARDS=home.
    listed = (home,) if isinstance(boards, str) or _wish(boards_filter) == "home" else boards
    return Selection(listed, "multi", _cursors(listed, since_seq))


def _wish(boards_filter: str | None) -> str:
    return (boards_filter or "").strip().casefold()


def spanned(boards: list[str], home: str, boards_filter: str | None) -> tuple[str, ...]:
    """Those of the registry's boards that PURSERS_BOARDS lets the seat span; home always."""
    if _wish(boards_filter) in ("", REGISTRY):
        return tuple(boards)
    allowed = {home, *(part.strip() for part in (boards_filter or "").split(","))}
    return tuple(board for board in boards if board in allowed)


def _cursors(boards: tuple[str, ...], since_seq: Cursor) -> dict[str, int | None]:
    if isinstance(since_seq, dict):
        return {board: since_seq.get(board, 0) for board in boards}
    return dict.fromkeys(boards, since_seq)
