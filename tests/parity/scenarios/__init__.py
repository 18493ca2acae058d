"""All scenarios, by id."""

from collections.abc import Mapping

from parity.scenarios import (
    arguments,
    closed,
    digest,
    entry,
    held,
    humans,
    identity,
    live,
    many,
    offers,
    projects,
    questions,
    review,
    roles,
    routes,
)
from parity.script import Scenario

_MODULES = (
    arguments,
    entry,
    held,
    review,
    identity,
    live,
    projects,
    many,
    closed,
    roles,
    routes,
    offers,
    digest,
    questions,
    humans,
)

SCENARIOS = tuple(scenario for module in _MODULES for scenario in module.SCENARIOS)
ALL: Mapping[str, Scenario] = {scenario.id: scenario for scenario in SCENARIOS}
