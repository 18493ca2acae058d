"""rules/multi_result: the result of a wait on many boards, as the real bridge builds it (bridge.md §2.10, §2.11)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pursersd.rules.compaction import Compacted, compact
from pursersd.rules.multi_result import BoardOutcome, Mode, board_mode, multi_result, none_joined, tagged
from rig.wait_oracle import Board, wait_many

Json = Any

REFUSED = "board access denied: invite required"
CREATED = {"kind": "ticket_created", "seq": 3, "ticket_id": "T", "reason": "broadcast"}


def ours(boards: list[Board], since_seq: Json, modes: dict[str, Mode], found: dict[str, list[Json]]) -> Json:
    """Our result for what happened on these boards."""
    names = [board.name for board in boards]
    cursors = {name: since_seq.get(name, 0) if isinstance(since_seq, dict) else since_seq for name in names}
    return multi_result(
        cursors=cursors,
        joined={board.name: _outcome(board, since_seq, modes[board.name]) for board in boards if not board.refused},
        skipped={board.name: board.refused for board in boards if board.refused},
        events=tagged(names, found),
        waited_s=0.0,
    )


def _outcome(board: Board, since_seq: Json, mode: Mode) -> BoardOutcome:
    heard = [int(detail) if kind == "cursor" else detail["seq"] for kind, detail in board.live if kind != "failed"]
    return BoardOutcome(
        cursor=max([board.cursor, *heard]),
        mode=mode,
        resynced=board.resynced,
        compacted=compact(board.read, list(board.read), cursor_omitted=since_seq is None),
        partial=board.partial,
        warnings=board.warnings,
    )


def without_time(result: Json) -> Json:
    return {key: value for key, value in result.items() if key != "waited_s"}


def test_an_entry_return_with_a_skipped_board() -> None:
    boards = [Board("b", cursor=5, read=[CREATED]), Board("x", refused=REFUSED), Board("a", cursor=2, resynced=True)]
    found = ours(boards, {"x": 9, "b": 1}, {"a": "immediate", "b": "immediate"}, {"b": [CREATED]})
    assert found == {
        "new_seq": {"b": 5, "x": 9, "a": 2},
        "events": [{**CREATED, "board_id": "b"}],
        "waited_s": 0.0,
        "timed_out": False,
        "mode": "immediate",
        "mode_by_board": {"b": "immediate", "a": "immediate"},
        "reason": "broadcast",
        "resynced": {"b": False, "x": False, "a": True},
        "skipped_boards": {"x": REFUSED},
    }
    assert without_time(found) == without_time(wait_many(boards, {"x": 9, "b": 1}))
    assert list(found["new_seq"]) == ["b", "x", "a"]


def test_a_skipped_board_without_a_cursor_counts_from_the_beginning() -> None:
    boards = [Board("a", read=[CREATED]), Board("x", refused=REFUSED)]
    found = ours(boards, None, {"a": "immediate"}, {"a": [CREATED]})
    assert found["new_seq"] == {"a": 0, "x": 0}
    assert without_time(found) == without_time(wait_many(boards, None))


def test_a_caller_who_left_the_cursor_out_leaves_it_out_again_when_a_board_was_not_read() -> None:
    joined = {"a": BoardOutcome(5, "immediate"), "b": BoardOutcome(None, "immediate", partial=True)}
    found = multi_result(cursors={"a": None, "b": None}, joined=joined, skipped={}, events=[], waited_s=1)
    assert (found["new_seq"], found["reason"], found["resynced"]) == (None, "partial", {"a": False, "b": False})


def test_optional_maps_tell_of_every_joined_board() -> None:
    boards = [
        Board("a", read=[{**CREATED, "seq": n, "ticket_id": f"T{n % 3}"} for n in range(1, 202)], cursor=201),
        Board("x", refused=REFUSED),
        Board("b", partial=True, warnings=[{"code": "ticket_projection_timeout", "returned": 0}]),
    ]
    kept = compact(boards[0].read, list(boards[0].read), cursor_omitted=False)
    assert kept is not None
    found = ours(boards, 0, {"a": "immediate", "b": "immediate"}, {"a": kept.events})
    assert found["compacted"] == {"a": True, "b": False}
    assert found["dropped"] == {"a": 198, "b": 0}
    assert found["event_counts"] == {"a": {"ticket_created": 201}, "b": {}}
    assert found["partial"] == {"a": False, "b": True}
    assert found["warnings"] == {"b": [{"code": "ticket_projection_timeout", "returned": 0}]}
    assert (found["reason"], found["timed_out"]) == ("broadcast", False)
    assert without_time(found) == without_time(wait_many(boards, 0))


def test_an_incomplete_read_without_events_is_partial_and_no_timeout() -> None:
    boards = [Board("a", partial=True, cursor=1), Board("b")]
    found = ours(boards, 0, {"a": "immediate", "b": "immediate"}, {})
    assert (found["reason"], found["timed_out"], found["partial"]) == ("partial", False, {"a": True, "b": False})
    assert without_time(found) == without_time(wait_many(boards, 0))


@pytest.mark.parametrize(
    ("blocked", "polled", "mode"),
    [(False, False, "immediate"), (False, True, "immediate"), (True, False, "push"), (True, True, "poll")],
)
def test_board_mode(blocked: bool, polled: bool, mode: str) -> None:
    assert board_mode(blocked=blocked, polled=polled) == mode


@pytest.mark.parametrize(
    ("modes", "mode"),
    [
        ([], "immediate"),
        (["immediate", "immediate"], "immediate"),
        (["push"], "push"),
        (["push", "push"], "push"),
        (["poll", "poll"], "poll"),
        (["push", "poll"], "mixed"),
        (["immediate", "push"], "mixed"),
    ],
)
def test_the_mode_of_all_boards(modes: list[Mode], mode: str) -> None:
    joined = {f"b{n}": BoardOutcome(0, mode) for n, mode in enumerate(modes)}
    found = multi_result(cursors=dict.fromkeys(joined, 0), joined=joined, skipped={}, events=[], waited_s=3.147)
    assert (found["mode"], found["mode_by_board"]) == (mode, {f"b{n}": mode for n, mode in enumerate(modes)})
    assert (found["waited_s"], found["timed_out"], found["reason"]) == (3.15, True, "timeout")


def test_the_result_shares_nothing_with_the_warnings() -> None:
    warning: dict[str, object] = {"code": "x"}
    joined = {"a": BoardOutcome(0, "push", warnings=[warning], compacted=Compacted([], 0, {"k": 1}))}
    found: Json = multi_result(cursors={"a": 0}, joined=joined, skipped={}, events=[], waited_s=0)
    assert found["warnings"]["a"][0] is not warning
    assert found["event_counts"]["a"] == {"k": 1}


reasons = st.sampled_from(["offer", "held_ticket_update", "broadcast", "keepalive paused: model idle", None])
journal = st.builds(
    lambda seq, kind, ticket, reason: {"seq": seq, "kind": kind, "ticket_id": ticket, "reason": reason},
    st.integers(1, 20),
    st.sampled_from(["ticket_created", "ticket_status_changed", "ticket_offered"]),
    st.sampled_from(["T", "U", "V"]),
    reasons,
)


@st.composite
def entered(draw: st.DrawFn) -> list[Board]:
    """Boards of a wait that ends at its entry: one at least has something to tell or was read in part."""
    boards = [_entered(draw, name) for name in draw(st.permutations("abcd"))[: draw(st.integers(1, 4))]]
    if not any((board.read or board.partial) and not board.refused for board in boards):
        boards[0] = Board(boards[0].name, cursor=3, read=[CREATED])
    return boards


def _entered(draw: st.DrawFn, name: str) -> Board:
    if draw(st.integers(0, 3)) == 0:
        return Board(name, refused=REFUSED)
    return Board(
        name,
        cursor=draw(st.integers(0, 30)),
        read=sorted(draw(st.lists(journal, max_size=4)), key=lambda event: event["seq"]),
        resynced=draw(st.booleans()),
        partial=draw(st.booleans()),
        warnings=draw(st.lists(st.just({"code": "ticket_projection_failed"}), max_size=1)),
    )


starts = st.one_of(st.none(), st.integers(0, 9), st.dictionaries(st.sampled_from("abcdz"), st.integers(0, 9)))


@settings(max_examples=150)
@given(entered(), starts)
def test_every_entry_return_is_the_bridge_s(boards: list[Board], since_seq: Json) -> None:
    found = {}
    for board in boards:
        kept = compact(board.read, list(board.read), cursor_omitted=since_seq is None)
        found[board.name] = list(kept.events if kept else board.read) if not board.refused else []
    told = ours(boards, since_seq, dict.fromkeys("abcd", "immediate"), found)
    assert without_time(told) == without_time(wait_many(boards, since_seq))


LIVE: dict[Mode, list[tuple[str, Json]]] = {
    "push": [("cursor", "12"), ("event", {**CREATED, "seq": 11})],
    "poll": [("failed", "subscription denied")],
    "immediate": [],
}


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from([*LIVE]), st.integers(0, 2), st.booleans()), min_size=1, max_size=4),
    st.integers(0, 9),
)
def test_every_return_of_a_blocking_wait_is_the_bridge_s(drawn: list[tuple[Mode, int, bool]], since_seq: int) -> None:
    modes: dict[str, Mode] = {}
    boards = []
    found = {}
    for name, (mode, count, refused) in zip("abcd", drawn, strict=False):
        live = LIVE[mode][:count]
        board = Board(name, refused=REFUSED if refused and name != "a" else None, cursor=10, live=live)
        boards.append(board)
        modes[name] = mode if live else "immediate"
        found[name] = [] if board.refused else [detail for kind, detail in live if kind == "event"]
    told = ours(boards, since_seq, modes, found)
    assert without_time(told) == without_time(wait_many(boards, since_seq))


# --- no board let the seat in ---------------------------------------------------------------------------------------


def refused(final: bool = True, requested: Json = ("a", "b"), cursor: Json = 5, boards: Json = ("a", "b")) -> Json:
    return none_joined(
        boards=boards,
        skipped=dict.fromkeys(boards, REFUSED),
        final=final,
        requested=requested,
        caller_cursor=cursor,
        wait_mode="push",
        home="home",
        waited_s=0.019,
    )


def test_a_wait_that_no_board_let_in_is_an_error_where_the_bridge_would_have_the_caller_come_back_at_once() -> None:
    told = wait_many([Board("a", refused=REFUSED), Board("b", refused=REFUSED)], 5)
    assert (told["timed_out"], told["reason"], told["mode"], told["mode_by_board"]) == (
        True,
        "timeout",
        "immediate",
        {},
    )
    assert told["waited_s"] < 0.03
    found = refused()
    assert found["skipped_boards"] == told["skipped_boards"]
    error = found.pop("error")
    assert found == {
        "new_seq": {"a": 5, "b": 5},
        "events": [],
        "waited_s": 0.02,
        "timed_out": False,
        "mode": "error",
        "mode_by_board": {"a": "error", "b": "error"},
        "reason": "push_unavailable",
        "resynced": {"a": False, "b": False},
        "skipped_boards": {"a": REFUSED, "b": REFUSED},
    }
    assert (error["cause_class"], error["retryable"]) == ("authorization", False)
    assert error["action"] == "repair_authorization_then_rearm_from_unchanged_cursor"
    assert error["cursor_preserved"] is True
    assert f"a: {REFUSED}; b: {REFUSED}. Ask the boards' admin" in error["detail"]


def test_refusals_that_may_pass_are_retryable() -> None:
    error = refused(final=False)["error"]
    assert (error["cause_class"], error["retryable"]) == ("central", True)
    assert error["action"] == "rearm_from_unchanged_cursor"


@pytest.mark.parametrize(
    ("requested", "cursor", "new_seq"),
    [
        ("registry", 5, 5),
        ("registry", {"a": 1, "z": 2}, {"a": 1, "z": 2}),
        (("a", "b"), None, None),
        (("a", "b"), {"a": 1}, {"a": 1}),
    ],
)
def test_the_caller_s_cursor_is_given_back_as_it_was(requested: Json, cursor: Json, new_seq: Json) -> None:
    found = refused(requested=requested, cursor=cursor)
    assert found["new_seq"] == new_seq
    assert found["mode_by_board"] == {"a": "error", "b": "error"}


def test_a_refusal_that_is_a_sentence_ends_once() -> None:
    found = none_joined(
        boards=["a"],
        skipped={"a": "No such board. Check its name."},
        final=True,
        requested=("a",),
        caller_cursor=5,
        wait_mode="push",
        home="home",
        waited_s=0.0,
    )
    assert "a: No such board. Check its name. Ask the boards' admin" in found["error"]["detail"]
    assert found["skipped_boards"] == {"a": "No such board. Check its name."}


def test_the_text_names_some_boards_and_the_map_all() -> None:
    found = refused(boards=tuple("abcdefg"))
    assert f"e: {REFUSED}; and 2 more. " in found["error"]["detail"]
    assert list(found["skipped_boards"]) == [*"abcdefg"]
