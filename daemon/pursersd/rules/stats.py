"""What is counted, how it is added to a bridge-stats.json, and for how long it is kept there (bridge.md §7.2)."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from pursersd.rules.stats_document import (
    HOUR,
    MOST,
    NAME,
    REASON,
    Day,
    Document,
    Hour,
    Return,
    Sample,
    SeatCalls,
    SeatCycles,
    SeatReturns,
    ToolCalls,
    Unavailable,
    seat_key,
)

DAYS = 7
"""UTC days, today included, for which calls are kept."""

HOURS = 48
RETURNS = 256
SAMPLES = 24
UNAVAILABLE = 64

SEATS = 256
"""Seats in each map (of a day). The bridge keeps every seat for ever, and each start may make a new one (D12)."""

TOOLS = 64

CONTEXT_READS = frozenset({"board_onboard", "board_snapshot", "board_catchup", "dispatch_my_offers"})
"""Calls that tell a wait what has happened; what they bring is a poll cycle."""

Entry = TypeVar("Entry")


class Changes:
    """What has been counted since it was last written."""

    def __init__(self, document: Document | None = None, pushed: Mapping[str, str] | None = None) -> None:
        self.document = document or Document()
        self.pushed: dict[str, str] = dict(pushed or {})
        """When a seat's wait came back by push, by its key: that ends an earlier `push_unavailable`."""

    def __bool__(self) -> bool:
        document = self.document
        return bool(
            document.days or document.poll_cycles or document.model_wait or document.push_unavailable or self.pushed
        )

    def called(
        self, now: datetime, board: str, agent: str, tool: str, *, request_bytes: int, response_bytes: int
    ) -> None:
        """A call to Central was answered, or failed."""
        one = ToolCalls(1, min(request_bytes, MOST), min(response_bytes, MOST))
        seat = SeatCalls(_name(board), _name(agent), one.request_bytes, one.response_bytes, {_name(tool): one})
        _add_days(self.document.days, {now.date().isoformat(): Day({seat_key(board, agent): seat})})

    def cycled(self, now: datetime, board: str, agent: str, response_bytes: int) -> None:
        """A wait ended whose context reads for a seat brought that many bytes."""
        sample = Sample(now.isoformat(), min(response_bytes, MOST))
        cycles = SeatCycles(_name(board), _name(agent), sample.at, sample.response_bytes, [sample])
        _add_cycles(self.document.poll_cycles, {seat_key(board, agent): cycles})

    def returned(
        self, now: datetime, board: str, agent: str, response_bytes: int, *, outcome: str, mode: str, reason: str
    ) -> None:
        """A result went to the model. `outcome` is cue, timeout, error or digest."""
        size = min(response_bytes, MOST)
        hour = Hour(1, size, {_name(outcome): 1})
        one = Return(now.isoformat(), size, _name(outcome), _name(mode), _name(reason))
        seat = SeatReturns(_name(board), _name(agent), {now.strftime(HOUR): hour}, [one])
        _add_returns(self.document.model_wait, {seat_key(board, agent): seat})

    def unavailable(self, now: datetime, board: str, agent: str, reason: str) -> None:
        """A seat's events come by polling although it wants push."""
        line = _clean(" ".join(reason.split()))[:REASON] or "unknown subscription failure"
        key = seat_key(board, agent)
        self.document.push_unavailable[key] = Unavailable(_name(board), _name(agent), line, now.isoformat())
        self.pushed.pop(key, None)

    def pushes(self, now: datetime, board: str, agent: str) -> None:
        """A wait of a seat came back by push."""
        key = seat_key(board, agent)
        self.pushed[key] = now.isoformat()
        self.document.push_unavailable.pop(key, None)

    def add(self, later: "Changes") -> None:
        """Take over what was counted after this."""
        add(self.document, later)
        for key in later.document.push_unavailable:
            self.pushed.pop(key, None)
        self.pushed |= later.pushed

    def trim(self, now: datetime) -> None:
        """Forget what could not be written for so long that it would no longer be kept."""
        trim(self.document, now)
        self.pushed = dict(sorted(self.pushed.items(), key=lambda item: item[1])[-SEATS:])


def outcome_of(result: Mapping[str, object]) -> str:
    """How a wait ended."""
    if isinstance(result.get("error"), dict):
        return "error"
    return "timeout" if result.get("timed_out") else "cue"


def pushed_boards(result: Mapping[str, object], home: str) -> list[str]:
    """The boards of whose events a wait's result was told by push."""
    modes = result.get("mode_by_board")
    if isinstance(modes, dict):
        return [board for board, mode in modes.items() if mode == "push"]
    return [home] if result.get("mode") == "push" else []


def unavailable_boards(result: Mapping[str, object]) -> dict[str, str]:
    """The boards on which a failed wait had wanted push, each with the reason as it is noted (bridge.md §1.6)."""
    error, modes = result.get("error"), result.get("mode_by_board")
    if not isinstance(error, dict) or not isinstance(modes, dict) or error.get("code") != "push_unavailable":
        return {}
    return dict.fromkeys(modes, f"{error['code']}:{error.get('cause_class')}")


def request_size(tool: str, arguments: Mapping[str, object], meta: Mapping[str, object] | None) -> int:
    """Bytes of a call as the bridge counts them."""
    request: dict[str, object] = {"name": tool, "arguments": arguments}
    return size(request if meta is None else {**request, "meta": meta})


def error_size(name: str) -> int:
    """Bytes that count for the answer of a call that failed."""
    return size({"error": name})


def size(value: object) -> int:
    """Bytes of a value as compact JSON in UTF-8. The order of keys does not matter for that."""
    return len(msgspec.json.encode(value))


def add(document: Document, changes: Changes) -> None:
    """Count `changes` into a document; neither is shortened by that."""
    more = changes.document
    _add_days(document.days, more.days)
    _add_cycles(document.poll_cycles, more.poll_cycles)
    _add_returns(document.model_wait, more.model_wait)
    document.push_unavailable.update(more.push_unavailable)
    for key, at in changes.pushed.items():
        known = document.push_unavailable.get(key)
        if known is not None and known.observed_at <= at:
            del document.push_unavailable[key]


def trim(document: Document, now: datetime) -> None:
    """Forget what is too old, and the rest of what is too much: the newest stays, of calls the most."""
    today = now.date()
    first = (today - timedelta(days=DAYS - 1)).isoformat()
    document.days = {
        day: document.days[day] for day in sorted(document.days) if _is_day(day) and first <= day <= today.isoformat()
    }
    for day in document.days.values():
        day.seats = _last(day.seats, SEATS, lambda seat: seat.request_bytes + seat.response_bytes)
        for calls in day.seats.values():
            calls.calls = _last(calls.calls, TOOLS, lambda tool: tool.count)
    hours = _hours(now)
    for returns in document.model_wait.values():
        returns.hours = {hour: returns.hours[hour] for hour in sorted(returns.hours) if hour in hours}
        for bucket in returns.hours.values():
            bucket.outcomes = _last(bucket.outcomes, TOOLS, lambda count: count)
        returns.returns = returns.returns[-RETURNS:]
    for cycles in document.poll_cycles.values():
        cycles.samples = cycles.samples[-SAMPLES:]
    # The bridge never forgets a seat; one that has said nothing for a week has nothing left in `days` either.
    alive = {key: seat for key, seat in document.model_wait.items() if seat.hours or _last_return(seat)[:10] >= first}
    document.model_wait = _last(alive, SEATS, _last_return)
    cycled = {key: seat for key, seat in document.poll_cycles.items() if seat.latest_at[:10] >= first}
    document.poll_cycles = _last(cycled, SEATS, lambda seat: seat.latest_at)
    document.push_unavailable = _last(document.push_unavailable, UNAVAILABLE, lambda seat: seat.observed_at)


def _add_days(days: dict[str, Day], more: Mapping[str, Day]) -> None:
    for name, added in more.items():
        seats = days.setdefault(name, Day({})).seats
        for key, seat in added.seats.items():
            known = seats.setdefault(key, SeatCalls(seat.board_id, seat.agent_name, calls={}))
            known.request_bytes = _sum(known.request_bytes, seat.request_bytes)
            known.response_bytes = _sum(known.response_bytes, seat.response_bytes)
            for tool, calls in seat.calls.items():
                so_far = known.calls.setdefault(tool, ToolCalls())
                so_far.count = _sum(so_far.count, calls.count)
                so_far.request_bytes = _sum(so_far.request_bytes, calls.request_bytes)
                so_far.response_bytes = _sum(so_far.response_bytes, calls.response_bytes)


def _add_cycles(cycles: dict[str, SeatCycles], more: Mapping[str, SeatCycles]) -> None:
    for key, added in more.items():
        known = cycles.setdefault(key, SeatCycles(added.board_id, added.agent_name, samples=[]))
        known.samples = sorted([*known.samples, *added.samples], key=lambda sample: sample.at)[-SAMPLES:]
        known.latest_at = known.samples[-1].at if known.samples else added.latest_at
        known.latest_response_bytes = known.samples[-1].response_bytes if known.samples else added.latest_response_bytes


def _add_returns(seats: dict[str, SeatReturns], more: Mapping[str, SeatReturns]) -> None:
    for key, added in more.items():
        known = seats.setdefault(key, SeatReturns(added.board_id, added.agent_name, {}, []))
        for name, hour in added.hours.items():
            bucket = known.hours.setdefault(name, Hour(outcomes={}))
            bucket.returns = _sum(bucket.returns, hour.returns)
            bucket.response_bytes = _sum(bucket.response_bytes, hour.response_bytes)
            for outcome, count in hour.outcomes.items():
                bucket.outcomes[outcome] = _sum(bucket.outcomes.get(outcome, 0), count)
        known.returns = sorted([*known.returns, *added.returns], key=lambda one: one.at)[-RETURNS:]


def _name(text: str) -> str:
    return _clean(text[:NAME])


def _clean(text: str) -> str:
    """`text` as something that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()


def _sum(one: int, other: int) -> int:
    return min(one + other, MOST)


def _last_return(seat: SeatReturns) -> str:
    return max(seat.returns[-1].at if seat.returns else "", max(seat.hours, default=""))


def _hours(now: datetime) -> set[str]:
    return {(now - timedelta(hours=ago)).strftime(HOUR) for ago in range(HOURS)}


def _is_day(text: str) -> bool:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date().isoformat() == text
    except ValueError:
        return False


def _last(entries: dict[str, Entry], most: int, rank: Callable[[Entry], int | str]) -> dict[str, Entry]:
    """The `most` entries that rank highest, these last."""
    return dict(sorted(entries.items(), key=lambda item: rank(item[1]))[-most:])
