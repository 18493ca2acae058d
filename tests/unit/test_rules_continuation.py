"""rules/continuation: the hint for the next holder (bridge.md §2.6)."""

import pytest

from pursersd.rules.continuation import continuation

HOLDER = {
    "last_claimed_by": "bob",
    "last_claimed_by_agent_id": "AI-1",
    "last_claimed_by_principal_id": "PR-1",
    "last_claimed_at": "t",
    "last_release_reason": "explicit unclaim",
}


def test_prior_holder_and_newest_branch() -> None:
    ticket = {
        **HOLDER,
        "abandoned_count": 2,
        "submission_history": [
            {"notes": "branch_and_commit: github/old @ 1"},
            {"notes": "Done.\n  Branch_And_Commit :  github/new @ 2  \nmore"},
            {"notes": "nothing here"},
            {"notes": None},
            "odd",
        ],
    }
    assert continuation(ticket) == {
        "prior_holder": {
            "agent_name": "bob",
            "agent_id": "AI-1",
            "principal_id": "PR-1",
            "claimed_at": "t",
            "release_reason": "explicit unclaim",
        },
        "branch_and_commit": "github/new @ 2",
        "abandoned_count": 2,
    }


@pytest.mark.parametrize("known", ["last_claimed_by", "last_claimed_by_agent_id"])
def test_a_holder_known_by_name_or_by_id(known: str) -> None:
    found = continuation({known: "x"})
    assert found is not None
    assert found["prior_holder"]


def test_each_half_alone() -> None:
    only_branch = continuation({"submission_history": [{"notes": "branch_and_commit: a/b @ 3"}]})
    assert only_branch == {"prior_holder": None, "branch_and_commit": "a/b @ 3", "abandoned_count": 0}
    only_holder = continuation(HOLDER)
    assert only_holder is not None
    assert only_holder["branch_and_commit"] is None


@pytest.mark.parametrize(
    "ticket",
    [
        {},
        {"abandoned_count": 3},
        {"submission_history": None},
        {"submission_history": [{"notes": "branch_and_commit"}]},
    ],
)
def test_nothing_to_say(ticket: dict[str, object]) -> None:
    assert continuation(ticket) is None
