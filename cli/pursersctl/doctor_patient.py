"""What the checks of `pursersctl doctor` look at, and how they say what they found."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pursers_shim import paths
from pursers_shim.paths import PathError, Place
from pursers_shim.wire import readable
from pursersctl.found import Finding


@dataclass(frozen=True, slots=True)
class Patient:
    """One user's installation, as this environment names it."""

    place: Place
    environ: Mapping[str, str]
    cwd: str


Check = Callable[[Patient], Iterable[Finding]]
"""Looks at one thing; changes and starts nothing, and ends by itself within some seconds."""


def patient(environ: Mapping[str, str]) -> Patient:
    """What is to be examined, also when its PURSERSD_HOME cannot work."""
    try:
        place = paths.place(environ)
    except PathError:
        home = os.path.abspath(environ[paths.HOME_VARIABLE])
        place = Place(home + "/run", home)
    return Patient(place, environ, os.getcwd())


# What is found may hold any byte, JSON may not: paths and names are made readable here, once for all checks.


def well(check: str, text: str, *, of: str | None = None) -> Finding:
    """Nothing is to be done here."""
    return Finding(check=check, subject=of and readable(of), result="pass", text=readable(text))


def doubtful(check: str, text: str, action: str, *, of: str | None = None) -> Finding:
    """It works, and somebody should look at it."""
    return Finding(
        check=check, subject=of and readable(of), result="warn", text=readable(text), action=readable(action)
    )


def ill(check: str, text: str, action: str, *, of: str | None = None) -> Finding:
    """Something does not work."""
    return Finding(
        check=check, subject=of and readable(of), result="fail", text=readable(text), action=readable(action)
    )


def advised(text: str, otherwise: str) -> tuple[str, str]:
    """The fact and the advice of a text that has both in two sentences or lines; `otherwise` when it has none."""
    head, mark, tail = text.partition("\n") if "\n" in text else text.partition(". ")
    return head.rstrip("."), tail.strip() if mark and tail.strip() else otherwise
