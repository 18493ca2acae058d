"""The first join of a name through a stored door: it must not take the seat from somebody else (bridge.md §10).

Central has no fencing: who joins with allow_takeover gets the seat from whoever sits on it (central.md §5). So a name that
was never ours is joined without. From then on it is ours, and every later join may take it over: after a restart, after
a lost answer, after a handoff. What was ours must outlive us, so it is noted before the join is sent.
"""

from typing import Any, Protocol

from pursersd.central.pool import Pool
from pursersd.errors import CentralError, Overloaded, Unreachable

_COLLISION = "seat name already active under this principal"


class Held(Protocol):
    """Remembers which seats are ours, also after a restart."""

    def is_held(self, url: str, board: str, name: str) -> bool:
        """Whether the seat is ours, or may be."""

    async def note(self, url: str, board: str, name: str, *, held: bool, foreign: bool = False) -> None:
        """Note what Central said of it: that it is ours, that it is not, that it is somebody else's."""


async def first_join(pool: Pool, held: Held, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Join without taking over, if the seat was never ours; Central's answer, or None: it may be taken over.

    Raises ToolFailed as it is when somebody else has the seat.
    """
    url, board, name = pool.key.url, str(arguments["board_id"]), str(arguments["agent_name"])
    if held.is_held(url, board, name):
        return None
    # An answer may be lost. Whether the seat that we then find taken is ours shows only in how it was before.
    was_free = not await _is_taken(pool, board, name)
    if was_free:
        await held.note(url, board, name, held=True)
    try:
        answer = await pool.call("board_join", arguments)
    except CentralError as error:
        if isinstance(error, (Unreachable, Overloaded)) and error.sent:
            if was_free:
                return None  # whoever has it now got it from us, just now
        else:
            await held.note(url, board, name, held=False, foreign=is_collision(error))
        raise
    await held.note(url, board, name, held=True)
    return answer


def is_collision(error: CentralError) -> bool:
    """Whether Central refused a join without takeover because somebody has the name (central.md §5)."""
    return _COLLISION in str(error)


async def _is_taken(pool: Pool, board: str, name: str) -> bool:
    status = await pool.read("board_status", {"board_id": board})
    agents = status.get("agents")
    return isinstance(agents, list) and any(
        isinstance(agent, dict) and agent.get("agent_name") == name and agent.get("lifecycle_status") == "active"
        for agent in agents
    )
