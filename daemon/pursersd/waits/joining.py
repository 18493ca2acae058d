"""Take the seats of a wait: on each board the one that the call names, leaving out boards that refuse (bridge.md §2.4, §2.8)."""

from dataclasses import dataclass, field

import anyio

from pursersd.errors import PursersError, ToolFailed, UnknownBoard
from pursersd.feed.centrals import Central
from pursersd.rules.denials import DenialKey
from pursersd.rules.selection import Selection
from pursersd.seats.seat import Seat, SeatTaken, Source
from pursersd.waits.caller import Caller


@dataclass(slots=True)
class Joined:
    """The seats by board, in the order of the call, and the refusals of the other boards."""

    seats: dict[str, Seat] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    is_final: bool = True
    """Whether every refusal is a decision about rights, which another try cannot change."""


async def join(
    caller: Caller, central: Central, chosen: Selection, agent_name: str | None, *, source: Source = "model"
) -> Joined:
    """Join every board of the call at once.

    A single board's refusal is the call's: it is raised. Of many boards those that refuse are skipped, and one that refused
    for lack of rights is not asked again for a while. What is no board's decision (Central unreachable, the credential
    unknown) is raised in both forms.
    """
    found: dict[str, Seat | PursersError] = {}
    async with anyio.create_task_group() as tasks:
        for board in chosen.boards:
            tasks.start_soon(_join_one, caller, central, board, agent_name, chosen.shape == "multi", source, found)
    joined = Joined()
    for board in chosen.boards:
        match found[board]:
            case Seat() as seat:
                joined.seats[board] = seat
            case _Refused() as refused:
                joined.skipped[board] = str(refused)
                joined.is_final &= refused.is_final
            case PursersError() as error:
                raise error
    return joined


class _Refused(PursersError):
    """One board of many said no."""

    def __init__(self, text: str, *, is_final: bool) -> None:
        super().__init__(text)
        self.is_final = is_final


async def _join_one(
    caller: Caller,
    central: Central,
    board: str,
    agent_name: str | None,
    one_of_many: bool,
    source: Source,
    found: dict[str, Seat | PursersError],
) -> None:
    request = caller.seat_request(board, agent_name)
    key = DenialKey(central.pool.key.url, central.pool.key.token.fingerprint, request.role, board)
    if one_of_many and (text := caller.denials.refusal(key)) is not None:
        found[board] = _Refused(text, is_final=True)
        return
    try:
        found[board] = await central.seats.join(request, caller.id, source=source)
        caller.denials.forget(key)
    except (ToolFailed, UnknownBoard) as error:
        found[board] = error
        if one_of_many:
            found[board] = _Refused(str(error), is_final=caller.denials.remember(key, error))
    except SeatTaken as error:
        found[board] = _Refused(str(error), is_final=True) if one_of_many else error
    except PursersError as error:
        found[board] = error
