"""A canary in every token that the rig mints: wherever it shows, a credential has leaked (RB-SEC-001).

Everything that a program of ours writes, prints, answers, logs or is started with passes through `look` or `look_at_home`; a
test during which one of them found the canary fails (see the fixture `no_leak`).
"""

import base64
import os
from collections.abc import Mapping
from pathlib import Path

import psutil

from rig import processes

CLAIM = {"canary": "pursersd-canary"}
"""The first claim of every token, so that its encoding is the same in all of them."""

_MARK = base64.urlsafe_b64encode(b'{"canary":"pursersd-c')
"""How CLAIM begins in an encoded token: three bytes make four letters, so the beginning must be of whole threes."""

DOORS = ("doors.json", "coordinator-doors.json")
"""The files that hold credentials; those of a local board's Central end in .jwt."""

_others: set[bytes] = set()

leaks: list[str] = []
"""Where the canary was seen since the last look at this list."""


def is_in(data: bytes) -> bool:
    """Whether a token shows in the data."""
    return _MARK in data or any(secret in data for secret in _others)


def watch(secret: str) -> None:
    """Look out for this credential as well: one that the rig did not mint."""
    _others.add(secret.encode())


def look(where: str, data: bytes) -> None:
    """Note a leak if a token shows in the data; `where` describes it."""
    if is_in(data):
        leaks.append(where)


def look_at_home(folder: Path) -> None:
    """Look at every file of a PURSERSD_HOME, and at the arguments and environments of its processes.

    A shim got its token in its environment from its host: that environment is the host's, and is not looked at.
    """
    for where, _, names in os.walk(folder):
        for name in names:
            file = Path(where, name)
            if not name.startswith(DOORS) and not name.endswith(".jwt") and file.is_file() and not file.is_symlink():
                look(str(file), _bytes(file))
    for process in processes.of_home(folder):
        try:
            arguments, environment = process.cmdline(), process.environ()
        except psutil.Error:
            continue
        look(f"arguments of {process.pid}: {arguments[:2]}", "\0".join(arguments).encode())
        if not _was_given_its_token(arguments):
            look(f"environment of {process.pid}: {arguments[:2]}", _flat(environment))


def _was_given_its_token(arguments: list[str]) -> bool:
    return any(Path(word).name in ("pursers-shim", "pursers-wait-bridge") for word in arguments)


def _flat(environment: Mapping[str, str]) -> bytes:
    return "\0".join(f"{name}={value}" for name, value in environment.items()).encode(errors="surrogateescape")


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # gone meanwhile, or made unreadable by the test
        return b""
