"""All collected scenarios are played before the first is compared: together they take a fraction of the time."""

from collections.abc import Mapping

import pytest

from parity.company import Played, perform
from parity.scenarios import ALL


@pytest.fixture(scope="session")
def played(request: pytest.FixtureRequest) -> Mapping[str, Played]:
    """What both sides gave in the collected scenarios."""
    functions = [item for item in request.session.items if isinstance(item, pytest.Function)]
    names = {item.callspec.params["name"] for item in functions if "played" in item.fixturenames}
    return perform(scenario for scenario in ALL.values() if scenario.id in names)
