"""Let Claude Code put an entry into its own state file (docs/decisions/0026-host-files.md).

`~/.claude.json` is written by every running Claude Code, under a lock of theirs. The command `claude mcp add-json` takes part
in that; it keeps all fields of the entry. It gets no secret: its arguments can be seen by others.
"""

import json
import subprocess
from typing import Any

from pursersctl.hosts_known import Known
from pursersctl.hosts_places import Machine
from pursersctl.hosts_report import Scope

TIMEOUT = 20.0  # seconds; it takes about one


def command(known: Known, machine: Machine, scope: Scope, name: str, entry: dict[str, Any]) -> list[str] | None:
    """The command that adds an entry, if the host has one that is better than writing its file."""
    if known.name != "claude-code" or scope == "project":
        return None
    program = machine.program(known.programs)
    return None if program is None else [program, "mcp", "add-json", "-s", scope, name, json.dumps(entry)]


def run(argv: list[str], machine: Machine) -> str | None:
    """Run it; returns why it failed, None if it did not."""
    try:
        done = subprocess.run(
            argv,
            cwd=machine.folder,
            env={**machine.environ, "DISABLE_AUTOUPDATER": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {TIMEOUT:.0f} s"
    except OSError as error:
        return error.strerror or str(error)
    if done.returncode == 0:
        return None
    words = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
    return words[0][:200] if words else f"exit code {done.returncode}"
