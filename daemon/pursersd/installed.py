"""Which version the next daemon would be: the package on disk may have been replaced under this one."""

import os
import re
import time
from dataclasses import dataclass

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__init__.py")
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Installed:
    """The package on disk."""

    version: str | None
    """None if it is gone."""
    age_s: float
    """Seconds since it was put there, as far as the file says so."""


def installed() -> Installed:
    """What is there at this moment."""
    try:
        with open(_FILE, encoding="utf-8") as file:
            found = _VERSION.search(file.read(4096))
            age_s = max(0.0, time.time() - os.fstat(file.fileno()).st_mtime)
    except (OSError, UnicodeDecodeError):
        return Installed(None, 0.0)
    return Installed(found[1] if found else None, age_s)
