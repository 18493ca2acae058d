"""Add up a bridge-stats.json for people: who called how much, and what the waits brought. Pure."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from pursersctl import printed
from pursersd.rules.stats import RETURNS
from pursersd.rules.stats_document import HOUR, Document, Hour, Return, SeatCalls, SeatReturns


def tally(
    document: Document, now: datetime, *, board: str | None = None, seat: str | None = None
) -> list[printed.SeatStats]:
    """One row per seat of the document, or per seat of that board and name, sorted by both."""
    days = [document.days[day].seats for day in sorted(document.days)]
    today = document.days.get(now.date().isoformat())
    keys = {key for seats in days for key in seats} | document.model_wait.keys() | document.push_unavailable.keys()
    rows = [
        _row(
            key,
            now,
            today.seats.get(key) if today else None,
            [seats[key] for seats in days if key in seats],
            document.model_wait.get(key),
            document,
        )
        for key in keys
    ]
    wanted = [row for row in rows if board in (None, row.board) and seat in (None, row.seat)]
    return sorted(wanted, key=lambda row: (row.board, row.seat))


def _row(
    key: str,
    now: datetime,
    today: SeatCalls | None,
    days: list[SeatCalls],
    waits: SeatReturns | None,
    document: Document,
) -> printed.SeatStats:
    fallback = document.push_unavailable.get(key)
    named = next(known for known in (*days, waits, fallback) if known is not None)
    return printed.SeatStats(
        board=named.board_id,
        seat=named.agent_name,
        today=_calls([today] if today else []),
        week=_calls(days),
        tools={tool: calls.count for tool, calls in sorted(today.calls.items())} if today else {},
        hour=_last_hour(waits, now),
        day=_last_day(waits, now),
        last_return_s=_age(waits.returns[-1].at, now) if waits and waits.returns else None,
        fallback=fallback.reason if fallback else None,
        fallback_s=_age(fallback.observed_at, now) if fallback else None,
    )


def _calls(days: list[SeatCalls]) -> printed.CallStats:
    return printed.CallStats(
        calls=sum(tool.count for day in days for tool in day.calls.values()),
        request_bytes=sum(day.request_bytes for day in days),
        response_bytes=sum(day.response_bytes for day in days),
    )


def _last_hour(waits: SeatReturns | None, now: datetime) -> printed.ReturnStats:
    """The single returns of the last 60 minutes. Of many the file keeps too few: then those since the full hour."""
    if waits is None:
        return _returns([])
    recent = [one for one in waits.returns if (age := _age(one.at, now)) is not None and age < 3600]
    this_hour = waits.hours.get(now.strftime(HOUR))
    if len(recent) >= RETURNS and this_hour is not None and this_hour.returns > len(recent):
        return _returns([this_hour])
    return _returns([_as_hour(one) for one in recent])


def _last_day(waits: SeatReturns | None, now: datetime) -> printed.ReturnStats:
    """The hours of the last day, the present one and the 23 before it."""
    wanted = {(now - timedelta(hours=ago)).strftime(HOUR) for ago in range(24)}
    return _returns([hour for name, hour in waits.hours.items() if name in wanted] if waits else [])


def _as_hour(one: Return) -> Hour:
    return Hour(1, one.response_bytes, {one.outcome: 1})


def _returns(hours: Iterable[Hour]) -> printed.ReturnStats:
    known = list(hours)

    def ended(outcome: str) -> int:
        return sum(hour.outcomes.get(outcome, 0) for hour in known)

    return printed.ReturnStats(
        returns=sum(hour.returns for hour in known),
        cues=ended("cue"),
        timeouts=ended("timeout"),
        errors=ended("error"),
        digests=ended("digest"),
        response_bytes=sum(hour.response_bytes for hour in known),
    )


def _age(at: str, now: datetime) -> float | None:
    """Seconds since a time of the file; None for what is no time."""
    try:
        then = datetime.fromisoformat(at)
    except ValueError:
        return None
    return max(0.0, round((now - (then if then.tzinfo else then.replace(tzinfo=UTC))).total_seconds(), 3))
