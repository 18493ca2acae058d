"""All scenarios, by id."""

from collections.abc import Mapping

from parity.scenarios import arguments, entry, held, identity, live, projects, review
from parity.script import Scenario

_MODULES = (arguments, entry, held, review, identity, live, projects)

SCENARIOS = tuple(scenario for module in _MODULES for scenario in module.SCENARIOS)
ALL: Mapping[str, Scenario] = {scenario.id: scenario for scenario in SCENARIOS}
