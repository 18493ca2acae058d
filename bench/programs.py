"""The two programs under measurement, and how a conversation speaks to each."""

from dataclasses import dataclass
from typing import Any

from rig.shim import BRIDGE, SHIM


@dataclass(frozen=True, slots=True)
class Program:
    """A stdio command that a host starts once per conversation."""

    name: str
    command: str
    has_daemon: bool
    multi_board: bool
    """Use the multi-board form of a2a_wait."""

    def wait_arguments(self, board: str, cursor: int | None, timeout_s: int) -> dict[str, Any]:
        """Arguments of an a2a_wait on one board, from `cursor` or from the seat's stored cursor."""
        if not self.multi_board:
            return {"timeout_s": timeout_s, **({} if cursor is None else {"since_seq": cursor})}
        return {
            "boards": [board],
            "timeout_s": timeout_s,
            **({} if cursor is None else {"since_seq": {board: cursor}}),
        }

    def cursor(self, board: str, result: dict[str, Any]) -> int:
        """The cursor to re-arm from. RuntimeError if the wait failed."""
        if result.get("error"):
            raise RuntimeError(f"{self.name}: a wait failed: {result['error']}")
        found = result["new_seq"]
        if found is None:
            raise RuntimeError(f"{self.name}: a wait has no cursor: {result}")
        return int(found[board] if self.multi_board else found)


OURS = Program("pursersd", SHIM, has_daemon=True, multi_board=False)

# Its single-board form notices a live event only at its next maintenance tick, up to 30 s later (bridge.md D1); the
# multi-board form is its faster path, so comparing with that one is in its favour.
THEIRS = Program("bridge", BRIDGE, has_daemon=False, multi_board=True)
