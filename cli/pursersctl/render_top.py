"""The page of `pursersctl top`: structs in, lines out, no more of them than the terminal has."""

from collections import Counter
from dataclasses import dataclass

from pursersctl.pick import Wish, pick
from pursersctl.render import CENTRAL_STYLES, counted, duration, size, wrapped
from pursersctl.render_ps import NOBODY, seats
from pursersctl.table import Column, Line, Span, clean, fitting, table
from pursersd import api

CENTRAL_COLUMNS = (
    Column("CENTRAL", keep=100, least=22),
    Column("CREDENTIAL", keep=20, least=8),
    Column("STATE", keep=95),
    Column("STREAMS", keep=60, right=True),
    Column("WAITS", keep=70, right=True),
    Column("CUES", keep=80, right=True),
    Column("CALLS", keep=75, right=True),
    Column("BUSY", keep=30, right=True),
    Column("REOPENED", keep=50, right=True),
)
LATENCY_COLUMNS = (
    Column("TOOL", keep=100, least=12),
    Column("HOST", keep=60, least=8),
    Column("WHAT", keep=95),
    Column("COUNT", keep=70, right=True),
    Column("P50", keep=80, right=True),
    Column("P95", keep=90, right=True),
    Column("P99", keep=75, right=True),
    Column("MAX", keep=50, right=True),
)
KINDS = {"call": "call", "wait": "blocked", "wake": "cue→answer"}

SHARE = 3
"""Of what is left below the Centrals, the latencies get one line in so many at most; the conversations the rest."""

LEAVE = "q leaves"


@dataclass(frozen=True, slots=True)
class Rates:
    """What happens in a second, between two looks."""

    calls: float
    cues: float
    wakes: float


def rates(before: tuple[api.Status, api.Ps], now: tuple[api.Status, api.Ps]) -> Rates | None:
    """What happened between two looks at one daemon; None if it is another one, or less than nothing happened."""
    passed = now[0].daemon.uptime_s - before[0].daemon.uptime_s
    if now[0].daemon.epoch != before[0].daemon.epoch or passed <= 0:
        return None
    calls, cues, wakes = (after - earlier for after, earlier in zip(_counts(*now), _counts(*before), strict=True))
    return Rates(max(0, calls) / passed, max(0, cues) / passed, max(0, wakes) / passed)


def top(status: api.Status, ps: api.Ps, found: Rates | None, width: int, height: int) -> list[Line]:
    """The whole page: the daemon, its Centrals, how long things take, and the conversations, the busiest first."""
    lines = [*_daemon(status, ps, found, width), *_warnings(status, width), *_centrals(status, width)]
    left = max(0, height - len(lines))
    latency = _latency(status, width)
    lines += fitting(latency, max(5, left // SHARE))
    return [*lines, *fitting([(), *_seats(ps, width)], max(0, height - len(lines)))][:height]


def _counts(status: api.Status, ps: api.Ps) -> tuple[int, int, int]:
    calls, cues = sum(one.requests for one in status.centrals), sum(one.cues for one in status.centrals)
    return calls, cues, sum(row.wakes for row in ps.seats)


def _daemon(status: api.Status, ps: api.Ps, found: Rates | None, width: int) -> list[Line]:
    daemon = status.daemon
    style = "green" if daemon.state == "ready" else "yellow"
    name = f"pursersd {clean(daemon.version)}"
    head: list[Span] = [(name, "bold"), ("  ", ""), (daemon.state, style)]
    room = width - len(f"{name}  {daemon.state}")
    files = f"{daemon.descriptors}/{daemon.descriptor_limit} files"
    for fact in (f"up {duration(daemon.uptime_s)}", size(daemon.rss_bytes), files):
        if len(fact) + 2 <= room:
            head.append((f"  {fact}", ""))
            room -= len(fact) + 2
    if len(LEAVE) + 2 <= room:
        head.append((LEAVE.rjust(room), "dim"))
    states = Counter(row.state for row in ps.seats)
    leases = Counter(lease.state for row in ps.seats for lease in row.leases)
    counts = [f"{states[name]} {name}" for name in ("waiting", "working", "idle", "detached") if states[name]]
    counts += [f"{counted(leases[name], 'lease')} {name}" for name in ("kept", "paused") if leases[name]]
    text = ", ".join(counts) or "no conversations"
    if found is not None:
        text += f"; {_rate(found.calls)} calls to Central, {_rate(found.cues)} cues, {_rate(found.wakes)} wakes"
    return [tuple(head), *wrapped(text, width)]


def _rate(number: float) -> str:
    """So many in a second, or in a minute where that is nearly nothing."""
    return f"{number:.0f}/s" if number >= 10 else f"{number:.1f}/s" if number >= 0.1 else f"{number * 60:.0f}/min"


def _warnings(status: api.Status, width: int) -> list[Line]:
    codes = Counter(warning.code for warning in status.warnings)
    if not codes:
        return []
    named = ", ".join(f"{code} ({count})" if count > 1 else code for code, count in codes.items())
    return wrapped(f"Warnings: {named}. What to do: pursersctl status", width, style="yellow")


def _centrals(status: api.Status, width: int) -> list[Line]:
    if not status.centrals:
        return [(), *wrapped("No Central in use: no conversation has needed one yet.", width, style="dim")]
    rows: list[list[Span]] = [
        [
            (clean(one.url), ""),
            (clean(one.credential), ""),
            (one.state, CENTRAL_STYLES.get(one.state, "")),
            (str(one.streams), ""),
            (str(one.waits), ""),
            (str(one.cues), ""),
            (str(one.requests), ""),
            (str(one.call_connections), ""),
            (str(one.reconnects), ""),
        ]
        for one in status.centrals
    ]
    return [(), *table(CENTRAL_COLUMNS, rows, width)]


def _latency(status: api.Status, width: int) -> list[Line]:
    if not status.latency:
        return [(), *wrapped("No call has ended yet.", width, style="dim")]
    found = sorted(status.latency, key=lambda row: (row.kind != "wake", row.kind != "call", -row.count))
    rows: list[list[Span]] = [
        [
            (clean(row.tool), ""),
            (clean(row.host), ""),
            (KINDS.get(row.kind, row.kind), ""),
            (str(row.count), ""),
            (brief(row.p50_s), ""),
            (brief(row.p95_s), ""),
            (brief(row.p99_s), ""),
            (brief(row.max_s), ""),
        ]
        for row in found
    ]
    return [(), *table(LATENCY_COLUMNS, rows, width)]


def brief(seconds: float) -> str:
    """A length of time with two digits that matter: 0.4ms, 35ms, 1.2s, 42s, 3m."""
    if seconds < 0.01:
        return f"{seconds * 1000:.1f}ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    return f"{seconds:.1f}s" if seconds < 10 else duration(seconds)


def _seats(ps: api.Ps, width: int) -> list[Line]:
    if not ps.seats:
        return wrapped(NOBODY, width)
    order = {state: place for place, state in enumerate(("working", "waiting", "detached", "idle"))}
    rows = [ps.seats[i] for i in pick(ps.seats, Wish())]
    return seats(sorted(rows, key=lambda row: order.get(row.state, len(order))), width, version=ps.version)
