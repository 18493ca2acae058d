"""Whether a stored door still opens: read-only, for `pursersctl doctor`. Nobody joins, no seat and no board comes to be.

Central is asked four things: whether it answers and takes the token (`server/discover`), which boards it is for
(`board_list`), and whether it gives a stream for the board's journal, which makes no seat live for offers (central.md §4.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from pursersd.central.client import CentralClient
from pursersd.errors import CentralError, Forbidden, Unauthenticated
from pursersd.ids import journal_uri
from pursersd.rules.door import Door


@dataclass(slots=True)
class DoorCheck:
    """What was found, as far as it got: what stands below a trouble was not asked."""

    unreachable: str | None = None
    """Why Central does not answer."""
    ahead_s: float | None = None
    """By how many seconds our clock is ahead of Central's; None when it did not answer."""
    refused: str | None = None
    """Why it does not take the token."""
    expires_s: float | None = None
    """Seconds until the token expires, by Central's clock."""
    membership: str | None = None
    """The holder's membership of the board; None when there is none, or it was not asked."""
    unlisted: str | None = None
    """Why its boards are not known."""
    no_push: str | None = None
    """Why there is no stream."""
    has_push: bool = False


async def check_all(doors: Sequence[Door], *, limit: float) -> list[DoorCheck]:
    """Look at all doors at the same time; takes at most `limit` seconds."""
    found = [DoorCheck() for _ in doors]
    async with anyio.create_task_group() as tasks:
        for door, check in zip(doors, found, strict=True):
            tasks.start_soon(_check, door, check, limit)
    return found


async def _check(door: Door, check: DoorCheck, limit: float) -> None:
    client = CentralClient(door.url, door.token)
    try:
        with anyio.move_on_after(limit) as scope:
            await _ask(client, door, check)
        if scope.cancelled_caught:
            _note_silence(check, f"no answer within {limit:.0f} s")
    finally:
        with anyio.CancelScope(shield=True):
            await client.aclose()


async def _ask(client: CentralClient, door: Door, check: DoorCheck) -> None:
    try:
        await client.ask()
    except (Unauthenticated, Forbidden) as error:
        check.refused = str(error)
    except CentralError as error:
        check.unreachable = str(error)
        return
    check.ahead_s = client.served_time.ours_ahead_s
    check.expires_s = door.expires - client.served_time.now()
    if check.refused is None:
        await _ask_for_board(client, door.board, check)


async def _ask_for_board(client: CentralClient, board: str, check: DoorCheck) -> None:
    try:
        listed = await client.call("board_list", {})
    except CentralError as error:
        check.unlisted = str(error)
        return
    mine = (found for found in listed.get("boards", ()) if found.get("board_id") == board)
    check.membership = next((str(found.get("membership_role")) for found in mine), None)
    if check.membership is None:
        return
    try:
        async with client.listen([journal_uri(board)]):
            check.has_push = True
    except CentralError as error:
        check.no_push = str(error)


def _note_silence(check: DoorCheck, why: str) -> None:
    if check.expires_s is None:
        check.unreachable = why
    elif check.membership is None:
        check.unlisted = why
    elif not check.has_push:
        check.no_push = why
