"""rules/human_asked: what the next daemon knows of the questions that a call has put to the human."""

import json

import pytest

from pursersd.rules.human_asked import CALLS, QUESTIONS, targets, with_target
from pursersd.rules.human_question import Target


def target(number: int) -> Target:
    return Target("alpha", f"TK-{number}", "HR-1")


def test_each_call_has_its_own_in_the_order_in_which_they_were_put() -> None:
    first = with_target(None, "one", target(2))
    kept = with_target(with_target(first, "two", target(3)), "one", target(1))
    kept = with_target(json.loads(json.dumps(kept)), "one", target(2))
    assert targets(kept, "one") == [target(1), target(2)]
    assert targets(kept, "two") == [target(3)]
    assert targets(kept, "three") == []
    assert targets(first, "one") == [target(2)], "the link compares with what it said last"


def test_few_are_remembered() -> None:
    kept: dict[str, object] = {}
    for number in range(QUESTIONS + 1):
        kept = with_target(kept, "long", target(number))
    assert targets(kept, "long") == [target(number) for number in range(1, QUESTIONS + 1)]
    for number in range(CALLS):
        kept = with_target(kept, f"call {number}", target(0))
    assert list(kept) == [f"call {number}" for number in range(CALLS)]


@pytest.mark.parametrize("kept", [None, 5, [], {"one": 5}, {"one": [5, ["a", "b"], ["a", "b", 3]]}])
def test_what_another_version_left_is_no_question(kept: object) -> None:
    assert targets(kept, "one") == []
    assert targets(with_target(kept, "one", target(1)), "one") == [target(1)]
