"""tools/humans: what is listed of which boards, and what a refusal of one of them means."""

from typing import Any, cast

import pytest

from pursersd.errors import ToolFailed, UnknownBoard, Unreachable
from pursersd.feed.centrals import Central
from pursersd.tools import humans

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def ticket(name: str, **more: Any) -> dict[str, Any]:
    return {"ticket_id": name, "status": "needs_human", "human_request": {"request_id": f"HR-{name}"}, **more}


class Boards:
    """Central as far as these reads go: answers by board, or what it raises."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.pool = self
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def require_board(self, board: str) -> None:
        if board not in self.answers:
            raise UnknownBoard(f"board {board!r} is unknown")

    async def read(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((tool, arguments))
        answer = self.answers[arguments["board_id"]]
        if isinstance(answer, Exception):
            raise answer
        if tool == "ticket_get":
            return {"ticket": ticket(arguments["ticket_id"])}
        return cast("dict[str, Any]", answer)


async def listed(boards: Boards, *names: str) -> humans.Listed:
    return await humans.list_pending(cast("Central", boards), names)


async def test_questions_of_all_boards_in_one_order() -> None:
    found = await listed(
        Boards(b={"tickets": [ticket("TK-2"), ticket("TK-1")]}, a={"tickets": [ticket("TK-3")]}), "b", "a"
    )
    assert [str(each.target) for each in found.questions] == ["a/TK-3/HR-TK-3", "b/TK-1/HR-TK-1", "b/TK-2/HR-TK-2"]
    assert (found.skipped, found.shortened) == ({}, [])


async def test_a_board_that_refuses_is_named_and_the_others_are_read() -> None:
    boards = Boards(shut=ToolFailed("ticket_list", "board access denied"), a={"tickets": [ticket("TK-1")]})
    found = await listed(boards, "nowhere", "shut", "a")
    assert [each.target.board for each in found.questions] == ["a"]
    assert found.skipped == {"nowhere": "board 'nowhere' is unknown", "shut": "board access denied"}


async def test_a_central_that_does_not_answer_is_no_boards_decision() -> None:
    with pytest.raises(Unreachable):
        await listed(Boards(a=Unreachable("gone")), "a")


async def test_a_list_is_bounded_and_says_so() -> None:
    boards = Boards(a={"tickets": [ticket("TK-1")], "has_more": True})
    found = await listed(boards, "a")
    assert found.shortened == ["a"]
    assert boards.asked == [("ticket_list", {"board_id": "a", "status": "needs_human", "limit": humans.LISTED})]


async def test_a_ticket_whose_row_leaves_the_question_out_is_read() -> None:
    boards = Boards(a={"tickets": [{"ticket_id": "TK-1", "status": "needs_human"}]})
    assert [each.target.request_id for each in (await listed(boards, "a")).questions] == ["HR-TK-1"]
    assert boards.asked[1] == ("ticket_get", {"board_id": "a", "ticket_id": "TK-1", "view": "full"})
