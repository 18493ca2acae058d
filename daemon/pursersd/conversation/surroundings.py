"""What the environment and the folder of a shim give to its conversation."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pursersd.settings import Settings
from pursersd.state.digests import DigestFile
from pursersd.state.doors import Doors
from pursersd.state.keyring import Keyring
from pursersd.state.stats import StatsWriter


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where one conversation finds what it works with."""

    resolve: Callable[[], Settings]
    """Gives the settings that they mean at this moment."""
    doors: Doors | None = None
    """The stored doors that it looks at."""
    stats: StatsWriter | None = None
    """Where its calls are counted; None: nowhere."""
    digests: Callable[[str], DigestFile] | None = None
    """Gives the file with its record, by its home board."""
    keyring: Keyring = field(default_factory=lambda: Keyring(""))
    """What its questions are sealed with."""
