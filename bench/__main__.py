"""`make bench`: measure shim and bridge side by side, print the tables, write docs/benchmarks.md."""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import psutil
from rich.console import Console

from bench import burst, leases, scale, starts, usage
from bench.measure import Figures, Say, check_nothing_left, measure
from bench.programs import OURS, THEIRS, Program
from bench.report import DOCUMENT, Many, print_report, write_document
from bench.targets import Verdict, scale_verdicts, verdicts
from rig.daemon import Home
from rig.shim import SHIM, ShimProcess

T = TypeVar("T")

IDLE_S = 40.0  # seconds of rest that are measured
LONG_IDLE_S = 120.0  # the same for ours at n = 10: long enough to show one request per minute
QUICK_IDLE_S = 20.0


def main() -> int:
    """Returns 0 when everything was measured, also if a target was missed: the tables say so."""
    options = _options()
    console = Console()
    began = time.perf_counter()
    runs: dict[tuple[str, int], Figures] = {}
    for program, n in _plan(options):
        runs[program.name, n] = _run(console, program, n, _idle_s(program, n, options.quick))
    judged = [] if options.scale or options.leases else _judge(console, options, runs)
    many = _many(console, options)
    if many.scales:
        judged += scale_verdicts(many.scales, many.burst)
    check_nothing_left()
    print_report(console, runs, many, judged)
    if not options.quick and not options.scale and not options.leases and options.only is None:
        write_document(runs, many, judged, time.perf_counter() - began)
        console.print(f"wrote {DOCUMENT}")
    missed = sum(verdict.met is False for verdict in judged)
    if missed:
        console.print(f"[bold red]{missed} of {len(judged)} targets missed[/]")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ours only, n = 1 and 10, short; writes no file")
    parser.add_argument("--scale", action="store_true", help="only many conversations as links; writes no file")
    parser.add_argument("--leases", action="store_true", help="only the keeping of leases; writes no file")
    parser.add_argument("--only", choices=("pursersd", "bridge"), help="one program; writes no file")
    parser.add_argument(
        "--n", type=int, action="append", help="these counts instead of the usual ones; may be repeated"
    )
    return parser.parse_args()


def _plan(options: argparse.Namespace) -> list[tuple[Program, int]]:
    if options.scale or options.leases:
        return []
    counts = {OURS: [1, 10] if options.quick else [1, 10, 50], THEIRS: [] if options.quick else [1, 10]}
    chosen = [program for program in counts if options.only in (None, program.name)]
    return [(program, n) for program in chosen for n in (options.n or counts[program])]


def _idle_s(program: Program, n: int, quick: bool) -> float:
    if quick:
        return QUICK_IDLE_S
    return LONG_IDLE_S if (program, n) == (OURS, 10) else IDLE_S


def _judge(console: Console, options: argparse.Namespace, runs: dict[tuple[str, int], Figures]) -> list[Verdict]:
    programs = list(dict.fromkeys(program for program, _ in _plan(options)))
    with console.status("starts, by turns"):
        starting = starts.initialize_s(programs)
    return [] if options.only == "bridge" else verdicts(runs, starting, _shim_memory_ratio())


def _many(console: Console, options: argparse.Namespace) -> Many:
    """Measured by a whole run and by --scale."""
    if options.quick or options.only:
        return Many({}, None)
    kept = () if options.scale else _leases(console)
    if options.leases:
        return Many({}, None, kept)
    counts = options.n if options.scale and options.n else scale.COUNTS
    scales = {n: _timed(console, f"{n} links", partial(scale.measure, n)) for n in counts}
    bursts = burst.CALLERS in scales
    told = _timed(console, f"burst on {burst.CALLERS} links", burst.measure) if bursts else None
    return Many(scales, told, kept)


def _leases(console: Console) -> list[leases.Keeping]:
    return [
        _timed(console, f"{program.name}, {n} leases", partial(leases.measure, program, n))
        for program, n in leases.RUNS
    ]


def _run(console: Console, program: Program, n: int, idle_s: float) -> Figures:
    label = f"{program.name}, {n} conversation{'s' if n > 1 else ''}"
    return _timed(console, label, partial(measure, program, n, idle_s))


def _timed(console: Console, label: str, work: Callable[[Say], T]) -> T:
    began = time.perf_counter()
    with console.status(label) as status:
        result = work(lambda what: status.update(f"{label}: {what}"))
    console.print(f"{label}: {time.perf_counter() - began:.0f} s")
    return result


def _shim_memory_ratio() -> float:
    """Memory of one connected shim over that of a Python which imports only what a relay needs."""
    bare, _ = usage.bare_python_mib()
    with Home() as home:
        home.start_daemon()
        with ShimProcess([SHIM], home.environment()) as shim:
            shim.initialize()
            shim.request("tools/list")
            return usage.memory_mib([psutil.Process(shim.pid)])[0] / bare


if __name__ == "__main__":
    sys.exit(main())
