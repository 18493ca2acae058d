"""seats/holdings: which questions a look and a check are, and what is made of the answers."""

from collections.abc import Mapping
from typing import Any, cast

import anyio

from pursersd.central.pool import Pool
from pursersd.seats import holdings

ME, OTHER = "AI-" + "a" * 64, "AI-" + "b" * 64


class Answers:
    """Answers from a list of tickets, `page` of them at a time."""

    def __init__(self, *tickets: dict[str, Any], roles: Mapping[str, str] | None = None, page: int = 100) -> None:
        self.tickets = list(tickets)
        self.roles = roles or {}
        self.page = page
        self.asked: list[tuple[str, Any]] = []

    @property
    def as_pool(self) -> Pool:
        return cast("Pool", self)

    async def read(self, tool: str, arguments: Mapping[str, Any], **_: object) -> dict[str, Any]:
        match tool:
            case "board_status":
                self.asked.append((tool, None))
                agents = [{"agent_id": x, "role": role, "lease_expires_at": "soon"} for x, role in self.roles.items()]
                idle = {"agent_id": OTHER, "role": "worker", "lease_expires_at": None}
                return {"agents": [*agents, idle], "claim_ttl_s": 60, "latest_seq": 9}
            case "ticket_get":
                self.asked.append((tool, arguments["ticket_id"]))
                return {"ticket": {**self._one(arguments["ticket_id"]), "ttl_s": 900}}
        self.asked.append((tool, arguments.get("status")))
        wanted = [t for t in self.tickets if arguments.get("status") in (None, t["status"])]
        start = int(arguments.get("cursor", 0))
        more = len(wanted) > start + self.page
        rows = wanted[start : start + self.page]
        return {"tickets": rows, "latest_seq": 9, "has_more": more, "next_cursor": str(start + self.page)}

    def _one(self, ticket_id: str) -> dict[str, Any]:
        return next(ticket for ticket in self.tickets if ticket["ticket_id"] == ticket_id)


def claimed(number: int, by: str = ME, status: str = "claimed") -> dict[str, Any]:
    return {"ticket_id": f"T{number}", "status": status, "claimed_by_agent_id": by}


def survey(answers: Answers, since: int = 0) -> holdings.Survey:
    async def body() -> holdings.Survey:
        return await holdings.of_seats(answers.as_pool, "b", {ME}, since=since)

    return anyio.run(body)


def test_seats_that_hold_nothing_cost_one_read() -> None:
    answers = Answers(claimed(1, OTHER), roles={OTHER: "worker"})
    found = survey(answers)
    assert (found.ttl_s, found.seq, found.claims) == (60.0, 9, [])
    assert answers.asked == [("board_status", None)]


def test_nor_does_a_journal_that_has_not_grown() -> None:
    answers = Answers(claimed(1), roles={ME: "worker"})
    assert survey(answers, since=9).claims == []
    assert answers.asked == [("board_status", None)]
    assert [claim.key.ticket_id for claim in survey(answers, since=8).claims] == ["T1"]


def test_a_workers_tickets_are_looked_for_among_work_first() -> None:
    answers = Answers(claimed(1), claimed(2, OTHER), claimed(3, status="in_progress"), roles={ME: "worker"})
    assert [claim.key.ticket_id for claim in survey(answers).claims] == ["T1", "T3"]
    assert [what for _, what in answers.asked[1:]] == ["claimed", "in_progress"]


def test_a_worker_that_reviews_is_found_in_the_end() -> None:
    review = {"ticket_id": "T1", "status": "submitted", "review_lease": {"reviewer_agent_id": ME}}
    answers = Answers(review, roles={ME: "worker"})
    assert [claim.key.kind for claim in survey(answers).claims] == ["review"]
    answers = Answers(review, roles={ME: "reviewer"})
    assert [claim.key.kind for claim in survey(answers).claims] == ["review"]
    assert [what for _, what in answers.asked[1:]] == ["submitted"]


def test_all_pages_are_read_and_a_row_without_its_leases_is_read_again() -> None:
    answers = Answers(*(claimed(number) for number in range(5)), page=2)
    answers.tickets[3]["oversized_for_list"] = True

    async def body() -> holdings.Holdings:
        return await holdings.of_tickets(answers.as_pool, "b", {f"T{number}" for number in range(5)})

    found = anyio.run(body)
    assert sorted(found.tickets) == ["T0", "T1", "T2", "T3", "T4"]
    assert found.tickets["T3"]["ttl_s"] == 900
    assert ("ticket_get", "T3") in answers.asked
    assert found.seq == 9
