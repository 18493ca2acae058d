"""Which command lines are stdio servers of ours: bridges and shims, however they were started (bridge.md §0)."""

import re
from collections.abc import Sequence
from typing import Literal

Kind = Literal["bridge", "shim"]

_PROGRAMS: dict[str, Kind] = {
    "pursers-wait-bridge": "bridge",
    "pursers_wait_server": "bridge",
    "pursers_wait_server.py": "bridge",
    "pursers-shim": "shim",
    "pursers_shim": "shim",
}
"""Console scripts, modules (`python -m`) and scripts."""

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*t?", re.IGNORECASE)
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_MODULE = re.compile(r"-[A-Za-z]*m")
_CODE = re.compile(r"-[A-Za-z]*c")


def server_kind(words: Sequence[str]) -> Kind | None:
    """What serves under this command line; None for anything else.

    uvx and pipx end in the same lines: an interpreter and the console script. Who looks for a server, edits or prints it
    (`grep pursers-shim`), waits for one (`uvx pursers-wait-bridge`) or asks for another thing than to serve
    (`pursers-wait-bridge join`) is none.
    """
    name, arguments = _program(words)
    return None if arguments else _PROGRAMS.get(name)


def hosts_nobody(words: Sequence[str]) -> bool:
    """Whether this is a program of ours or a bridge: what it holds of a server's pipes does not make it a host."""
    return server_kind(words) is not None or _program(words)[0] == "pursersd"


def _program(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """What a command line runs, without its folder, and with which arguments."""
    if not words:
        return "", ()
    name = _base(words[0])
    return _run_by_python(words[1:]) if _PYTHON.fullmatch(name) else (name, words[1:])


def _run_by_python(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The name of what an interpreter with these arguments runs, and its own arguments."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in _WITH_VALUE:
            rest = rest[1:]
        elif _MODULE.fullmatch(word):
            return rest[0].removesuffix(".__main__") if rest else "", rest[1:]
        elif _CODE.fullmatch(word):
            return _imported(rest[0]) if rest else "", rest[1:]
        elif not word.startswith("-"):
            return _base(word), rest
    return "", ()


def _imported(code: str) -> str:
    """The server that a line of Python imports, as launchers write it; empty for none."""
    found = re.match(r"\s*(?:from|import)\s+(pursers_wait_server|pursers_shim)\b", code)
    return found[1] if found else ""


def _base(path: str) -> str:
    return path.rpartition("/")[2]
