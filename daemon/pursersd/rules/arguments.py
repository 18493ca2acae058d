"""What a2a_wait takes, checked before anything else happens (bridge.md §1.5)."""

from dataclasses import dataclass
from typing import Literal, cast

from pursersd.errors import ArgumentError

DEFAULT_TIMEOUT_S = 180
MAX_CURSOR = 2**63 - 1
"""The largest journal position that Central's database can hold."""
ORCHESTRATOR_LIMIT_S = 200
REGISTRY = "registry"

WaitFor = Literal["auto", "claimable", "submitted"]
Cursor = int | dict[str, int] | None

_SHOWN = 1000
_REGISTRY_BOARDS: Literal["registry"] = "registry"


@dataclass(frozen=True, slots=True)
class WaitArguments:
    """The checked and normalised arguments of one wait."""

    since_seq: Cursor
    timeout_s: int
    only_mine: bool
    project: str | None
    agent_name: str | None
    boards: tuple[str, ...] | Literal["registry"] | None
    wait_for: WaitFor


def check(
    *,
    since_seq: object,
    timeout_s: object,
    timeout_given: bool,
    only_mine: bool,
    project: str | None,
    agent_name: str | None,
    boards: object,
    wait_for: object,
    block_limit_s: int,
) -> WaitArguments:
    """The arguments of a wait, or ArgumentError with the bridge's text for the first one that is wrong.

    The default of `timeout_s` gives way to a smaller block limit; only a value that the caller chose is refused for it.
    `agent_name` is left to Central, which has the last word on names.
    """
    checked_boards = _boards(boards)
    checked_wait_for = _wait_for(wait_for)
    cursor = _cursor(since_seq, checked_boards is not None)
    return WaitArguments(
        since_seq=cursor,
        timeout_s=_timeout(timeout_s, timeout_given, block_limit_s),
        only_mine=only_mine,
        project=(project or "").strip().lower() or None,
        agent_name=agent_name,
        boards=checked_boards,
        wait_for=checked_wait_for,
    )


def budget_s(timeout_s: int, *roles: str | None) -> int:
    """How long the wait may really last, given the declared and the joined role (bridge.md §2.2)."""
    return min(timeout_s, ORCHESTRATOR_LIMIT_S) if "orchestrator" in roles else timeout_s


def _boards(boards: object) -> tuple[str, ...] | Literal["registry"] | None:
    if boards is None:
        return None
    if boards == REGISTRY:
        return _REGISTRY_BOARDS
    if not isinstance(boards, list):
        raise _refused('boards must be a list of board IDs or "registry"', boards)
    if not boards:
        raise _refused("boards must contain at least one non-empty board ID", boards)
    if not all(isinstance(board, str) and board.strip() for board in boards):
        raise _refused("boards must contain only non-empty board ID strings", boards)
    return tuple(dict.fromkeys(board.strip() for board in boards))


def _wait_for(wait_for: object) -> WaitFor:
    wanted = wait_for.strip().lower() if isinstance(wait_for, str) else None
    if wanted not in ("auto", "claimable", "submitted"):
        raise _refused("wait_for must be one of 'auto', 'claimable', or 'submitted'", wait_for)
    return cast(WaitFor, wanted)


def _cursor(since_seq: object, boards_given: bool) -> Cursor:
    if since_seq is None:
        return None
    if isinstance(since_seq, int):
        if since_seq < 0:
            raise _refused("since_seq integer cursors must be non-negative", since_seq)
        if since_seq > MAX_CURSOR:
            raise _refused(f"since_seq integer cursors must be non-negative and at most {MAX_CURSOR}", since_seq)
        # The bridge's schema turns true into 1 before its check; so do we.
        return int(since_seq)
    if not isinstance(since_seq, dict):
        raise _refused("since_seq must be a non-negative integer or a board-to-cursor map", since_seq)
    if not boards_given:
        raise _refused("since_seq must be a non-negative integer when boards is omitted", since_seq)
    if not all(_is_board(board) and _is_cursor(cursor) for board, cursor in since_seq.items()):
        raise _refused("since_seq maps must use non-empty board ID strings and non-negative integer cursors", since_seq)
    if any(cursor > MAX_CURSOR for cursor in since_seq.values()):
        raise _refused(
            "since_seq maps must use non-empty board ID strings and non-negative integer cursors "
            f"of at most {MAX_CURSOR}",
            since_seq,
        )
    return {board: int(cursor) for board, cursor in since_seq.items()}


def _is_board(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_cursor(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _timeout(timeout_s: object, given: bool, block_limit_s: int) -> int:
    if not given and isinstance(timeout_s, int):
        return min(timeout_s, block_limit_s)
    if isinstance(timeout_s, int) and 1 <= timeout_s <= block_limit_s:
        return int(timeout_s)
    raise _refused(f"timeout_s must be an integer from 1 to {block_limit_s}", timeout_s)


def _refused(rule: str, value: object) -> ArgumentError:
    return ArgumentError(f"{rule}; received {_shown(value)}")


def _shown(value: object) -> str:
    """The value as the bridge shows it (its repr), cut where only a mistake or a machine made it that long."""
    try:
        shown = repr(value)
    except ValueError:
        # Python refuses to print integers of more than 4300 digits.
        return "a number that is too long to show"
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
