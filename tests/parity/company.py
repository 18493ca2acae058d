"""Both sides play all scenarios: place by place, a few places at once, so that their pauses overlap."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from parity.script import Call, Place, Scenario
from parity.stage import SideName, Stage
from rig.central import Central
from rig.daemon import Home
from rig.plain import ToolFailed
from rig.shim import Ended, RpcError

SIDES: tuple[SideName, ...] = ("bridge", "ours")
AT_ONCE = 4
"""Stages in use at the same time."""

FAILURES = (AssertionError, Ended, RpcError, ToolFailed, OSError, LookupError)
"""What a scenario that goes wrong can raise."""

SHORT = 6  # seconds: a call with a timeout up to this is expected to use it up


@dataclass(slots=True)
class Played:
    """What the sides gave in one scenario: their outcomes, or why there are none."""

    _outcomes: dict[SideName, list[Any] | Exception] = field(default_factory=dict)

    def outcomes(self, side: SideName) -> list[Any]:
        """The normalised outcomes. AssertionError if the scenario could not be played on that side."""
        found = self._outcomes[side]
        if isinstance(found, Exception):
            raise AssertionError(f"{side} could not play it: {found!r}") from found
        return found


def perform(scenarios: Iterable[Scenario]) -> dict[str, Played]:
    """Play the scenarios and return what they gave, by id. At most AT_ONCE conversations live at the same time."""
    places = [
        (place, list(group))
        for place, group in groupby(sorted(scenarios, key=lambda s: s.place.name), key=lambda s: s.place)
    ]
    # The longest first: whoever is free takes the next one.
    places.sort(key=lambda found: -sum(map(_duration, found[1])))
    played = {scenario.id: Played() for _, group in places for scenario in group}
    with _house("bridge") as bridge, _house("ours") as ours, ThreadPoolExecutor(AT_ONCE) as threads:
        houses: dict[SideName, tuple[Central, Home]] = {"bridge": bridge, "ours": ours}
        started: list[tuple[Sequence[Scenario], SideName, Future[list[list[Any] | Exception]]]] = [
            (group, side, threads.submit(_play, side, place, group, *houses[side]))
            for place, group in places
            for side in SIDES
        ]
        for group, side, running in started:
            for scenario, found in zip(group, running.result(), strict=True):
                played[scenario.id]._outcomes[side] = found
    return played


@contextmanager
def _house(side: SideName) -> Iterator[tuple[Central, Home]]:
    """What the stages of one side share. A Central each: for the bridge it reads every board at every call."""
    with Central() as central, Home() as home:
        if side == "ours":
            home.start_daemon()
        yield central, home


def _play(
    side: SideName, place: Place, scenarios: Sequence[Scenario], central: Central, home: Home
) -> list[list[Any] | Exception]:
    found: list[list[Any] | Exception] = []
    with Stage(side, place, central, home) as stage:
        for scenario in scenarios:
            try:
                found.append(stage.play(scenario))
            except FAILURES as error:  # shown by the test of this scenario
                found.append(error)
    return found


def _duration(scenario: Scenario) -> float:
    timeouts = [step.arguments.get("timeout_s") for step in scenario.steps if isinstance(step, Call)]
    return sum(s for s in timeouts if isinstance(s, int) and 0 < s <= SHORT) + 0.05 * len(scenario.steps)
