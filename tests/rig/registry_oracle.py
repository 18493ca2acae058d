"""What the real bridge makes of a stored project registry, beside what we make of it."""

import json
from collections.abc import Mapping
from typing import Any

from pursers_client.project_registry import parse_project_registry

from pursersd.errors import RegistryError
from pursersd.rules import registry

Json = Any

REVISION = "0123456789abcdef0123456789abcdef01234567"
ACTIVATION = {"schema_version": 1, "state": "active", "policy_revision": REVISION, "activation_id": "policy:1"}
INTEGRATION = {"mode": "integration", "base_branch": "main"}
SCHEDULED = {"kind": "scheduled", "timezone": "UTC", "schedule": "0 9 * * 1-5"}

PLAIN = {"board_id": "alpha", "work_dir": "/w/mill", "status": "active"}
POLICY = {
    "mode": "batch_pr",
    "mapped_base": "main",
    "integration_branch": "dev",
    "final_pr_target": "release/next",
    "snapshot_branch_prefix": "snap/shots",
    "release_trigger": SCHEDULED,
    "pr_update": "freeze_on_ready",
    "auto_integrate": True,
    "collection_paused": False,
    "final_merge": "manual",
    "validation": {
        "test_commands": ["make test", "make lint", "make test"],
        "required_reviewers": 2,
        "independent_review": True,
        "require_upstream_policies": True,
    },
    "conflict_policy": "pause",
}
FULL = {
    "schema_version": 1,
    "projects": {
        "mill": {
            **PLAIN,
            "domain": "work",
            "public": True,
            "git_repo": "x",
            "integration_ref": "refs/heads/old",
            "delivery_workflow": {**INTEGRATION, "collection_paused": True},
            "delivery_policy": {"validation": {"test_commands": ["make test"]}},
            "delivery_policy_group": "team-1",
            "delivery_policy_activation": ACTIVATION,
            "repository_url": "https://git.example/a/b",
            "fleet": False,
            "fleet_clone_dir": "/f/mill",
            "work_dir_owner": "fleet",
        },
        "kiln": {"status": "paused", "work_dir": "/w/kiln", "board_id": "beta", "delivery_policy": POLICY},
        "bare": {**PLAIN, "repository_url": None, "fleet_clone_dir": None, "delivery_workflow": {"mode": "direct"}},
        "null": {**PLAIN, "delivery_workflow": None, "delivery_policy": None, "delivery_policy_activation": None},
    },
    "delivery_policy_groups": {"team-1": {"snapshot_branch_prefix": "s"}, "none": None},
    "delivery_policy_defaults": {"collection_paused": True},
    "delivery_defaults": {"mode": "direct"},
    "comment": "not in the schema",
}

ODD: tuple[Json, ...] = (
    None,
    True,
    False,
    0,
    1,
    1.0,
    -1,
    "",
    " ",
    "x",
    " x",
    "x\n",
    "\x7f",
    "\ud800",
    [],
    ["x"],
    {},
    {"x": 1},
)


def stored(value: str) -> dict[str, object]:
    """Central's answer for a key whose value is this text."""
    return {"ok": True, "scope": "project", "key": "project_registry", "state": {"value": value, "scope": "project"}}


def one(**fields: Json) -> dict[str, Json]:
    """A registry with one project of these fields beside the required ones."""
    return {"schema_version": 1, "projects": {"mill": {**PLAIN, **fields}}}


def bridge(answer: dict[str, object]) -> str | None:
    """What the bridge's tool sends as JSON text, or None if it fails; half a character cannot be sent."""
    try:
        text = json.dumps(parse_project_registry(answer), ensure_ascii=False)
        text.encode()
    except (ValueError, TypeError, AttributeError, OSError, RecursionError):
        return None
    return text


def ours(answer: Mapping[str, object]) -> str | None:
    """What we send, or None if we refuse. The order of the fields counts: hosts show the text."""
    try:
        return json.dumps(registry.validated(answer), ensure_ascii=False)
    except RegistryError:
        return None


def refusal(answer: Mapping[str, object]) -> str:
    """The text of our refusal."""
    try:
        registry.validated(answer)
    except RegistryError as error:
        return str(error)
    raise AssertionError("this registry is not refused")


def refused(document: Json) -> str:
    """The text of our refusal of a document that the bridge refuses, too."""
    answer = stored(json.dumps(document))
    assert bridge(answer) is None, "the bridge takes this registry"
    return refusal(answer)


def same(document: Json, taken: bool | None = None) -> None:
    """Both give the same for a document; `taken` says whether that is a registry."""
    answer = stored(json.dumps(document))
    expected = bridge(answer)
    found = ours(answer)
    assert found == expected, f"we: {found}\nthe bridge: {expected}\nfor: {document!r}"
    assert taken is None or (expected is not None) == taken, "the case does not show what it claims"
