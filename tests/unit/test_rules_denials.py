"""rules/denials: whom a board refused, for how long, and who asks again (bridge.md §2.8, D16)."""

from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pursersd import errors
from pursersd.rules.denials import PROBE_S, RETRY_S, DenialKey, Denials
from rig.wait_oracle import bridge

KEY = DenialKey("http://central/mcp", "0123456789ab", "worker", "b")
TEXT = "board access denied: invite required"
DENIED = errors.ToolFailed("board_join", TEXT)
BUSY = errors.Unreachable("Nobody answers")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def memory(limit: int = 100) -> tuple[Denials, Clock]:
    clock = Clock()
    return Denials(clock=clock, limit=limit), clock


def test_a_refusal_counts_for_fifteen_minutes() -> None:
    denials, clock = memory()
    assert denials.refusal(KEY) is None
    assert denials.remember(KEY, DENIED)
    clock.now += RETRY_S - 0.1
    assert denials.refusal(KEY) == TEXT
    clock.now += 0.1
    assert denials.refusal(KEY) is None


@pytest.mark.parametrize(
    "other",
    [
        KEY._replace(url="http://other/mcp"),
        KEY._replace(credential="ba9876543210"),
        KEY._replace(role="reviewer"),
        KEY._replace(role=None),
        KEY._replace(board="c"),
    ],
)
def test_it_counts_for_nobody_else(other: DenialKey) -> None:
    denials, _ = memory()
    denials.remember(KEY, DENIED)
    assert denials.refusal(other) is None
    denials.forget(other)
    assert denials.refusal(KEY) == TEXT


@pytest.mark.parametrize(
    ("error", "denied"),
    [
        (DENIED, True),
        (errors.ToolFailed("board_join", "authenticated principal lacks board:review authorization"), True),
        (errors.UnknownBoard("board 'b' is not one of this credential's boards"), True),
        (errors.Forbidden("x"), True),
        (errors.ToolFailed("board_join", "seat name already active"), False),
        (errors.Unauthenticated("x"), False),
        (BUSY, False),
        (errors.Overloaded("x"), False),
    ],
)
def test_only_decisions_about_rights_are_remembered(error: errors.CentralError, denied: bool) -> None:
    denials, _ = memory()
    assert denials.remember(KEY, error) is denied
    assert denials.refusal(KEY) == (str(error) if denied else None)


def expired() -> tuple[Denials, Clock]:
    denials, clock = memory()
    denials.remember(KEY, DENIED)
    clock.now += RETRY_S
    assert denials.refusal(KEY) is None
    return denials, clock


def test_only_one_caller_tries_again() -> None:
    denials, clock = expired()
    assert denials.refusal(KEY) == TEXT
    denials.remember(KEY, errors.ToolFailed("board_join", "forbidden"))
    clock.now += RETRY_S - 0.1
    assert denials.refusal(KEY) == "forbidden"


def test_success_opens_the_board_for_all() -> None:
    denials, _ = expired()
    denials.forget(KEY)
    assert [denials.refusal(KEY) for _ in range(3)] == [None] * 3
    assert repr(denials) == "<Denials 0/100>"


def test_a_try_that_told_nothing_lets_the_next_one_try() -> None:
    denials, _ = expired()
    assert not denials.remember(KEY, BUSY)
    assert [denials.refusal(KEY) for _ in range(3)] == [None, TEXT, TEXT]


def test_a_try_that_never_reports_lets_the_next_one_try_later() -> None:
    denials, clock = expired()
    clock.now += PROBE_S - 0.1
    assert denials.refusal(KEY) == TEXT
    clock.now += 0.1
    assert [denials.refusal(KEY) for _ in range(3)] == [None, TEXT, TEXT]


def test_the_memory_is_bounded_in_number_and_length() -> None:
    denials, _ = memory(limit=2)
    keys = [KEY._replace(board=name) for name in "abc"]
    for key in (keys[0], keys[1], keys[0], keys[2]):
        denials.remember(key, DENIED)
    assert [denials.refusal(key) for key in keys] == [TEXT, None, TEXT]
    assert repr(denials) == "<Denials 2/2>"
    denials.remember(KEY, errors.ToolFailed("board_join", "forbidden " * 1000))
    assert len(denials.refusal(KEY) or "") == 1000


steps = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.sampled_from([0.0, 1.0, 450.0, 899.0, 900.0])),
        st.tuples(st.just("join"), st.sampled_from([TEXT, "403 Forbidden", "seat name already active", None])),
    ),
    max_size=20,
)


@settings(max_examples=200)
@given(steps)
def test_a_lone_caller_asks_when_the_bridge_would(steps: list[tuple[str, float | str | None]]) -> None:
    denials, clock = memory()
    with (
        mock.patch.object(bridge, "time", SimpleNamespace(monotonic=clock)),
        mock.patch.object(bridge, "_BOARD_DENIALS", {}),
        mock.patch.object(bridge, "_log"),
    ):
        for step, value in steps:
            if step == "pass":
                clock.now += float(value or 0)
                continue
            known = denials.refusal(KEY)
            assert known == bridge._board_denied("b")
            if known is None and value is None:
                denials.forget(KEY)
                bridge._forget_board_denial("b")
            elif known is None:
                ours = denials.remember(KEY, errors.ToolFailed("board_join", str(value)))
                assert ours == bridge._remember_board_denial("b", bridge.BoardClientError(str(value)))
