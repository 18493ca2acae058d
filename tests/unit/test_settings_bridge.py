"""settings against the bridge's own functions, variable by variable: how long a call may block, what is declared, which role and
name. They are asked in one process of the installed bridge, which reads its environment anew for each question."""

import itertools
import json
import subprocess
import sys
from typing import Any

import pytest

from pursersd.rules.hosts import TIMEOUTS_S
from pursersd.settings import resolve
from rig import processes

ORACLE = """
import contextlib, io, json, os, sys
import agent_naming
with contextlib.redirect_stderr(io.StringIO()):
    import pursers_wait_server as bridge

def said(ask):
    try:
        return ask()
    except ValueError as error:
        return {"refused": str(error)}

clean = dict(os.environ)
for line in sys.stdin:
    environ = json.loads(line)
    os.environ.clear()
    os.environ.update(clean | environ)
    with contextlib.redirect_stderr(io.StringIO()):
        print(json.dumps({
            "block_limit_s": bridge.host_block_limit_s(),
            "progress_every_s": bridge._progress_cadence_s(),
            "platform": bridge._agent_platform(),
            "capabilities": said(bridge._seat_capabilities),
            "role": said(bridge._declared_role),
            "agent_name": said(lambda: agent_naming.resolve_agent_name(
                environ.get("ONBOARD_AGENT_NAME", "pursers-wait-bridge"), environ.get("ONBOARD_AGENT_INSTANCE"))),
        }))
"""

Environ = dict[str, str]

HOSTS: list[Environ] = [
    {"PURSERS_HOST": host, "PURSERS_HOST_TIMEOUT_S": timeout}
    for host, timeout in itertools.product(
        ["", *TIMEOUTS_S, " Claude-Desktop "], ["", "2", "31", "60", "90", "120", "240", "310", "1800", "1", "x", "-5"]
    )
]
CAPABILITIES: list[Environ] = [
    {"PURSERS_HOST": "zed", name: value}
    for name, values in {
        "PURSERS_TIER_MAX": ("", "1", " 2 ", "3", "4", "0", "two"),
        "PURSERS_SKILLS": ("", "b,a", " , ", "a,a"),
        "PURSERS_CAN_WORK": ("", "1", "TRUE", "yes", "on", "0", "false", "No", "off", "maybe"),
        "PURSERS_CAN_REVIEW": ("", "true", "off", "2"),
        "PURSERS_MODEL": ("", " m "),
        "PURSERS_PROVIDER": ("", "p"),
    }.items()
    for value in values
]
ROLES: list[Environ] = [
    {"PURSERS_ROLE": role} for role in ("", "worker", " Reviewer", "coordinator", "ORCHESTRATOR", "boss")
]
NAMES: list[Environ] = [
    {**({} if name is None else {"ONBOARD_AGENT_NAME": name}), "ONBOARD_AGENT_INSTANCE": instance}
    for name, instance in itertools.product(
        [None, "", "ann", "a b", " a", "x" * 80, "x" * 81, "-._"], ["", "2", "a b", " "]
    )
]
ALL = [*HOSTS, *CAPABILITIES, *ROLES, *NAMES]


@pytest.fixture(scope="module")
def oracle() -> list[dict[str, Any]]:
    """What the bridge says to each."""
    done = subprocess.run(
        [sys.executable, "-c", ORACLE],
        input="".join(json.dumps(environ) + "\n" for environ in ALL),
        capture_output=True,
        text=True,
        check=True,
        env=processes.environment({"HOME": "/nonexistent"}),
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def ours(environ: Environ) -> dict[str, Any]:
    """The same of us, in the oracle's shape."""
    found = resolve({"ONBOARD_CENTRAL_TOKEN": "t", **environ}, lambda path: "")
    refusals = [problem.partition(". ")[0] for problem in found.problems]

    def said(value: Any, *variables: str) -> Any:
        mine = [text for text in refusals if any(name in text for name in variables)]
        return {"refused": mine[0]} if mine else value

    return {
        "block_limit_s": found.host.block_limit_s,
        "progress_every_s": found.host.progress_every_s,
        "platform": found.host.platform,
        "capabilities": said(found.capabilities, "PURSERS_TIER", "PURSERS_CAN"),
        "role": said(found.role, "PURSERS_ROLE"),
        "agent_name": said(found.agent_name, "ONBOARD_AGENT", "resolved agent name"),
    }


def test_each_value_means_what_it_means_to_the_bridge(oracle: list[dict[str, Any]]) -> None:
    """All but an unknown host: docs/compatibility.md, unknown-host."""
    assert len(oracle) == len(ALL) > 100
    differing = [(e, ours(e), theirs) for e, theirs in zip(ALL, oracle, strict=True) if ours(e) != theirs]
    assert not differing, differing[:3]
    assert {found["block_limit_s"] for found in oracle} >= {1, 30, 60, 200, 270, 560, 21_540}
    assert sum("refused" in str(found) for found in oracle) > 20
