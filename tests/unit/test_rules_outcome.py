"""rules/outcome: reason, merge, and the two shapes of a result (bridge.md §1.6, §2.4, §2.10, §2.11)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd import errors
from pursersd.rules.arguments import Cursor
from pursersd.rules.compaction import Compacted
from pursersd.rules.outcome import merge, reason_for, scan_reason, wait_error, wait_result

BROADCAST: dict[str, object] = {"kind": "ticket_created", "reason": "broadcast", "ticket_id": "T", "seq": 3}
MESSAGE = (
    "a2a_wait could not complete; no caller cursor was advanced. "
    "Check the wait-bridge/Central transport, then re-arm from new_seq."
)
POLICY = (
    "a2a_wait configuration is incompatible with the joined seat; no caller cursor was advanced. "
    "Repair the wait selection, then re-arm from new_seq."
)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], "timeout"),
        ([{"reason": "offer"}], "offer"),
        ([{"reason": "reconciled"}], "reconciled"),
        ([{"reason": "held_ticket_update"}, {"reason": "offer"}], "held_ticket_update"),
        ([{"reason": "broadcast", "source": "backlog_scan"}], "broadcast"),
        ([{"reason": "keepalive paused: model idle"}], "journal"),
        ([{}, {"kind": "review_offered"}], "offer"),
        ([{}, {"kind": "ticket_offered"}], "offer"),
        ([{"source": "backlog_scan"}, {"source": "backlog_scan"}], "backlog"),
        ([{"source": "backlog_scan"}, {}], "journal"),
        ([{"reason": 5}], "journal"),
    ],
)
def test_reason_for(events: list[dict[str, object]], reason: str) -> None:
    assert reason_for(events) == reason


def test_scan_reason() -> None:
    assert scan_reason([{"reason": "broadcast"}, {"reason": "reconciled"}]) == "reconciled"
    assert scan_reason([{"reason": "broadcast"}]) == "backlog"


def test_merge_keeps_journal_events_and_fills_up_with_cues() -> None:
    journal: list[dict[str, object]] = [{"ticket_id": "A", "seq": 1}, {"ticket_id": "A", "seq": 2}, {"seq": 3}]
    offers: list[dict[str, object]] = [{"ticket_id": "A", "n": 1}, {"ticket_id": "B", "n": 2}]
    backlog: list[dict[str, object]] = [{"ticket_id": "B", "n": 3}, {"ticket_id": "C", "n": 4}, {"ticket_id": "A"}]
    assert merge(journal, offers, backlog) == [*journal, offers[1], backlog[1]]
    assert merge([], [], backlog) == backlog
    assert merge([], [], []) == []


rows = st.lists(st.fixed_dictionaries({"ticket_id": st.sampled_from("ABCDE")}), max_size=6)


@given(rows, rows, rows)
def test_merge_leaves_no_ticket_out_and_tells_none_twice(
    journal: list[dict[str, Any]], offers: list[dict[str, Any]], backlog: list[dict[str, Any]]
) -> None:
    merged = merge(journal, offers, backlog)
    added = [event["ticket_id"] for event in merged[len(journal) :]]
    assert merged[: len(journal)] == journal
    assert len(added) == len(set(added))
    assert {event["ticket_id"] for event in merged} == {e["ticket_id"] for e in (*journal, *offers, *backlog)}


# --- results --------------------------------------------------------------------------------------------------------


def test_a_plain_result_has_the_bridge_s_keys_in_its_order() -> None:
    found = wait_result(new_seq=7, events=[BROADCAST], waited_s=0.2349, mode="push")
    assert found == {
        "new_seq": 7,
        "events": [BROADCAST],
        "waited_s": 0.23,
        "timed_out": False,
        "mode": "push",
        "reason": "broadcast",
        "resynced": False,
    }
    assert list(found) == ["new_seq", "events", "waited_s", "timed_out", "mode", "reason", "resynced"]


def test_a_timeout() -> None:
    found = wait_result(new_seq=7, events=[], waited_s=20.004, mode="push", resynced=True)
    assert (found["timed_out"], found["reason"], found["waited_s"], found["resynced"]) == (True, "timeout", 20.0, True)


def test_an_incomplete_read_without_events_is_partial_and_no_timeout() -> None:
    found = wait_result(new_seq=7, events=[], waited_s=1, mode="poll", reason="timeout", partial=True)
    assert (found["timed_out"], found["reason"], found["partial"]) == (False, "partial", True)
    found = wait_result(new_seq=7, events=[BROADCAST], waited_s=1, mode="poll", partial=True)
    assert (found["timed_out"], found["reason"], found["partial"]) == (False, "broadcast", True)


def test_optional_keys() -> None:
    found = wait_result(
        new_seq=7,
        events=[BROADCAST],
        waited_s=0,
        mode="poll",
        reason="journal",
        compacted=Compacted([BROADCAST], 0, {"ticket_created": 1}),
        warnings=[{"code": "cursor_ahead_clamped"}],
        registry_warning="project_registry unavailable",
    )
    assert found["reason"] == "journal"
    assert (found["compacted"], found["dropped"], found["event_counts"]) == (True, 0, {"ticket_created": 1})
    assert found["warnings"] == [{"code": "cursor_ahead_clamped"}]
    assert found["registry_warning"] == "project_registry unavailable"
    assert "partial" not in found


# --- structured errors ----------------------------------------------------------------------------------------------


def failed(error: BaseException, cursor: Cursor = 5, *, boards: Any = None, wait_mode: Any = "push") -> dict[str, Any]:
    return wait_error(error, caller_cursor=cursor, wait_mode=wait_mode, boards=boards, home="home", waited_s=1.239)


def test_a_failed_wait_says_what_and_keeps_the_cursor() -> None:
    assert failed(errors.Unreachable("Nobody answers at http://127.0.0.1:1. Start Central.")) == {
        "new_seq": 5,
        "events": [],
        "waited_s": 1.24,
        "timed_out": False,
        "mode": "error",
        "mode_by_board": {"home": "error"},
        "reason": "push_unavailable",
        "resynced": False,
        "skipped_boards": {},
        "error": {
            "code": "push_unavailable",
            "cause_class": "transport",
            "exception_classes": ["Unreachable"],
            "message": MESSAGE,
            "retryable": True,
            "cursor_preserved": True,
            "action": "rearm_from_unchanged_cursor",
            "detail": "Nobody answers at http://127.0.0.1:1. Start Central.",
        },
    }


def test_poll_mode_has_its_own_code() -> None:
    found = failed(errors.Unreachable("x"), wait_mode="poll")
    assert found["reason"] == found["error"]["code"] == "wait_unavailable"


@pytest.mark.parametrize("wait_mode", ["push", "poll"])
def test_a_policy_error_is_the_callers_to_repair(wait_mode: str) -> None:
    found = failed(errors.WaitPolicyError("why"), wait_mode=wait_mode)
    assert found["reason"] == found["error"]["code"] == "wait_configuration"
    assert (found["error"]["message"], found["error"]["detail"]) == (POLICY, "why")
    assert found["error"]["action"] == "repair_configuration_then_rearm_from_unchanged_cursor"


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (errors.Unauthenticated("x"), "repair_authentication_then_rearm_from_unchanged_cursor"),
        (errors.UnknownBoard("x"), "repair_authorization_then_rearm_from_unchanged_cursor"),
        (errors.InstanceMismatch("x"), "repair_configuration_then_rearm_from_unchanged_cursor"),
        (errors.Overloaded("x"), "rearm_from_unchanged_cursor"),
    ],
)
def test_actions(error: BaseException, action: str) -> None:
    assert failed(error)["error"]["action"] == action
    assert failed(error, None)["error"]["action"] == "rearm_with_omitted_cursor"


@pytest.mark.parametrize(
    ("cursor", "boards", "new_seq", "concerned", "resynced"),
    [
        (None, None, None, ["home"], False),
        (0, None, 0, ["home"], False),
        (5, ("a", "b"), {"a": 5, "b": 5}, ["a", "b"], {"a": False, "b": False}),
        (None, ("a", "b"), None, ["a", "b"], False),
        (5, "registry", 5, ["home"], False),
        ({"a": 1, "z": 2}, "registry", {"a": 1, "z": 2}, ["a", "z"], {"a": False, "z": False}),
        ({"a": 1}, ("a", "b", "a"), {"a": 1}, ["a", "b"], {"a": False, "b": False}),
        ({}, "registry", {}, ["home"], {"home": False}),
    ],
)
def test_whose_boards_failed(
    cursor: Cursor, boards: Any, new_seq: object, concerned: list[str], resynced: object
) -> None:
    found = failed(errors.Unreachable("x"), cursor, boards=boards)
    assert found["new_seq"] == new_seq
    assert found["mode_by_board"] == dict.fromkeys(concerned, "error")
    assert found["resynced"] == resynced


def test_the_callers_map_is_copied() -> None:
    cursor = {"a": 1}
    found = failed(errors.Unreachable("x"), cursor, boards=("a",))
    assert found["new_seq"] is not cursor
