"""The report: tables for a terminal and docs/benchmarks.md, both from the same rows."""

import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

import psutil
from rich import box
from rich.console import Console
from rich.table import Table

from bench.crowd import median, percentile
from bench.measure import LEAVE_LIMIT_S, Figures
from bench.targets import Runs, Verdict

DOCUMENT = Path(__file__).parent.parent / "docs" / "benchmarks.md"
NOTES = "## Notes"
"""Heading of the hand-written part of the document; what follows it is kept when the rest is written anew."""

PACKAGES = ("pursersd", "mcp", "pursers-central", "pursers-wait-bridge")

HOW = """\
`make bench` wrote this page, up to the notes at its end. Each column is one run on a fresh real Central behind a proxy
that counts requests, connections and streams; shim and bridge ran one after the other on the same machine with the same
script. Every conversation is a process with its own pipes and environment, as a host starts it; all use one credential.

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

Row = tuple[str, ...]


def print_report(console: Console, runs: Runs, judged: list[Verdict]) -> None:
    """Both tables."""
    figures = Table(title="Figures", title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in _headings(runs):
        figures.add_column(heading.replace(" ", "\n"), justify="left" if heading == "figure" else "right")
    for row in figure_rows(runs):
        figures.add_row(*row)
    targets = Table(title="Targets", title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("target", "wanted", "seen", "verdict"):
        targets.add_column(heading)
    for verdict in judged:
        style = {True: "green", False: "bold red", None: "dim"}[verdict.met]
        seen = f"{verdict.seen}, {verdict.compared_with}" if verdict.compared_with.strip("–") else verdict.seen
        targets.add_row(verdict.name, verdict.target, seen, _word(verdict), style=style)
    console.print(figures)
    if judged:
        console.print(targets)


def write_document(runs: Runs, judged: list[Verdict], took_s: float) -> None:
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


def _headings(runs: Runs) -> Row:
    return ("figure", *(f"{program} n={n}" for program, n in runs))


def _left(figures: Figures) -> str:
    return f"> {LEAVE_LIMIT_S:.0f}" if figures.left_after_s is None else f"{figures.left_after_s:.2f}"


def _word(verdict: Verdict) -> str:
    if verdict.met is None:
        return "not measured"
    return "met" if verdict.met else f"missed by {verdict.off_by}"


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
