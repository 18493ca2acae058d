"""Checks of the installation: the interpreter, the three programs, and what they need."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from pursers_shim import __version__
from pursersctl.doctor_patient import Patient, doubtful, ill, well
from pursersctl.found import Finding

PROGRAMS = ("pursersctl", "pursersd", "pursers-shim")
NEEDED = (
    "mcp",
    "anyio",
    "msgspec",
    "platformdirs",
    "psutil",
    "jwt",
    "cryptography",
    "httpx2",
    "typer",
    "rich",
    "tomlkit",
)
OLDEST = (3, 11)
VERSION_TIMEOUT = 10.0  # seconds in which a program must tell its version

REINSTALL = "pip install --force-reinstall pursersd"


def python(_: Patient) -> Iterator[Finding]:
    """The interpreter that all three programs share, and the packages in it."""
    found = f"Python {platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST:
        yield ill("python", f"{found} is too old", "Install Python 3.11 or newer, and pursersd with it")
    else:
        yield well("python", found)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        yield ill("packages", f"missing: {', '.join(missing)}", REINSTALL)
    else:
        yield well("packages", "everything that the daemon needs is there")


def programs(patient: Patient) -> Iterator[Finding]:
    """Whether the programs are found, run, and are one version; the full path of the shim is for hosts' entries."""
    own = os.path.dirname(sys.executable)
    search = patient.environ.get("PATH", os.defpath)
    found = {name: (shutil.which(name, path=search), shutil.which(name, path=own)) for name in PROGRAMS}
    wrong = [finding for name, places in found.items() for finding in _wrong(name, places, own)]
    yield from wrong
    hidden = [name for name, (on_path, beside) in found.items() if on_path is None and beside is not None]
    if hidden:
        advice = f"Give hosts the full path {own}/pursers-shim, or run: export PATH={own}:$PATH"
        yield doubtful("programs", f"not on PATH but in {own}: {', '.join(hidden)}", advice)
    elif not wrong:
        shim = os.path.abspath(found["pursers-shim"][0] or "")
        yield well("programs", f"{', '.join(PROGRAMS)} {__version__}; hosts start {shim}")


def _wrong(name: str, places: tuple[str | None, str | None], own: str) -> Iterator[Finding]:
    """What is wrong with a program, at each place where it lies."""
    known = list(dict.fromkeys(os.path.abspath(place) for place in places if place is not None))
    if not known:
        yield ill("programs", f"{name} is neither on PATH nor in {own}", REINSTALL, of=name)
    for place in known:
        version = _version(place)
        if version is None:
            yield ill("programs", f"{place} does not run", REINSTALL, of=name)
        elif version != __version__:
            text = f"{place} is version {version}, this pursersctl is {__version__}"
            yield ill("programs", text, "Install one version everywhere: pip install --upgrade pursersd", of=name)


def _version(program: str) -> str | None:
    """What a program says is its version; None if it does not run. Asking starts nothing else."""
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT,
            env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONDONTWRITEBYTECODE": "1"},
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout.split()[-1] if done.returncode == 0 and done.stdout.split() else None
