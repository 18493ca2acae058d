"""What the owner of the local board does there: founds it, lets the holders of its doors in, creates tickets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from pursersd.central.pool import Pool, PoolKey
from pursersd.errors import CentralError, ToolFailed, Unreachable
from pursersd.feed.centrals import Centrals
from pursersd.ids import new_conversation_id
from pursersd.rules import local_board as rules
from pursersd.rules.door import Door
from pursersd.secret import Secret

TICKET_TIMEOUT = 20.0  # seconds; pursersctl waits for longer

_IS_MEMBER = "already a board member"


class Owner:
    """Speaks to one Central as its owner."""

    def __init__(self, centrals: Centrals, port: int, token: Secret) -> None:
        self._centrals = centrals
        self._port = port
        self._token = token

    async def found(self, board: str) -> float | None:
        """Found the board unless there is one, and admit who comes through its doors.

        Returns for how many seconds the owner's token is still good, by Central's clock. Raises CentralError.
        """
        async with _pool(self._centrals, rules.url(self._port), self._token) as pool:
            await pool.read("board_join", {"board_id": board, "agent_name": rules.OWNER, "allow_takeover": True})
            for role, membership in rules.ROLES.items():
                admitted = {"principal_id": rules.principal(board, role, self._port), "role": membership}
                try:
                    await pool.call("board_member_add", {"board_id": board, "agent_name": rules.OWNER, **admitted})
                except ToolFailed as refused:
                    if _IS_MEMBER not in str(refused):
                        raise
            return pool.expires_s

    async def create_ticket(self, board: str, title: str, description: str) -> str:
        """Create a ticket that is nobody's yet and return its id. Raises CentralError, for silence after TICKET_TIMEOUT."""
        ticket = {"title": title, "description": description, "scope": "READ-ONLY", "required_fields": ["summary"]}
        where = {"board_id": board, "agent_name": rules.OWNER, "target_url": f"{board}/local"}
        try:
            with anyio.fail_after(TICKET_TIMEOUT):
                async with _pool(self._centrals, rules.url(self._port), self._token) as pool:
                    made = await pool.call("ticket_create", {**ticket, **where})
        except TimeoutError as error:
            raise Unreachable(
                f"The local board's Central did not answer within {TICKET_TIMEOUT:.0f} s. It may create the ticket later; "
                "a second one would be another. See how it is with: pursersctl local status"
            ) from error
        return str(made["ticket"]["ticket_id"])


async def is_accepted(centrals: Centrals, door: Door) -> bool:
    """Whether Central lets the holder of this door onto its board."""
    try:
        async with _pool(centrals, door.url, door.token) as pool:
            await pool.require_board(door.board)
    except CentralError:
        return False
    return True


@asynccontextmanager
async def _pool(centrals: Centrals, url: str, token: Secret) -> AsyncIterator[Pool]:
    user = f"local {new_conversation_id()}"
    try:
        yield (await centrals.use(PoolKey(url, token, None), user)).pool
    finally:
        centrals.release(user)
