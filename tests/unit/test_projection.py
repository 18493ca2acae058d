"""waits/projection: which tickets are asked for, with scripted reads in Central's place."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from pursersd.errors import ToolFailed, Unreachable
from pursersd.feed.reads import SharedReads
from pursersd.waits.projection import Projection, Tickets

pytestmark = pytest.mark.anyio

DENIED = ToolFailed("ticket_list", "board access denied")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Reads:
    """Answers ticket_list from `tickets`, or raises `error`; `asked` are the filters by id."""

    def __init__(self) -> None:
        self.tickets: dict[str, str] = {}
        """Status by id."""
        self.error: Exception | None = None
        self.asked: list[Any] = []

    async def read(self, tool: str, arguments: Mapping[str, Any], *, at_least: int, live: bool) -> dict[str, Any]:
        assert (tool, at_least, live) == ("ticket_list", 7, True)
        wanted = arguments.get("ticket_ids")
        self.asked.append(wanted)
        if self.error is not None:
            raise self.error
        found = [
            {"ticket_id": name, "status": status}
            for name, status in self.tickets.items()
            if (wanted is None or name in wanted) and (arguments["include_closed"] or status != "closed")
        ]
        filters = {"ticket_ids": sorted(wanted)} if wanted else {}
        return {"tickets": found, "total_matching": len(found), "has_more": False, "latest_seq": 9, "filters": filters}


@pytest.fixture
def reads() -> Reads:
    return Reads()


@pytest.fixture
def tickets(reads: Reads) -> Tickets:
    return Tickets(cast(SharedReads, reads), "claimable")


async def active(tickets: Tickets) -> Projection:
    return await tickets.active(at_least=7, live=True)


async def test_a_finished_ticket_is_looked_up_by_its_id(reads: Reads, tickets: Tickets) -> None:
    reads.tickets = {"A": "open", "B": "closed"}
    found = await active(tickets)
    assert (found.tickets.keys(), found.latest_seq) == ({"A"}, 9)
    await tickets.add(found, {"A"}, {"A", "B"}, at_least=7, live=True)
    assert found.tickets.keys() == {"A", "B"}
    assert (found.unknown, found.warnings) == (set(), [])
    assert reads.asked == [None, ("B",)]


async def test_when_nothing_can_be_read_nothing_more_is_asked(reads: Reads, tickets: Tickets) -> None:
    reads.error = DENIED
    found = await active(tickets)
    await tickets.add(found, {"A"}, {"B"}, at_least=7, live=True)
    assert (found.tickets, found.unknown) == ({}, {"A", "B"})
    assert [warning["code"] for warning in found.warnings] == [
        "ticket_projection_failed",
        "ticket_projection_unprojected",
    ]
    assert reads.asked == [None]


async def test_what_another_try_may_heal_is_raised(reads: Reads, tickets: Tickets) -> None:
    reads.error = Unreachable("reset")
    with pytest.raises(Unreachable):
        await active(tickets)
