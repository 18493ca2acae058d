"""Which of our programs a command line starts: itself, or through a package runner, an interpreter or `env`."""

import os
import re
from dataclasses import dataclass
from typing import Literal

PROGRAMS: dict[str, Literal["shim", "bridge"]] = {"pursers-shim": "shim", "pursers-wait-bridge": "bridge"}
MODULES: dict[str, Literal["shim", "bridge"]] = {"pursers_shim": "shim", "pursers_wait_server": "bridge"}

_RUNNERS = frozenset({"uvx", "uv", "pipx", "poetry", "hatch", "rye", "pdm", "pixi", "mise", "nix"})
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "fish"})
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_VERSION = re.compile(r"[\[=<>~!@ ].*")


@dataclass(frozen=True, slots=True)
class Start:
    """How a command line starts one of our programs."""

    kind: Literal["shim", "bridge"]
    before: tuple[str, ...]
    """What stays when the program is replaced: `env NAME=VALUE …`."""
    after: tuple[str, ...]
    """The arguments of the program."""
    in_shell: bool = False
    """Whether the program is named in the text of a shell command, which we do not rewrite."""


def start(argv: list[str]) -> Start | None:
    """What a command line starts of ours, or None."""
    at = 0
    while at < len(argv):
        name = os.path.basename(argv[at])
        if name in PROGRAMS:
            return Start(PROGRAMS[name], tuple(argv[:at]), tuple(argv[at + 1 :]))
        if _PYTHON.fullmatch(name):
            return _run_by(argv, at, _by_python(argv, at + 1))
        if name in _RUNNERS:
            return _run_by(argv, at, _by_runner(argv, at + 1))
        if name in _SHELLS:
            return _by_shell(argv)
        if name != "env":
            return None
        at += 1
        while at < len(argv) and _ASSIGNMENT.match(argv[at]):
            at += 1
    return None


def _run_by(argv: list[str], at: int, found: tuple[int, Literal["shim", "bridge"]] | None) -> Start | None:
    return found and Start(found[1], tuple(argv[:at]), tuple(argv[found[0] + 1 :]))


def _by_python(argv: list[str], first: int) -> tuple[int, Literal["shim", "bridge"]] | None:
    """`python -m MODULE` or `python /path/PROGRAM`."""
    for at in range(first, len(argv)):
        if argv[at] == "-m":
            module = argv[at + 1].partition(".")[0] if at + 1 < len(argv) else ""
            return (at + 1, MODULES[module]) if module in MODULES else None
        if not argv[at].startswith("-"):
            name = os.path.basename(argv[at])
            return (at, PROGRAMS[name]) if name in PROGRAMS else None
    return None


def _by_runner(argv: list[str], first: int) -> tuple[int, Literal["shim", "bridge"]] | None:
    """The last of its arguments that names a program of ours: `uvx --from PACKAGE PROGRAM` names it twice."""
    for at in range(len(argv) - 1, first - 1, -1):
        name = os.path.basename(_VERSION.sub("", argv[at]))
        if name in PROGRAMS:
            return at, PROGRAMS[name]
        if argv[at] in MODULES and argv[at - 1] == "-m":
            return at, MODULES[argv[at]]
    return None


def _by_shell(argv: list[str]) -> Start | None:
    for program, kind in PROGRAMS.items():
        if any(program in word for word in argv[1:]):
            return Start(kind, (), (), in_shell=True)
    return None
