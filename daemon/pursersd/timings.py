"""How long tool calls, waits and wakes take: one object for the whole daemon, of bounded size, gone with it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

from pursersd.api.measures import LatencyRow
from pursersd.rules import resend
from pursersd.rules.histogram import Histogram
from pursersd.secret import blanked

Kind = Literal["call", "wait", "wake"]

HOSTS = 16
"""Kinds of host that are told apart; clients name themselves as they like."""

LONGEST = 40
"""Characters of a host's name."""

OTHER = "other"


class Series(NamedTuple):
    """What is counted together."""

    kind: Kind
    tool: str
    host: str


class Timings:
    """The histograms of every kind, tool and host. Changed by its methods alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._hosts: set[str] = set()
        self._all: dict[Series, Histogram] = {}

    def __repr__(self) -> str:
        return f"<Timings {len(self._all)} series>"

    @contextmanager
    def calling(self, tool: str, host: str) -> Iterator[None]:
        """A tool call runs; one that waits for something is counted as a wait, apart from the others."""
        began = self._clock()
        try:
            yield
        finally:
            kind: Kind = "wait" if resend.tool(tool).resend is resend.Resend.WAIT else "call"
            self._add(kind, tool, host, self._clock() - began)

    def woke(self, tool: str, host: str, cued_at: float) -> float:
        """A wait answers because of a cue that came at `cued_at`; returns the seconds since then."""
        seconds = self._clock() - cued_at
        self._add("wake", tool, host, seconds)
        return seconds

    def series(self) -> list[tuple[Series, Histogram]]:
        """Everything that was counted, sorted."""
        return sorted(self._all.items(), key=lambda item: item[0])

    def rows(self) -> list[LatencyRow]:
        """The same for people: a row each."""
        return [
            LatencyRow(
                kind=name.kind,
                tool=name.tool,
                host=name.host,
                count=found.count,
                p50_s=_rounded(found.percentile(0.5)),
                p95_s=_rounded(found.percentile(0.95)),
                p99_s=_rounded(found.percentile(0.99)),
                max_s=_rounded(found.max_s),
            )
            for name, found in self.series()
        ]

    def _add(self, kind: Kind, tool: str, host: str, seconds: float) -> None:
        known = tool if tool in resend.TOOLS else OTHER
        self._all.setdefault(Series(kind, known, self._host(host)), Histogram()).add(seconds)

    def _host(self, name: str) -> str:
        """The name of a host as it is counted: of no more kinds than HOSTS."""
        name = blanked(name)[:LONGEST]
        if name not in self._hosts and len(self._hosts) >= HOSTS:
            return OTHER
        self._hosts.add(name)
        return name


def _rounded(seconds: float) -> float:
    return round(seconds, 6)
