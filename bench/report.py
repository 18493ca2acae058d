"""The report: tables for a terminal and docs/benchmarks.md, both from the same rows."""

import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil
from rich import box
from rich.console import Console
from rich.table import Table

from bench.burst import Burst
from bench.crowd import median, percentile
from bench.leases import SPAN_S, TTL_S, Keeping
from bench.measure import LEAVE_LIMIT_S, Figures
from bench.scale import BROADCASTS, Scale
from bench.targets import Runs, Verdict

DOCUMENT = Path(__file__).parent.parent / "docs" / "benchmarks.md"
NOTES = "## Notes"
"""Heading of the hand-written part of the document; what follows it is kept when the rest is written anew."""

PACKAGES = ("pursersd", "mcp", "pursers-central", "pursers-wait-bridge")

HOW = """\
`make bench` wrote this page, up to the notes at its end. Each column is one run on a fresh real Central behind a proxy
that counts requests, connections and streams; shim and bridge ran one after the other on the same machine with the same
script. Every conversation is a process with its own pipes and environment, as a host starts it; all use one credential.
The part *Scale* is the exception: there the conversations are links of one process, without shims.

* *Start*: process started → answer of `initialize` (or `tools/list`), one conversation at a time, median;
  a daemon is running. For the target both programs start by turns, so that a busy moment meets both.
* *Memory*: PSS of all processes while every wait blocks, daemon included; a page shared by k processes counts 1/k
  each.
* *Wake*: `ticket_create` sent → answer of `a2a_wait` complete at the host. The *floor* is one bare listener that reads
  one page when it is cued, through an equal proxy, measured between the wakes: the least that any client can need.
* *Requests per event*: all MCP requests to Central between the event and half a second after the last wake.
* *Alive after EOF*: processes that are still there when all hosts have closed stdin in the middle of the waits.
* *Early returns*: waits that came back although nothing had happened since their cursor.
* The bridge is measured in the multi-board form of `a2a_wait`, its faster one: its single-board form notices a live
  event only at the next maintenance tick, up to 30 s later. Ours is measured in the single-board form.
* The memory of 50 bridges is extrapolated along the line through its two measured counts, which is in its favour: the
  first process pays for the pages that all share.
"""

SCALE = f"""\
Ours alone. Here a conversation is a link of the measuring process and no shim stands between, so that the figures are
the daemon's and not those of 200 processes on this machine's CPUs. All wait on one board with equal cursors and one
credential; {BROADCASTS} broadcasts, the floor measured before each.

* *First → last wake*: first answer of a broadcast that was complete → last one.
* *Daemon memory per conversation*: PSS of the daemon while all wait, minus PSS before the first, divided by n.
* *Entry*: all call `a2a_wait` at the same moment → the last request to Central of that. The first time each takes its
  seat; *again* is from known cursors.
* *Burst*: events created by two threads as fast as Central takes them while 50 callers take what came and wait again.
  Spread over boards with equal shares of callers, because on one board Central's cost of an event grows with the tickets
  that are there; each caller must be told every event of its board.
"""


LEASES = f"""\
Each conversation holds one ticket; its model has claimed it elsewhere, is busy elsewhere and calls nothing here. Leases
of {TTL_S} s instead of Central's 900 s, so that {SPAN_S:.0f} s show three renewals of each: with 900 s all of it is about
twelve times rarer. Ours are links, the bridges are processes; the processor time is that of the daemon, or of all bridges.

* *Requests*: all MCP requests to Central per minute, the questions who holds what included.
* *Renewed as model*: leases that Central records as renewed by a model in this time, although no model did anything.
"""


@dataclass(frozen=True, slots=True)
class Many:
    """The part with many conversations: figures by n, and the burst."""

    scales: Mapping[int, Scale]
    burst: Burst | None
    keeping: Sequence[Keeping] = ()


Row = tuple[str, ...]


def print_report(console: Console, runs: Runs, many: Many, judged: list[Verdict]) -> None:
    """The tables of what was measured."""
    if runs:
        console.print(_table("Figures", _headings(runs), figure_rows(runs)))
    if many.scales:
        console.print(_table("Scale: links of one process, no shims", _scale_headings(many), scale_rows(many)))
    if many.keeping:
        console.print(_table("Leases", _lease_headings(many), lease_rows(many)))
    targets = Table(title="Targets", title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("target", "wanted", "seen", "verdict"):
        targets.add_column(heading)
    for verdict in judged:
        style = {True: "green", False: "bold red", None: "dim"}[verdict.met]
        seen = f"{verdict.seen}, {verdict.compared_with}" if verdict.compared_with.strip("–") else verdict.seen
        targets.add_row(verdict.name, verdict.target, seen, _word(verdict), style=style)
    if judged:
        console.print(targets)


def write_document(runs: Runs, many: Many, judged: list[Verdict], took_s: float) -> None:
    """Write docs/benchmarks.md; the notes at its end stay."""
    wanted: list[Row] = [(v.name, v.target, v.seen, v.compared_with, _word(v)) for v in judged]
    parts = [
        "# Benchmarks",
        HOW.strip(),
        "## Where and when",
        "\n".join(f"* {line}" for line in machine(took_s)),
        "## Targets",
        _markdown(("target", "wanted", "seen", "compared with", "verdict"), wanted),
        "## Figures",
        _markdown(_headings(runs), figure_rows(runs)),
        "## Scale",
        SCALE.strip(),
        _markdown(_scale_headings(many), scale_rows(many)),
        "## Leases",
        LEASES.strip(),
        _markdown(_lease_headings(many), lease_rows(many)),
        _notes(),
    ]
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text("\n\n".join(parts).rstrip() + "\n", encoding="utf-8")


def machine(took_s: float) -> list[str]:
    """Where and when this was measured, and of what."""
    memory = psutil.virtual_memory().total / 2**30
    return [
        f"{time.strftime('%Y-%m-%d %H:%M %Z')}, the run took {took_s / 60:.0f} min",
        f"{_processor()}, {psutil.cpu_count()} CPUs, {memory:.0f} GiB, {platform.system()} {platform.release()}",
        f"Python {platform.python_version()} ({sys.implementation.name}); "
        + ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        f"load average at the end {psutil.getloadavg()[0]:.1f}; ratios within one run matter more than milliseconds",
    ]


def figure_rows(runs: Runs) -> list[Row]:
    """One row per figure, one cell per run."""
    columns = [runs[key] for key in runs]
    return [
        ("start → initialize, s", *(f"{median(x.initialize_s):.3f}" for x in columns)),
        ("start → tools/list, s", *(f"{median(x.tools_s):.3f}" for x in columns)),
        ("memory PSS, MiB", *(f"{x.pss_mib:.0f}" for x in columns)),
        ("memory RSS, MiB", *(f"{x.rss_mib:.0f}" for x in columns)),
        ("of it daemon, PSS MiB", *(f"{x.daemon_pss_mib:.0f}" if x.daemon_pss_mib else "–" for x in columns)),
        ("floor p50, ms", *(f"{median(x.floor_ms):.0f}" for x in columns)),
        ("wake p50, ms", *(f"{percentile(x.wake_ms, 0.5):.0f}" for x in columns)),
        ("wake p99, ms", *(f"{percentile(x.wake_ms, 0.99):.0f}" for x in columns)),
        ("TCP connections", *(str(x.tcp) for x in columns)),
        ("streams", *(str(x.streams) for x in columns)),
        ("requests per event, median", *(f"{median([float(y) for y in x.requests_per_event]):g}" for x in columns)),
        ("requests per event, most", *(str(max(x.requests_per_event)) for x in columns)),
        ("joins per seat", *(f"{x.joins_per_seat:.2g}" for x in columns)),
        ("early returns", *(str(x.returned_early) for x in columns)),
        ("requests while idle", *(f"{x.idle_requests} in {x.idle_s:.0f} s" for x in columns)),
        ("idle CPU, ms per s", *(f"{x.idle_cpu_ms_per_s:.2f}" for x in columns)),
        ("alive 0.5 s after EOF", *(str(x.alive_after_eof) for x in columns)),
        ("all gone after, s", *(_left(x) for x in columns)),
        ("pursersctl ps, s", *(f"{median(x.ps_s):.2f}" if x.ps_s else "–" for x in columns)),
    ]


def scale_rows(many: Many) -> list[Row]:
    """One row per figure of many conversations, one cell per n; the burst's rows have one figure for all."""
    columns = list(many.scales.values())
    rows: list[Row] = [
        ("floor p50, ms", *(f"{x.floor_ms(0.5):.0f}" for x in columns)),
        ("floor p99, ms", *(f"{x.floor_ms(0.99):.0f}" for x in columns)),
        ("wake p50, ms", *(f"{x.wake_ms(0.5):.0f}" for x in columns)),
        ("wake p99, ms", *(f"{x.wake_ms(0.99):.0f}" for x in columns)),
        ("first wake, median, ms", *(f"{median([y.first_ms for y in x.broadcasts]):.0f}" for x in columns)),
        ("of it at Central, median, ms", *(f"{median([y.central_ms for y in x.broadcasts]):.0f}" for x in columns)),
        ("first → last wake, median, ms", *(f"{median([y.spread_ms for y in x.broadcasts]):.0f}" for x in columns)),
        ("first → last wake, most, ms", *(f"{max(y.spread_ms for y in x.broadcasts):.0f}" for x in columns)),
        ("requests per broadcast, most", *(str(x.most_requests) for x in columns)),
        ("daemon memory per conversation, MiB", *(f"{x.mib_per_conversation:.2f}" for x in columns)),
        ("entry of n first waits, s", *(f"{x.entry_s:.1f}" for x in columns)),
        ("entry of n waits again, s", *(f"{x.again_s:.2f}" for x in columns)),
        ("joins", *(str(x.joins) for x in columns)),
        ("TCP connections", *(str(x.tcp) for x in columns)),
        ("streams", *(str(x.streams) for x in columns)),
    ]
    return rows + (_burst_rows(many.burst, many.scales) if many.burst else [])


def lease_rows(many: Many) -> list[Row]:
    """One row per figure of the keeping of leases, one cell per run."""
    return [
        ("requests per minute", *(f"{x.requests:.0f}" for x in many.keeping)),
        ("of it joins", *(f"{x.joins:.0f}" for x in many.keeping)),
        ("requests per lease and minute", *(f"{x.requests / x.n:.1f}" for x in many.keeping)),
        ("CPU, s per minute", *(f"{x.cpu_s:.2f}" for x in many.keeping)),
        ("lapsed", *(str(x.lapsed) for x in many.keeping)),
        ("renewed as model", *(str(x.as_model) for x in many.keeping)),
    ]


def _burst_rows(burst: Burst, scales: Mapping[int, Scale]) -> list[Row]:
    name = f"burst of {burst.events} on {burst.boards} boards"
    figures = (
        (f"{name}, all created, s", f"{burst.created_s:.0f}"),
        (f"{name}, all seen, s", f"{burst.seen_s:.0f}"),
        (f"{name}, requests in all", str(burst.requests)),
    )
    return [(label, *(figure if n == burst.callers else "–" for n in scales)) for label, figure in figures]


def _scale_headings(many: Many) -> Row:
    return ("figure", *(f"links n={n}" for n in many.scales))


def _lease_headings(many: Many) -> Row:
    return ("figure", *(f"{x.program} n={x.n}" for x in many.keeping))


def _table(title: str, headings: Row, rows: list[Row]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading.replace(" ", "\n"), justify="left" if heading == "figure" else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _headings(runs: Runs) -> Row:
    return ("figure", *(f"{program} n={n}" for program, n in runs))


def _left(figures: Figures) -> str:
    return f"> {LEAVE_LIMIT_S:.0f}" if figures.left_after_s is None else f"{figures.left_after_s:.2f}"


def _word(verdict: Verdict) -> str:
    if verdict.met is None:
        return "not measured"
    return "met" if verdict.met else f"missed by {verdict.off_by}" + (f": {verdict.why}" if verdict.why else "")


def _markdown(headings: Row, rows: list[Row]) -> str:
    lines = [headings, tuple("---" for _ in headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _notes() -> str:
    if not DOCUMENT.exists():
        return NOTES
    _, found, rest = DOCUMENT.read_text(encoding="utf-8").partition(NOTES)
    return NOTES + rest.rstrip() if found else NOTES


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
