"""What the daemon counts, as metrics: names and labels of docs/metrics.md. A pure view of its state.

Labels have few values each: no conversation, seat, board or ticket is one, and no credential.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import get_args
from urllib.parse import urlsplit

from pursersd.api import CentralStatus, SeatRow, State, Status
from pursersd.rules.histogram import Histogram
from pursersd.rules.openmetrics import Family, Sample, histogram, text
from pursersd.timings import OTHER, Kind, Series

CENTRALS = 16
"""Centrals that are told apart."""

_HISTOGRAMS: tuple[tuple[Kind, str, str], ...] = (
    ("call", "pursersd_call_duration_seconds", "From a tool call to its answer; waits are counted apart."),
    ("wait", "pursersd_wait_duration_seconds", "From the call of a wait to its answer, however it ended."),
    ("wake", "pursersd_wake_latency_seconds", "From Central's cue to the answer of the wait that it ended."),
)


def exposition(status: Status, rows: Sequence[SeatRow], series: Sequence[tuple[Series, Histogram]]) -> str:
    """Everything, as OpenMetrics text."""
    return text([*_daemon(status), *_conversations(rows), *_trouble(status), *_centrals(status), *_latency(series)])


def _daemon(status: Status) -> list[Family]:
    daemon = status.daemon
    return [
        _gauge("up", "Whether the daemon runs and answers.", 1),
        Family("pursersd_build_info", "gauge", "Its version, as a label.", [Sample(1, (("version", daemon.version),))]),
        _gauge("uptime_seconds", "Seconds since it started.", daemon.uptime_s),
        _gauge("epoch", "Raised at each start of the daemon.", daemon.epoch),
        _gauge("draining", "Whether it is about to leave.", int(daemon.state == "draining")),
        _gauge("resident_memory_bytes", "Memory in use.", daemon.rss_bytes),
        _gauge("open_descriptors", "File descriptors in use.", daemon.descriptors),
        _gauge("descriptor_limit", "File descriptors that it may have.", daemon.descriptor_limit),
        _gauge("log_lines_lost", "Log lines lost while the log cannot be written.", daemon.log_lines_lost),
        _gauge("longest_stall_seconds", "Longest time that one thing kept it busy.", daemon.longest_stall_s),
        _counter("suspensions", "Times that the machine slept or somebody stopped the daemon.", daemon.suspensions),
    ]


def _conversations(rows: Sequence[SeatRow]) -> list[Family]:
    states = Counter(row.state for row in rows)
    leases = Counter(lease.state for row in rows for lease in row.leases)
    return [
        _gauges("conversations", "Conversations by state.", "state", {name: states[name] for name in get_args(State)}),
        _gauges("leases", "Leases by state.", "state", {name: leases[name] for name in ("kept", "paused")}),
        _gauge(
            "cursor_lag_entries",
            "Journal entries that the conversation furthest behind has not read.",
            max((row.lag for row in rows if row.lag is not None), default=0),
        ),
    ]


def _trouble(status: Status) -> list[Family]:
    warnings = Counter(warning.code for warning in status.warnings)
    windows = [Sample(w.count, (("window", w.name),), "_total") for w in status.lossy_windows]
    return [
        _gauges("warnings", "Warnings in force, by code.", "code", warnings),
        Family("pursersd_lossy_windows", "counter", "Times that something may have been lost, by window.", windows),
    ]


def _centrals(status: Status) -> list[Family]:
    centrals: dict[str, list[CentralStatus]] = {}
    for central in status.centrals:
        name = _origin(central.url)
        centrals.setdefault(name if name in centrals or len(centrals) < CENTRALS else OTHER, []).append(central)

    def summed(name: str, help: str, number: Callable[[CentralStatus], int], *, counts: bool = False) -> Family:
        sums = {origin: sum(number(one) for one in found) for origin, found in centrals.items()}
        samples = [Sample(value, (("central", origin),), "_total" if counts else "") for origin, value in sums.items()]
        return Family(f"pursersd_central_{name}", "counter" if counts else "gauge", help, samples)

    up = {origin: int(all(one.state == "ready" for one in found)) for origin, found in centrals.items()}
    expires = {
        origin: min(left)
        for origin, found in centrals.items()
        if (left := [one.expires_s for one in found if one.expires_s is not None])
    }
    return [
        _gauges("central_up", "Whether a Central serves every credential in use.", "central", up),
        summed("streams", "Open subscription streams.", lambda one: one.streams),
        summed("waits", "Waits in progress.", lambda one: one.waits),
        summed("calls_in_progress", "Calls to Central in progress.", lambda one: one.call_connections),
        summed("requests", "Tool calls sent to Central.", lambda one: one.requests, counts=True),
        summed("cues", "Cues received from Central.", lambda one: one.cues, counts=True),
        summed("reconnects", "Lost streams that were opened again.", lambda one: one.reconnects, counts=True),
        _gauges("credential_expires_seconds", "Seconds until the first credential expires.", "central", expires),
    ]


def _latency(series: Sequence[tuple[Series, Histogram]]) -> list[Family]:
    families = []
    for kind, name, help in _HISTOGRAMS:
        samples = [
            sample
            for known, found in series
            if known.kind == kind
            for sample in histogram((("tool", known.tool), ("host", known.host)), found)
        ]
        families.append(Family(name, "histogram", help, samples))
    return families


def _gauge(name: str, help: str, value: float) -> Family:
    return Family(f"pursersd_{name}", "gauge", help, [Sample(value)])


def _counter(name: str, help: str, value: int) -> Family:
    return Family(f"pursersd_{name}", "counter", help, [Sample(value, suffix="_total")])


def _gauges(name: str, help: str, label: str, values: "dict[str, float] | dict[str, int] | Counter[str]") -> Family:
    samples = [Sample(value, ((label, key),)) for key, value in sorted(values.items())]
    return Family(f"pursersd_{name}", "gauge", help, samples)


def _origin(url: str) -> str:
    """Scheme, host and port of a URL: its path or query may hold what is nobody's business."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return OTHER
    return f"{parts.scheme}://{parts.hostname or ''}{port}" if parts.scheme else OTHER
