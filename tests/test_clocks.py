"""No decision depends on the wall clock, which people and machines set: who reads it is listed, with the reason."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(file for folder in ("shim", "daemon", "cli") for file in (ROOT / folder).rglob("*.py"))

WALL = {"time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime", "ctime", "strftime"}

ALLOWED = {
    "daemon/pursersd/clock.py": "compares it with the other clocks: a jump is a sleep",
    "daemon/pursersd/central/served_time.py": "stands in until Central's first answer; for people, how wrong ours is",
    "daemon/pursersd/state/doors.py": "when a door was stored, for people",
    "shim/pursers_shim/dial.py": "how closely starts follow one another: a clock that is set makes them forgotten",
    "daemon/pursersd/service_start.py": "the same, for a service",
    "daemon/pursersd/control.py": "the same, for people",
    "daemon/pursersd/installed.py": "when the package was replaced, for people",
    "daemon/pursersd/central/account.py": "statistics are of calendar days",
    "daemon/pursersd/state/stats.py": "the same",
    "daemon/pursersd/events.py": "when something happened, for people",
    "cli/pursersctl/stats.py": "the same",
    "cli/pursersctl/sweep_servers.py": "how old a process is, for people",
    "daemon/pursersd/state/names.py": "which name was used last, over restarts of the machine: the oldest is forgotten first",
}


def reads_wall_clock(file: Path) -> bool:
    """Whether the module names a function of `time` or `datetime` that tells the wall clock."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in WALL:
            base = node.value
            name = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
            if name in ("time", "datetime", "date"):
                return True
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            return True  # a bare name would hide which clock it is
    return False


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_who_reads_the_wall_clock_is_listed(file: Path) -> None:
    assert reads_wall_clock(file) is (str(file.relative_to(ROOT)) in ALLOWED)
