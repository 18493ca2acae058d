"""rules/arguments: the texts and their order (bridge.md §1.5), and what is kept of a good call."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.errors import ArgumentError
from pursersd.rules.arguments import DEFAULT_TIMEOUT_S, MAX_CURSOR, WaitArguments, budget_s, check

GOOD: dict[str, Any] = {
    "since_seq": None,
    "timeout_s": 180,
    "timeout_given": True,
    "only_mine": True,
    "project": None,
    "agent_name": None,
    "boards": None,
    "wait_for": "auto",
    "block_limit_s": 560,
}

BOARDS = 'boards must be a list of board IDs or "registry"; received '
NO_BOARD = "boards must contain at least one non-empty board ID; received "
BLANK_BOARD = "boards must contain only non-empty board ID strings; received "
WAIT_FOR = "wait_for must be one of 'auto', 'claimable', or 'submitted'; received "
NEGATIVE = "since_seq integer cursors must be non-negative; received "
MAP_ALONE = "since_seq must be a non-negative integer when boards is omitted; received "
MAP = "since_seq maps must use non-empty board ID strings and non-negative integer cursors; received "
CURSOR = "since_seq must be a non-negative integer or a board-to-cursor map; received "
TIMEOUT = "timeout_s must be an integer from 1 to 560; received "


def checked(**changes: object) -> WaitArguments:
    return check(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"boards": "alpha"}, BOARDS + "'alpha'"),
        ({"boards": "Registry"}, BOARDS + "'Registry'"),
        ({"boards": 5}, BOARDS + "5"),
        ({"boards": {"a": 1}}, BOARDS + "{'a': 1}"),
        ({"boards": []}, NO_BOARD + "[]"),
        ({"boards": ["a", " "]}, BLANK_BOARD + "['a', ' ']"),
        ({"boards": ["a", 1]}, BLANK_BOARD + "['a', 1]"),
        ({"wait_for": "all"}, WAIT_FOR + "'all'"),
        ({"wait_for": None}, WAIT_FOR + "None"),
        ({"since_seq": -1}, NEGATIVE + "-1"),
        ({"since_seq": {"a": 1}}, MAP_ALONE + "{'a': 1}"),
        ({"since_seq": {}}, MAP_ALONE + "{}"),
        ({"since_seq": {"": 1}, "boards": ["a"]}, MAP + "{'': 1}"),
        ({"since_seq": {"a": -1}, "boards": ["a"]}, MAP + "{'a': -1}"),
        ({"since_seq": {"a": "1"}, "boards": ["a"]}, MAP + "{'a': '1'}"),
        ({"since_seq": {1: 1}, "boards": ["a"]}, MAP + "{1: 1}"),
        ({"since_seq": "7"}, CURSOR + "'7'"),
        ({"since_seq": 1.5}, CURSOR + "1.5"),
        ({"since_seq": [1]}, CURSOR + "[1]"),
        ({"timeout_s": 0}, TIMEOUT + "0"),
        ({"timeout_s": 561}, TIMEOUT + "561"),
        ({"timeout_s": "5"}, TIMEOUT + "'5'"),
        ({"timeout_s": 1.5}, TIMEOUT + "1.5"),
    ],
)
def test_refusals(changes: dict[str, object], text: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        checked(**changes)
    assert str(refused.value) == text
    assert refused.value.code == "arguments"


def test_the_first_wrong_argument_is_named() -> None:
    wrong: dict[str, object] = {"boards": [], "wait_for": "x", "since_seq": -1, "timeout_s": 0}
    named = []
    for argument in list(wrong):
        with pytest.raises(ArgumentError) as refused:
            checked(**wrong)
        named.append(str(refused.value).split()[0])
        del wrong[argument]
    assert named == ["boards", "wait_for", "since_seq", "timeout_s"]


@pytest.mark.parametrize("boards", [None, ["a"]])
def test_a_cursor_that_central_cannot_store_is_refused_with_the_limit(boards: object) -> None:
    assert checked(since_seq=MAX_CURSOR).since_seq == MAX_CURSOR
    assert checked(since_seq={"a": MAX_CURSOR}, boards=["a"]).since_seq == {"a": MAX_CURSOR}
    cursor: object = MAX_CURSOR + 1 if boards is None else {"a": MAX_CURSOR + 1}
    with pytest.raises(ArgumentError, match=f"non-negative.*at most {MAX_CURSOR}; received .*{MAX_CURSOR + 1}"):
        checked(since_seq=cursor, boards=boards)


def test_a_value_that_is_too_long_is_not_shown_whole() -> None:
    with pytest.raises(ArgumentError, match=r"too long to show$"):
        checked(since_seq=10**5000)
    with pytest.raises(ArgumentError) as refused:
        checked(boards="x" * 10_000)
    assert len(str(refused.value)) < 1200


def test_a_boolean_counts_as_the_bridge_s_schema_counts_it() -> None:
    found = checked(since_seq=True, timeout_s=True)
    assert (found.since_seq, found.timeout_s) == (1, 1)
    assert type(found.since_seq) is int
    assert type(found.timeout_s) is int
    assert checked(since_seq={"a": True}, boards=["a"]).since_seq == {"a": 1}


def test_the_default_timeout_gives_way_to_a_small_block_limit() -> None:
    assert checked(timeout_s=180, timeout_given=False, block_limit_s=30).timeout_s == 30
    assert checked(timeout_s=180, timeout_given=False).timeout_s == 180
    with pytest.raises(ArgumentError, match="from 1 to 30; received 180"):
        checked(timeout_s=180, timeout_given=True, block_limit_s=30)


def test_what_is_normalised() -> None:
    found = checked(
        since_seq={"a": 3}, project="  AlPha ", agent_name=" x ", boards=[" a ", "b", "a"], wait_for=" Submitted "
    )
    assert found == WaitArguments(
        since_seq={"a": 3},
        timeout_s=180,
        only_mine=True,
        project="alpha",
        agent_name=" x ",
        boards=("a", "b"),
        wait_for="submitted",
    )
    assert checked(project="  ", boards="registry", since_seq={"a": 1}).project is None
    assert checked(boards="registry").boards == "registry"


def test_the_smallest_values_are_good() -> None:
    assert checked(since_seq=0, timeout_s=1, timeout_given=True, wait_for="CLAIMABLE").since_seq == 0
    assert checked(since_seq={"a": 0}, boards=["a"]).since_seq == {"a": 0}
    assert (MAX_CURSOR, DEFAULT_TIMEOUT_S) == (9223372036854775807, 180)


def test_a_default_of_the_wrong_type_is_refused_too() -> None:
    with pytest.raises(ArgumentError, match="timeout_s must be an integer"):
        checked(timeout_s="180", timeout_given=False)


def test_an_orchestrator_never_blocks_longer_than_200_seconds() -> None:
    assert budget_s(560, "orchestrator", "worker") == 200
    assert budget_s(560, None, "orchestrator") == 200
    assert budget_s(20, "orchestrator") == 20
    assert budget_s(560, "coordinator", "worker", None) == 560


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(json_values, json_values, json_values, json_values, st.integers(1, 600))
def test_anything_is_either_refused_or_in_range(
    since_seq: object, timeout_s: object, boards: object, wait_for: object, limit: int
) -> None:
    try:
        found = checked(since_seq=since_seq, timeout_s=timeout_s, boards=boards, wait_for=wait_for, block_limit_s=limit)
    except ArgumentError:
        return
    cursors = found.since_seq.values() if isinstance(found.since_seq, dict) else [found.since_seq]
    assert all(cursor is None or 0 <= cursor <= MAX_CURSOR for cursor in cursors)
    assert 1 <= found.timeout_s <= limit
