"""seats/first: the first join of a name takes no seat from anybody, and never collides with itself."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from pursersd.central.pool import Pool
from pursersd.errors import CentralError, Overloaded, ToolFailed, Unauthenticated, Unreachable
from pursersd.seats.first import first_join
from pursersd.seats.seat import SeatRequest, Seats
from unit.scripted_pool import ScriptedPool, seat

pytestmark = pytest.mark.anyio

COLLISION = "seat name already active under this principal; choose another name or pass allow_takeover=true"
ASKED = {"board_id": "b", "agent_name": "ann", "allow_takeover": False}
LOST = Unreachable("lost")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Memory:
    """Remembers one name."""

    def __init__(self, held: bool = False) -> None:
        self.held = held
        self.notes: list[str] = []

    def is_held(self, url: str, board: str, name: str) -> bool:
        assert (url, board, name) == ("http://c/mcp", "b", "ann")
        return self.held

    async def note(self, url: str, board: str, name: str, *, held: bool, foreign: bool = False) -> None:
        self.held = held
        self.notes.append("foreign" if foreign else "held" if held else "not held")


class Central(ScriptedPool):
    """Has seats: `sitting` names the active ones. `trouble` is what the next joins without takeover end with."""

    def __init__(self, *sitting: str) -> None:
        super().__init__()
        self.key = type("Key", (), {"url": "http://c/mcp"})
        self.sitting = set(sitting)
        self.trouble: list[CentralError] = []
        self.takeovers: list[bool] = []

    async def read(self, tool: str, arguments: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        if tool == "board_status":
            return {"agents": [{"agent_name": name, "lifecycle_status": "active"} for name in self.sitting]}
        return await self.call(tool, arguments)

    async def call(self, tool: str, arguments: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        taking, name = bool(arguments.get("allow_takeover")), arguments["agent_name"]
        self.takeovers.append(taking)
        if not taking and self.trouble:
            error = self.trouble.pop(0)
            if isinstance(error, (Unreachable, Overloaded)) and error.sent and name not in self.sitting:
                self.sitting.add(name)  # it was carried out; only the answer is lost
            raise error
        if not taking and name in self.sitting:
            raise ToolFailed("board_join", COLLISION)
        self.sitting.add(name)
        return self._join(arguments)


async def first(central: Central, memory: Memory) -> dict[str, Any] | None:
    return await first_join(cast("Pool", central), memory, ASKED)


async def test_a_free_name_is_ours_from_now_on() -> None:
    central, memory = Central("bob"), Memory()
    answer = await first(central, memory)
    assert answer is not None
    assert answer["role"] == "worker"
    assert (central.takeovers, memory.held) == ([False], True)


async def test_a_name_that_we_held_may_be_taken_over() -> None:
    central, memory = Central("ann"), Memory(held=True)
    assert await first(central, memory) is None
    assert (central.takeovers, memory.notes) == ([], [])


async def test_a_collision_is_returned_unchanged() -> None:
    central, memory = Central("ann"), Memory()
    for _ in range(2):
        with pytest.raises(ToolFailed) as refused:
            await first(central, memory)
        assert str(refused.value) == COLLISION
    assert (central.takeovers, memory.held, memory.notes[-1]) == ([False, False], False, "foreign")


async def test_another_refusal_makes_the_name_nobodys() -> None:
    central, memory = Central(), Memory()
    central.trouble = [ToolFailed("board_join", "board access denied: invite required")]
    with pytest.raises(ToolFailed):
        await first(central, memory)
    assert memory.notes == ["held", "not held"]


async def test_a_lost_answer_to_a_free_name_leads_to_a_takeover_of_what_is_ours() -> None:
    central, memory = Central(), Memory()
    central.trouble = [LOST]
    assert await first(central, memory) is None
    assert memory.held


async def test_a_lost_answer_to_a_taken_name_takes_nothing_over() -> None:
    central, memory = Central("ann"), Memory()
    central.trouble = [LOST]
    with pytest.raises(Unreachable):
        await first(central, memory)
    assert not memory.held
    with pytest.raises(ToolFailed, match="already active"):
        await first(central, memory)


@pytest.mark.parametrize(
    "error", [Unreachable("refused", sent=False), Unauthenticated("401"), Overloaded("", sent=False)]
)
async def test_what_was_certainly_not_carried_out_leaves_nothing(error: CentralError) -> None:
    central, memory = Central(), Memory()
    central.trouble = [error]
    with pytest.raises(type(error)):
        await first(central, memory)
    assert (memory.held, central.sitting) == (False, set())


async def test_it_is_noted_before_it_is_sent() -> None:
    """We may end between the two: the next daemon must know that the seat may be ours."""
    central, memory = Central(), Memory()
    seen: list[bool] = []
    call = central.call

    async def look(tool: str, arguments: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        seen.append(memory.held)
        return await call(tool, arguments, **options)

    central.call = look  # type: ignore[method-assign]
    await first(central, memory)
    assert seen == [True]


# --- in Seats ---------------------------------------------------------------------------------------------------------

CAREFUL = SeatRequest("b", "ann", "worker", careful=True)


async def test_a_careful_seat_joins_carefully_once_and_then_freely() -> None:
    central, memory = Central(), Memory()
    seats = Seats(central.as_pool, memory)
    joined = await seats.join(CAREFUL, "c-1")
    memory.held = False  # forgotten, for whatever reason: it still is our own seat
    await seats.keepalive(joined)
    await seats.keepalive(joined)
    assert central.takeovers == [False, True, True]


async def test_a_lost_answer_is_not_seen_by_the_caller() -> None:
    central, memory = Central(), Memory()
    central.trouble = [LOST]
    assert (await Seats(central.as_pool, memory).join(CAREFUL, "c-1")).agent_name == "ann"
    assert central.takeovers == [False, True]


async def test_another_daemon_of_ours_goes_on_with_the_seat() -> None:
    central, memory = Central(), Memory()
    for _ in range(3):
        await Seats(central.as_pool, memory).join(CAREFUL, "c-1")
    assert central.takeovers == [False, True, True]


async def test_who_is_not_careful_takes_its_seat_as_ever() -> None:
    central, memory = Central("ann"), Memory()
    await Seats(central.as_pool, memory).join(seat("ann").request, "c-1")
    assert (central.takeovers, memory.notes) == ([True], [])
