"""rules/stats_document: any text is read or refused, and what is written is bounded and read again."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.stats import Changes, add, trim
from pursersd.rules.stats_document import LIMIT, SCHEMA, Damaged, Document, read, seat_key, text

NOW = datetime(2026, 3, 8, 13, 30, tzinfo=UTC)
ANN = seat_key("b", "ann")
CALLS = {"board_id": "b", "agent_name": "ann", "request_bytes": 1, "response_bytes": 2, "calls": {}}
CYCLES = {"board_id": "b", "agent_name": "ann", "latest_at": "x", "latest_response_bytes": 3, "samples": []}
WAITS = {"board_id": "b", "agent_name": "ann", "hours": {}, "returns": []}
POLLED = {"board_id": "b", "agent_name": "ann", "reason": "r", "observed_at": "x"}
FULL = {
    "days": {"2026-03-08": {"seats": {ANN: CALLS}}},
    "poll_cycles": {ANN: CYCLES},
    "model_wait": {ANN: WAITS},
    "push_unavailable": {ANN: POLLED},
}


def document(content: object) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(read(json.dumps(content).encode()))
    return found


@pytest.mark.parametrize(("schema", "shown"), [(1, 4), (3, 4), (4, 4), (5, 5), (True, 4), (None, 4), ("four", 4)])
def test_known_maps_of_any_schema_are_understood_and_a_newer_one_is_named(schema: object, shown: int) -> None:
    assert document({**FULL, "schema_version": schema, "unknown": {"x": 1}}) == {**FULL, "schema_version": shown}


@pytest.mark.parametrize("missing", FULL)
def test_a_missing_map_is_empty(missing: str) -> None:
    found = document({name: value for name, value in FULL.items() if name != missing})
    assert found == {**FULL, missing: {}, "schema_version": SCHEMA}


@pytest.mark.parametrize("wrong", [None, 7, "x", [], [1], True])
@pytest.mark.parametrize("name", FULL)
def test_a_map_that_is_none_is_empty(name: str, wrong: object) -> None:
    assert document({**FULL, name: wrong}) == {**FULL, name: {}, "schema_version": SCHEMA}


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        {},
        {**CALLS, "board_id": None},
        {**CALLS, "request_bytes": -1},
        {**CALLS, "request_bytes": 2**60},
        {**CALLS, "response_bytes": "x"},
        {**CALLS, "agent_name": "x" * 201},
        {**CALLS, "calls": {"t": {"count": 1.5}}},
    ],
)
def test_a_bad_entry_is_left_out_and_the_others_stay(bad: object) -> None:
    found = document({"days": {"2026-03-08": {"seats": {"bad": bad, ANN: CALLS}}, "2026-03-07": 5}})
    assert found["days"] == {"2026-03-08": {"seats": {ANN: CALLS}}}


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\0\0\0",
        b"{",
        b"[]",
        b"null",
        b'{"days":',
        b"\xff",
        b'{"days":' * 5000,
        b'{"a":"\xed\xa0\x80"}',
        b"[" * 10**6,
    ],
    ids=lambda damaged: repr(damaged[:12]),
)
def test_what_is_no_object_is_damaged(damaged: bytes) -> None:
    with pytest.raises(Damaged):
        read(damaged)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:daysx0123 ', max_size=60).map(str.encode))
def test_no_text_is_too_much(found: bytes) -> None:
    try:
        read(found)
    except Damaged:
        return


def test_the_text_is_what_the_bridge_writes() -> None:
    written = text(read(json.dumps(FULL).encode()))
    expected = {**FULL, "schema_version": SCHEMA}
    assert written == json.dumps(expected, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def test_text_keeps_letters_and_the_key_does_not() -> None:
    changes = Changes()
    changes.unavailable(NOW, "b", "zoë", "für")
    written = text(changes.document).decode()
    assert '"agent_name":"zoë"' in written
    assert '"reason":"für"' in written
    assert json.loads(written)["push_unavailable"] == {'["b","zo\\u00eb"]': changes_entry(changes)}


def changes_entry(changes: Changes) -> dict[str, Any]:
    (entry,) = changes.document.push_unavailable.values()
    found: dict[str, Any] = msgspec.to_builtins(entry)
    return found


def crowded(seats: int, *, days: int, returns: int, tools: int) -> Document:
    changes = Changes()
    for number in range(seats):
        agent = f"agent-{number:04}".ljust(80, "x")
        for day in range(days):
            for tool in range(tools):
                at = NOW - timedelta(days=day)
                changes.called(at, "b" * 80, agent, f"tool_{tool}", request_bytes=10**9, response_bytes=10**12)
        for number_of in range(returns):
            at = NOW - timedelta(seconds=returns - number_of)
            changes.returned(at, "b" * 80, agent, 10**6, outcome="cue", mode="push", reason="journal")
        changes.unavailable(NOW, "b" * 80, agent, "x" * 500)
    found = Document()
    add(found, changes)
    trim(found, NOW)
    return found


@pytest.mark.parametrize(
    ("seats", "days", "returns", "tools", "kept"),
    [
        (10, 7, 256, 3, {"returns": 256, "days": 7, "seats": 10}),
        (100, 1, 256, 1, {"returns": 64, "days": 1, "seats": 100}),
        (256, 7, 1, 5, {"returns": 1, "days": 3, "seats": 256}),
        (256, 1, 1, 60, {"returns": 1, "days": 1, "seats": 128}),
    ],
)
def test_a_long_text_is_shortened(seats: int, days: int, returns: int, tools: int, kept: dict[str, int]) -> None:
    found = crowded(seats, days=days, returns=returns, tools=tools)
    written = text(found)
    assert len(written) <= LIMIT
    again = read(written)
    assert NOW.date().isoformat() in again.days
    assert {
        "returns": len(next(iter(again.model_wait.values())).returns),
        "days": len(again.days),
        "seats": len(again.days[NOW.date().isoformat()].seats),
    } == kept
    assert text(again) == written
