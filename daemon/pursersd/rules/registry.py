"""The project registry of a home board: which board, folder and delivery each project has (bridge.md §1.8, §2.3)."""

import json
import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from pursersd.rules import delivery, delivery_layers
from pursersd.rules.stored import Check, Stored, flag, is_trimmed, one_of, optional, shown, text, whole

STATE_KEY = "project_registry"
"""Where on its home board the registry is stored."""

SCHEMA_VERSION = 1
MAX_GROUPS = 100

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def validated(answer: Mapping[str, object]) -> dict[str, object]:
    """The registry in Central's answer to `board_state_get(key="project_registry")`, checked and normalised.

    Fields that it does not know are left out of a project and of the root. Raises RegistryError. Pure, but for the time
    zone of a scheduled release, which this machine must know.
    """
    registry = _document(answer).shaped(_ROOT, required=("schema_version", "projects"), closed=False)
    _check_delivery(registry)
    return registry


def active_boards(registry: Mapping[str, object], home: str) -> list[str]:
    """The boards of a validated registry on which seats work: home, then those of its active fleet projects, as stored."""
    projects = msgspec.convert(registry, _Routes).projects.values()
    return list(dict.fromkeys([home, *(p.board_id for p in projects if p.status == "active" and p.fleet)]))


class _Route(msgspec.Struct, frozen=True):
    board_id: str
    status: str
    fleet: bool = True


class _Routes(msgspec.Struct, frozen=True):
    projects: dict[str, _Route]


def _document(answer: Mapping[str, object]) -> Stored:
    state = answer.get("state")
    value = state.get("value") if isinstance(state, dict) else None
    if not isinstance(value, str):
        raise Stored(value).refused("must be stored as JSON text")
    try:
        return Stored(json.loads(value))
    except (ValueError, RecursionError) as error:
        # ValueError is also what Python says to a number of more than 4300 digits.
        raise Stored(value).refused("must be JSON") from error


def _projects(stored: Stored) -> dict[str, object]:
    return {name: _project(name, Stored(value, _owner(name))) for name, value in stored.entries().items()}


def _project(name: str, stored: Stored) -> dict[str, object]:
    _project_name(Stored(name, stored.owner, "its name"))
    project = stored.shaped(_PROJECT, required=("board_id", "work_dir", "status"), closed=False)
    for nullable in ("fleet_clone_dir", "repository_url"):
        if nullable in project and project[nullable] is None:
            del project[nullable]
    branch = delivery_layers.integration_branch(project.get("delivery_workflow"))
    if branch is not None:
        project["integration_ref"] = branch
    return project


def _groups(stored: Stored) -> dict[str, object]:
    groups = stored.entries()
    if len(groups) > MAX_GROUPS:
        raise stored.refused(f"must have at most {MAX_GROUPS} groups")
    return {name: _group(name, policy) for name, policy in groups.items()}


def _group(name: str, policy: object) -> object:
    owner = f"delivery policy group {shown(name)}"
    delivery.group_name(Stored(name, owner, "its name"))
    return delivery.policy(Stored(policy, owner))


def _check_delivery(registry: Mapping[str, object]) -> None:
    """Raise RegistryError for the first project whose delivery policy does not hold together."""
    everywhere = "delivery_policy_defaults" in registry
    groups = Stored(registry.get("delivery_policy_groups", {})).entries()
    for name, value in Stored(registry["projects"]).entries().items():
        project = Stored(value, _owner(name)).entries()
        if everywhere or "delivery_policy" in project or "delivery_policy_group" in project:
            place = Stored(None, _owner(name), "delivery_policy")
            delivery_layers.check_effective(place, project, registry.get("delivery_policy_defaults"), groups)


def _owner(name: str) -> str:
    return f"project {shown(name)}"


def _is_ref(value: str) -> bool:
    return is_trimmed(value) and not _CONTROL.search(value)


def _is_repository(value: str) -> bool:
    if not _is_ref(value):
        return False
    try:
        url = urlsplit(value)
    except ValueError:
        return False
    # A password alone has an empty user before it.
    plain = url.username is None and not url.query and not url.fragment
    return url.scheme == "https" and bool(url.netloc) and plain and url.path not in ("", "/")


_project_name = text("must be non-empty and without blanks around it", is_trimmed)
_folder = text("must be an absolute path", os.path.isabs)

_PROJECT: dict[str, Check] = {
    "board_id": text("must be a board id without blanks around it", is_trimmed),
    "work_dir": _folder,
    "status": one_of("active", "paused"),
    "work_dir_owner": one_of("operator", "fleet"),
    "fleet_clone_dir": optional(_folder),
    "fleet": flag,
    "repository_url": optional(
        text("must be the HTTPS URL of a repository, without user, password, query or fragment", _is_repository)
    ),
    "delivery_workflow": delivery.workflow,
    "delivery_policy": delivery.policy,
    "delivery_policy_group": delivery.group_name,
    "delivery_policy_activation": delivery.activation,
    "integration_ref": text("must be a Git ref without blanks around it or control characters", _is_ref),
}

_ROOT: dict[str, Check] = {
    "schema_version": whole(SCHEMA_VERSION, SCHEMA_VERSION),
    "projects": _projects,
    "delivery_defaults": delivery.workflow,
    "delivery_policy_defaults": delivery.policy,
    "delivery_policy_groups": _groups,
}
