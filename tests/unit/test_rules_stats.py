"""rules/stats: nothing that was counted is lost, nothing is kept for longer or in greater numbers than promised."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules import stats
from pursersd.rules.stats import Changes, add, outcome_of, pushed_boards, request_size, size, trim, unavailable_boards
from pursersd.rules.stats_document import MOST, Document, seat_key

NOW = datetime(2026, 3, 8, 13, 30, 15, 250000, tzinfo=UTC)
ANN = seat_key("b", "ann")
HOUR = "2026-03-08T13:00:00Z"


def later(**time: float) -> datetime:
    return NOW + timedelta(**time)


def plain(document: Document) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(document)
    return found


def merged(*parts: Changes, now: datetime = NOW) -> Document:
    document = Document()
    for part in parts:
        add(document, part)
    trim(document, now)
    return document


def changes(*counted: tuple[str, Any]) -> Changes:
    """Changes with these calls of their methods: name, and arguments after the time."""
    found = Changes()
    for name, (at, *arguments, options) in counted:
        getattr(found, name)(at, *arguments, **options)
    return found


def call(at: datetime = NOW, agent: str = "ann", tool: str = "board_catchup", sent: int = 10, got: int = 100) -> Any:
    return "called", (at, "b", agent, tool, {"request_bytes": sent, "response_bytes": got})


def back(at: datetime = NOW, got: int = 50, outcome: str = "cue", mode: str = "push", agent: str = "ann") -> Any:
    return "returned", (at, "b", agent, got, {"outcome": outcome, "mode": mode, "reason": "journal"})


def polled(at: datetime, reason: str, agent: str = "ann") -> Any:
    return "unavailable", (at, "b", agent, reason, {})


def pushed(at: datetime, agent: str = "ann") -> Any:
    return "pushes", (at, "b", agent, {})


def test_calls_are_counted_by_day_seat_and_tool() -> None:
    found = merged(changes(call(), call(tool="ticket_list", got=7), call(agent="bob"), call(later(days=-1), got=1)))
    assert plain(found)["days"] == {
        "2026-03-07": {
            "seats": {
                ANN: {
                    "board_id": "b",
                    "agent_name": "ann",
                    "request_bytes": 10,
                    "response_bytes": 1,
                    "calls": {"board_catchup": {"count": 1, "request_bytes": 10, "response_bytes": 1}},
                }
            }
        },
        "2026-03-08": {
            "seats": {
                ANN: {
                    "board_id": "b",
                    "agent_name": "ann",
                    "request_bytes": 20,
                    "response_bytes": 107,
                    "calls": {
                        "board_catchup": {"count": 1, "request_bytes": 10, "response_bytes": 100},
                        "ticket_list": {"count": 1, "request_bytes": 10, "response_bytes": 7},
                    },
                },
                seat_key("b", "bob"): {
                    "board_id": "b",
                    "agent_name": "bob",
                    "request_bytes": 10,
                    "response_bytes": 100,
                    "calls": {"board_catchup": {"count": 1, "request_bytes": 10, "response_bytes": 100}},
                },
            }
        },
    }


def test_returns_are_counted_by_hour_and_kept_one_by_one() -> None:
    found = merged(changes(back(), back(later(seconds=1), 7, "timeout", "poll"), back(later(seconds=2), 3, "error")))
    assert plain(found)["model_wait"] == {
        ANN: {
            "board_id": "b",
            "agent_name": "ann",
            "hours": {
                HOUR: {"returns": 3, "response_bytes": 60, "outcomes": {"cue": 1, "timeout": 1, "error": 1}},
            },
            "returns": [
                {
                    "at": "2026-03-08T13:30:15.250000+00:00",
                    "response_bytes": 50,
                    "outcome": "cue",
                    "mode": "push",
                    "reason": "journal",
                },
                {
                    "at": "2026-03-08T13:30:16.250000+00:00",
                    "response_bytes": 7,
                    "outcome": "timeout",
                    "mode": "poll",
                    "reason": "journal",
                },
                {
                    "at": "2026-03-08T13:30:17.250000+00:00",
                    "response_bytes": 3,
                    "outcome": "error",
                    "mode": "push",
                    "reason": "journal",
                },
            ],
        }
    }


def test_poll_cycles_name_the_newest() -> None:
    found = Changes()
    for second in range(30):
        found.cycled(later(seconds=second), "b", "ann", second)
    cycles = merged(found).poll_cycles[ANN]
    assert [sample.response_bytes for sample in cycles.samples] == list(range(6, 30))
    assert (cycles.latest_at, cycles.latest_response_bytes) == ("2026-03-08T13:30:44.250000+00:00", 29)


def test_a_reason_is_one_line_of_500_characters() -> None:
    found = merged(changes(polled(NOW, " denied\n\tby " + "x" * 600))).push_unavailable[ANN]
    assert found.reason == "denied by " + "x" * 490
    assert found.observed_at == "2026-03-08T13:30:15.250000+00:00"
    assert merged(changes(polled(NOW, " \n"))).push_unavailable[ANN].reason == "unknown subscription failure"


@pytest.mark.parametrize(
    ("parts", "remains"),
    [
        ([[polled(NOW, "x")]], True),
        ([[polled(NOW, "x"), pushed(later(seconds=1))]], False),
        ([[pushed(NOW), polled(later(seconds=1), "x")]], True),
        ([[polled(NOW, "x")], [pushed(later(seconds=1))]], False),
        ([[pushed(NOW)], [polled(later(seconds=1), "x")]], True),
        ([[polled(later(seconds=1), "of another writer")], [pushed(NOW)]], True),
        ([[polled(NOW, "x")], [pushed(later(seconds=1), "bob")]], True),
    ],
)
@pytest.mark.parametrize("in_memory", [False, True])
def test_a_push_ends_an_earlier_fallback(parts: list[list[Any]], remains: bool, in_memory: bool) -> None:
    """Whether the parts meet in the file or, because nothing could be written, in memory."""
    counted = [changes(*part) for part in parts]
    if in_memory:
        first, *others = counted
        for other in others:
            first.add(other)
        counted = [first]
    assert (ANN in merged(*counted).push_unavailable) is remains


def test_the_newest_64_fallbacks_are_kept() -> None:
    found = merged(changes(*(polled(later(seconds=number), "x", f"a{number}") for number in range(70))))
    assert {entry.agent_name for entry in found.push_unavailable.values()} == {f"a{n}" for n in range(6, 70)}


def test_days_and_hours_end() -> None:
    days = [call(later(days=-ago)) for ago in range(10)]
    hours = [back(later(hours=-ago)) for ago in range(60)]
    found = merged(changes(*days, *hours, call(later(days=1)), back(later(hours=1))))
    assert list(found.days) == [f"2026-03-0{day}" for day in range(2, 9)]
    kept = found.model_wait[ANN].hours
    assert (len(kept), min(kept), max(kept)) == (48, "2026-03-06T14:00:00Z", HOUR)


def test_256_returns_are_kept() -> None:
    found = merged(changes(*(back(later(seconds=number), number) for number in range(300))))
    assert [one.response_bytes for one in found.model_wait[ANN].returns] == list(range(44, 300))
    assert sum(hour.returns for hour in found.model_wait[ANN].hours.values()) == 300


def test_a_seat_that_was_silent_for_a_week_is_forgotten() -> None:
    old = changes(back(later(days=-6)), back(later(days=-7), agent="bob"))
    old.cycled(later(days=-6), "b", "ann", 1)
    old.cycled(later(days=-7), "b", "bob", 1)
    found = merged(old)
    assert list(found.model_wait) == list(found.poll_cycles) == [ANN]


def test_of_too_many_seats_the_newest_and_the_busiest_are_kept() -> None:
    seats = range(stats.SEATS + 3)
    many = changes(
        *(call(agent=f"a{n}", got=n) for n in seats), *(back(later(seconds=n), agent=f"a{n}") for n in seats)
    )
    for number in seats:
        many.cycled(later(seconds=number), "b", f"a{number}", 1)
    found = merged(many)
    expected = {f"a{n}" for n in seats[3:]}
    assert {seat.agent_name for seat in found.days["2026-03-08"].seats.values()} == expected
    assert {seat.agent_name for seat in found.model_wait.values()} == expected
    assert {seat.agent_name for seat in found.poll_cycles.values()} == expected


def test_a_count_stays_exact_in_json() -> None:
    found = changes(call(got=2**80), call(got=5))
    assert merged(found).days["2026-03-08"].seats[ANN].response_bytes == MOST


def test_names_that_utf8_cannot_hold_or_that_never_end() -> None:
    found = merged(changes(call(agent="\ud800", tool="x" * 300), back(agent="y" * 300)))
    msgspec.json.encode(found)
    assert [seat.agent_name for seat in found.model_wait.values()] == ["y" * 80]


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({"error": {"code": "x"}, "timed_out": True}, "error"),
        ({"timed_out": True}, "timeout"),
        ({"timed_out": False, "events": []}, "cue"),
        ({"error": "text"}, "cue"),
    ],
)
def test_outcomes(result: dict[str, object], outcome: str) -> None:
    assert outcome_of(result) == outcome


@pytest.mark.parametrize(
    ("result", "boards"),
    [
        ({"mode": "push"}, ["home"]),
        ({"mode": "poll"}, []),
        ({"mode": "mixed", "mode_by_board": {"a": "push", "b": "poll", "c": "push"}}, ["a", "c"]),
        ({"mode": "push", "mode_by_board": {"a": "immediate"}}, []),
    ],
)
def test_boards_of_a_push(result: dict[str, object], boards: list[str]) -> None:
    assert pushed_boards(result, "home") == boards


@pytest.mark.parametrize(
    ("code", "boards"),
    [
        ("push_unavailable", {"a": "push_unavailable:transport", "b": "push_unavailable:transport"}),
        ("wait_unavailable", {}),
        ("wait_configuration", {}),
    ],
)
def test_boards_of_a_failed_push(code: str, boards: dict[str, str]) -> None:
    result = {"error": {"code": code, "cause_class": "transport"}, "mode_by_board": {"a": "error", "b": "error"}}
    assert unavailable_boards(result) == boards
    assert unavailable_boards({"mode_by_board": {"a": "push"}}) == {}


def test_sizes_are_those_of_compact_sorted_json() -> None:
    value = {"z": [1, 2.5, None, True], "a": "é\n\u2028\x7f\x1f", "m": {"b": 1, "a": {}}}
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert size(value) == len(text.encode())
    assert request_size("t", {"x": 1}, None) == len('{"name":"t","arguments":{"x":1}}')
    assert request_size("t", {"x": 1}, {"g": "é"}) == len('{"name":"t","arguments":{"x":1},"meta":{"g":"é"}}'.encode())


MOMENTS = st.integers(0, 20 * 86400).map(lambda seconds: NOW + timedelta(seconds=seconds))
AGENTS = st.sampled_from(["ann", "bob", "cleo"])
COUNTED = st.lists(
    st.one_of(
        st.builds(lambda at, agent, got: call(at, agent, got=got), MOMENTS, AGENTS, st.integers(0, 9999)),
        st.builds(lambda at, agent, got: back(at, got, agent=agent), MOMENTS, AGENTS, st.integers(0, 9999)),
        st.builds(lambda at, agent: polled(at, "x", agent), MOMENTS, AGENTS),
        st.builds(lambda at, agent: pushed(at, agent), MOMENTS, AGENTS),
    ),
    max_size=60,
).map(lambda found: sorted(found, key=lambda one: one[1][0]))


@given(COUNTED, st.lists(st.integers(0, 3), max_size=60))
def test_however_it_is_cut_into_writings_the_totals_are_those_of_one(counted: list[Any], cuts: list[int]) -> None:
    """Some writings fail, and what they would have brought is kept in memory with what comes after it."""
    document, unwritten = Document(), Changes()
    for one, cut in zip(counted, [*cuts, *[1] * len(counted)], strict=False):
        unwritten.add(changes(one))
        if cut == 0:
            add(document, unwritten)
            trim(document, one[1][0])
            unwritten = Changes()
        elif cut == 3:
            unwritten.trim(one[1][0])
    add(document, unwritten)
    end = counted[-1][1][0] if counted else NOW
    trim(document, end)
    whole = merged(changes(*counted), now=end)
    assert plain(document) == plain(whole)


@given(COUNTED, st.lists(st.booleans(), max_size=60))
def test_two_writers_of_one_file_lose_nothing(counted: list[Any], ours: list[bool]) -> None:
    one, other = Changes(), Changes()
    for entry, mine in zip(counted, [*ours, *[True] * len(counted)], strict=False):
        (one if mine else other).add(changes(entry))
    end = counted[-1][1][0] if counted else NOW
    together, whole = merged(one, other, now=end), merged(changes(*counted), now=end)
    assert together.days == whole.days
    assert {k: v.hours for k, v in together.model_wait.items()} == {k: v.hours for k, v in whole.model_wait.items()}


def test_adding_does_not_tie_two_documents_together() -> None:
    part = changes(call(), back(), polled(NOW, "x"))
    before = plain(part.document)
    document = merged(part)
    add(document, changes(call(), back()))
    assert plain(part.document) == before
