"""The targets, as pure functions of the figures: what was promised, what was seen, and the verdict."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.burst import Burst
from bench.crowd import median, percentile
from bench.measure import Figures
from bench.scale import Scale

Runs = Mapping[tuple[str, int], Figures]
"""Figures by (program name, n)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One target. `met` is None if a run that it needs was left out."""

    name: str
    target: str
    seen: str
    compared_with: str
    met: bool | None
    off_by: str = ""
    """By how much it was missed."""
    why: str = ""
    """Where the time of a miss went, if that was measured."""


def verdicts(runs: Runs, starts: Mapping[str, list[float]], shim_pss_ratio: float | None) -> list[Verdict]:
    """All targets, judged. `starts`: see bench.starts; empty lists for what was left out."""
    ours = {n: runs[program, n] for program, n in runs if program == "pursersd"}
    theirs = {n: runs[program, n] for program, n in runs if program == "bridge"}
    at_ten, most = ours.get(10), ours[max(ours)]
    return [
        _start(starts.get("pursersd", []), starts.get("bridge", [])),
        _memory(ours.get(50), theirs),
        _shim_memory(shim_pss_ratio),
        _wake(at_ten),
        _at_most("TCP connections to Central, any n", 6, max(x.tcp for x in ours.values())),
        _exactly("subscription streams, any n", 2, {x.streams for x in ours.values()}),
        _at_most("Central requests per broadcast, n = 10", 3, max(at_ten.requests_per_event) if at_ten else None),
        _at_most("joins per seat", 1, max(x.joins_per_seat for x in ours.values())),
        _idle(list(ours.values())),
        _at_most("idle: CPU ms per second, n = 10", 1, at_ten.idle_cpu_ms_per_s if at_ten else None),
        _at_most("processes alive 0.5 s after stdin ends mid-wait", 0, max(x.alive_after_eof for x in ours.values())),
        _at_most(f"pursersctl ps, s, n = {most.n}", 0.3, median(most.ps_s)),
    ]


def scale_verdicts(scales: Mapping[int, Scale], burst: Burst | None) -> list[Verdict]:
    """The targets of many conversations as links of one process."""
    fifty, most = scales.get(50), scales.get(200)
    verdicts = [
        _slowest(fifty),
        _spread(most),
        _at_most("daemon memory per conversation, MiB, n = 200", 0.4, most.mib_per_conversation if most else None),
        _at_most("Central requests per broadcast, n = 200", 3, most.most_requests if most else None),
    ]
    if scales:
        verdicts += [
            _at_most("TCP connections to Central, links, any n", 6, max(x.tcp for x in scales.values())),
            _exactly("subscription streams, links, any n", 2, {x.streams for x in scales.values()}),
        ]
    return [*verdicts, _whole(burst)]


def extrapolated_pss_mib(theirs: Mapping[int, Figures], n: int) -> float | None:
    """Memory of n bridges on the straight line through the measured counts; shared pages make it less than n × one."""
    if 1 not in theirs or 10 not in theirs:
        return None
    slope = (theirs[10].pss_mib - theirs[1].pss_mib) / 9
    return theirs[10].pss_mib + (n - 10) * slope


def _start(ours: list[float], theirs: list[float]) -> Verdict:
    name, target = "start to initialize, warm daemon, by turns", "≥ 15× faster"
    if not ours or not theirs:
        return Verdict(name, target, _s(ours) if ours else "–", "–", None)
    return _ratio(name, target, _s(ours), f"bridge {_s(theirs)}", median(theirs) / median(ours), at_least=15)


def _memory(ours: Figures | None, theirs: Mapping[int, Figures]) -> Verdict:
    name, target = "memory of 50 conversations with daemon (PSS)", "≥ 8× less"
    other = extrapolated_pss_mib(theirs, 50)
    if ours is None or other is None:
        return Verdict(name, target, f"{ours.pss_mib:.0f} MiB" if ours else "–", "–", None)
    seen, against = f"{ours.pss_mib:.0f} MiB", f"50 bridges {other:.0f} MiB"
    return _ratio(name, target, seen, against, other / ours.pss_mib, at_least=8)


def _shim_memory(ratio: float | None) -> Verdict:
    name, target = "memory of one shim (PSS)", "≤ 1.3× bare Python"
    if ratio is None:
        return Verdict(name, target, "–", "–", None)
    return Verdict(name, target, f"{ratio:.2f}×", "python -c 'import …'", ratio <= 1.3, f"{ratio / 1.3 - 1:.0%}")


def _wake(ours: Figures | None) -> Verdict:
    name, target = "wake p50, n = 10", "≤ 2× the floor"
    if ours is None:
        return Verdict(name, target, "–", "–", None)
    seen, bottom = percentile(ours.wake_ms, 0.5), median(ours.floor_ms)
    ratio = seen / bottom
    return Verdict(
        name,
        target,
        f"{seen:.0f} ms ({ratio:.1f}×)",
        f"floor {bottom:.0f} ms",
        ratio <= 2,
        f"{ratio - 2:.1f}× the floor",
    )


def _slowest(seen: Scale | None) -> Verdict:
    name, target = "wake p99, n = 50, links", "≤ 3× the floor's p99"
    if seen is None:
        return Verdict(name, target, "–", "–", None)
    floor = seen.floor_ms(0.99)
    ratio = seen.wake_ms(0.99) / floor
    worst = max(seen.broadcasts, key=lambda broadcast: max(broadcast.wake_ms))
    usual = median([broadcast.central_ms for broadcast in seen.broadcasts])
    why = (
        f"the slowest broadcast had its first answer after {worst.first_ms:.0f} ms, its last {worst.spread_ms:.0f} ms later; "
        f"Central had its requests for {worst.central_ms:.0f} ms, usually {usual:.0f} ms"
    )
    shown = f"{seen.wake_ms(0.99):.0f} ms ({ratio:.1f}×)"
    return Verdict(name, target, shown, f"floor {floor:.0f} ms", ratio <= 3, f"{ratio - 3:.1f}× the floor", why)


def _spread(seen: Scale | None) -> Verdict:
    name, target = "first to last wake of each broadcast, n = 200", "≤ 250 ms"
    if seen is None:
        return Verdict(name, target, "–", "", None)
    spreads = [broadcast.spread_ms for broadcast in seen.broadcasts]
    over = [spread for spread in spreads if spread > 250]
    why = f"{len(over)} of {len(spreads)} broadcasts, median {median(spreads):.0f} ms"
    return Verdict(name, target, f"{max(spreads):.0f} ms", "", not over, f"{max(spreads) - 250:.0f} ms", why)


def _whole(burst: Burst | None) -> Verdict:
    if burst is None:
        return Verdict("burst: told all, once, in order", "every caller", "–", "", None)
    name, seen = f"burst of {burst.events}: told all, once, in order", f"{burst.whole} of {burst.callers}"
    missing = burst.callers - burst.whole
    return Verdict(name, "every caller", seen, "", not missing, f"{missing} callers")


def _idle(ours: list[Figures]) -> Verdict:
    # A span of two minutes may begin just before a request and so contain three that are a minute apart.
    over = {x.n: x.idle_requests - (int(x.idle_s // 60) + 1) for x in ours}
    seen = ", ".join(f"{x.idle_requests} in {x.idle_s:.0f} s" for x in ours)
    met = max(over.values()) <= 0
    return Verdict("idle: requests per board and minute", "≤ 1", seen, "", met, f"{max(over.values())} requests")


def _at_most(name: str, limit: float, seen: float | None) -> Verdict:
    if seen is None:
        return Verdict(name, f"≤ {limit:g}", "–", "", None)
    return Verdict(name, f"≤ {limit:g}", _number(seen), "", seen <= limit, _number(seen - limit))


def _exactly(name: str, wanted: int, seen: set[int]) -> Verdict:
    shown = ", ".join(str(x) for x in sorted(seen))
    return Verdict(name, f"= {wanted}", shown, "", seen == {wanted}, f"{shown} instead of {wanted}")


def _ratio(name: str, target: str, seen: str, against: str, ratio: float, at_least: float) -> Verdict:
    return Verdict(name, target, f"{seen} ({ratio:.1f}×)", against, ratio >= at_least, f"{1 - ratio / at_least:.0%}")


def _s(samples: list[float]) -> str:
    return f"{median(samples):.3f} s"


def _number(value: float) -> str:
    return f"{value:.3g}"
