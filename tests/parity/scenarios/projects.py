"""The registry of projects."""

import json
from typing import Any

from parity.scenarios.arguments import WORDS
from parity.script import Call, Do, Place, Scenario

STORED = Place("projects")

GET = Call("project_registry_get")


def project(**fields: object) -> dict[str, object]:
    """What a project must have, and more."""
    return {"board_id": "elsewhere", "work_dir": "/srv/alpha", "status": "active", **fields}


def stored(value: str) -> Do:
    """The admin stores a registry."""
    return Do("boss", "board_state_update", {"key": "project_registry", "value": value})


def got(name: str, about: str, projects: dict[str, Any] | None, **root: object) -> Scenario:
    """This registry is stored, then read."""
    registry = {"schema_version": 1, **({} if projects is None else {"projects": projects}), **root}
    return Scenario(name, about, STORED, (stored(json.dumps(registry)), GET))


SCENARIOS = (
    Scenario("registry-missing", "Nobody has made one.", WORDS, (GET,)),
    got("registry", "What seats need, and nothing else.", {"alpha": project(domain="greeting", public=True)}, note="x"),
    got("registry-empty", "No project yet.", {}),
    got(
        "registry-optional",
        "Optional fields are there if they are stored.",
        {
            "alpha": project(
                work_dir_owner="operator",
                fleet_clone_dir="/srv/fleet/alpha",
                fleet=False,
                repository_url="https://hub.example/alpha",
                integration_ref="main",
            ),
            "beta": project(status="paused", fleet_clone_dir=None, repository_url=None),
        },
    ),
    got(
        "registry-delivery",
        "How work is delivered.",
        {
            "alpha": project(
                delivery_workflow={
                    "mode": "integration",
                    "base_branch": "main",
                    "integration_branch": "integration/alpha",
                    "auto_integrate": False,
                },
            )
        },
    ),
    Scenario("registry-not-json", "It is no JSON.", STORED, (stored("{"), GET)),
    got("registry-no-projects", "A part is missing.", None),
    got("registry-status", "A value that is not allowed.", {"alpha": project(status="asleep")}),
    got("registry-folder", "A folder that is not absolute.", {"alpha": project(work_dir="alpha")}),
    got("registry-version", "Another version.", {}, schema_version=2),
)
