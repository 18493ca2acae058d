"""Both sides play all scenarios: place by place, a few places at once, so that their pauses overlap.

The bridge has its own times: on a busy machine it may not have opened its stream when a short wait ends, and answers
otherwise than it would. So all waits are longer there; and where the sides do not agree the bridge plays the scenario
again, on its own and with still more time. Ours has no second chance.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from parity.script import Call, Do, Place, Scenario
from parity.stage import SideName, Stage
from parity.verdict import problems
from rig.central import Central
from rig.daemon import Home
from rig.plain import ToolFailed
from rig.shim import Ended, RpcError

SIDES: tuple[SideName, ...] = ("bridge", "ours")
AT_ONCE = 8
"""Stages in use at the same time."""

FAILURES = (AssertionError, Ended, RpcError, ToolFailed, OSError, LookupError)
"""What a scenario that goes wrong can raise."""

SHORT = 6  # seconds: a call with a timeout up to this is expected to use it up

MOST_PATIENCE = 3
"""How many times longer than in the script waits last on a very busy machine."""

AGAIN = (3, 5)
"""The same when the bridge plays again, each time that it does."""


@dataclass(frozen=True, slots=True)
class Played:
    """What the sides gave in one scenario: their outcomes, or why there are none."""

    found: Mapping[SideName, list[Any] | Exception]

    def outcomes(self, side: SideName) -> list[Any]:
        """The normalised outcomes. AssertionError if the scenario could not be played on that side."""
        found = self.found[side]
        if isinstance(found, Exception):
            raise AssertionError(f"{side} could not play it: {found!r}") from found
        return found


def perform(scenarios: Iterable[Scenario]) -> dict[str, Played]:
    """Play the scenarios and return what they gave, by id. At most AT_ONCE conversations live at the same time."""
    programme = [
        (place, list(group))
        for place, group in groupby(sorted(scenarios, key=lambda s: s.place.name), key=lambda s: s.place)
    ]
    # The longest first: whoever is free takes the next one.
    programme.sort(key=lambda entry: -sum(map(_duration, entry[1])))
    with _house("bridge") as bridge, _house("ours") as ours, ThreadPoolExecutor(AT_ONCE) as threads:
        houses: dict[SideName, tuple[Central, Home]] = {"bridge": bridge, "ours": ours}
        patience = _patience()
        running = [
            (group, {side: threads.submit(_play, side, place, group, *houses[side], patience) for side in SIDES})
            for place, group in programme
        ]
        played = {
            scenario.id: Played({side: found.result()[number] for side, found in sides.items()})
            for group, sides in running
            for number, scenario in enumerate(group)
        }
        for scenario in (scenario for _, group in programme for scenario in group):
            for patience in AGAIN:
                if _may_be_the_bridge(scenario, played[scenario.id]):
                    again = replace(scenario.place, name=f"{scenario.place.name}-{scenario.id}-{patience}")
                    (found,) = _play("bridge", again, [scenario], *bridge, patience)
                    played[scenario.id] = Played({**played[scenario.id].found, "bridge": found})
        return played


def _patience() -> int:
    """How many times longer than in the script the waits of both sides last, by how busy the machine is."""
    return min(MOST_PATIENCE, max(1, round(os.getloadavg()[0] / (os.cpu_count() or 1))))


def _may_be_the_bridge(scenario: Scenario, played: Played) -> bool:
    """Whether the sides do not agree, and it may be that the bridge had not enough time."""
    theirs, ours = played.found["bridge"], played.found["ours"]
    if isinstance(ours, Exception):
        return False
    return isinstance(theirs, Exception) or any(problems(scenario.id, theirs, ours))


@contextmanager
def _house(side: SideName) -> Iterator[tuple[Central, Home]]:
    """What the stages of one side share. A Central each: for the bridge it reads every board at every call."""
    with Central() as central, Home() as home:
        if side == "ours":
            home.start_daemon()
        yield central, home


def _play(
    side: SideName, place: Place, scenarios: Sequence[Scenario], central: Central, home: Home, patience: int
) -> list[list[Any] | Exception]:
    found: list[list[Any] | Exception] = []
    with Stage(side, place, central, home, patience) as stage:
        for scenario in scenarios:
            try:
                found.append(stage.play(scenario))
            except FAILURES as error:  # shown by the test of this scenario
                found.append(error)
    return found


def _duration(scenario: Scenario) -> float:
    timeouts = [step.arguments.get("timeout_s") for step in scenario.steps if isinstance(step, Call)]
    acts = sum(step.times if isinstance(step, Do) else 1 for step in scenario.steps)
    return sum(s for s in timeouts if isinstance(s, int) and 0 < s <= SHORT) + 0.05 * acts
