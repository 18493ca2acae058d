"""What the layers of delivery policy of one project add up to: built-in, registry defaults, its group, its own.

Each overrides the one before, except that test commands add up. A layer alone may be fine and the sum may not
(bridge.md §1.8).
"""

from collections.abc import Mapping

import msgspec

from pursersd.rules.delivery import INTEGRATION_BRANCH, MAX_COMMANDS, branch
from pursersd.rules.stored import Stored, shown

MAIN_BRANCH = "main"
SNAPSHOT_PREFIX = "codex"


def integration_branch(workflow: object) -> str | None:
    """The branch on which a checked workflow collects work, or None if it collects none."""
    integration = _integration(workflow)
    return None if integration is None else integration.integration_branch


def check_effective(
    place: Stored, project: Mapping[str, object], defaults: object, groups: Mapping[str, object]
) -> None:
    """Raise RegistryError, naming `place`, if the layers of a checked project do not add up to a policy that can work."""
    layers = [layer for layer in (defaults, _of_group(place, project, groups), project.get("delivery_policy")) if layer]
    merged = _built_in(place, project)
    commands: set[str] = set()
    for layer in layers:
        merged |= Stored(layer).entries()
        commands.update(msgspec.convert(layer, _Tested).validation.test_commands)
    if len(commands) > MAX_COMMANDS:
        raise place.refused(f"must add up to at most {MAX_COMMANDS} test commands with the layers that it inherits")
    problem = _contradiction(msgspec.convert(merged, _Effective))
    if problem is not None:
        raise place.refused(f"with all that it inherits contradicts itself: {problem}")


class _Integration(msgspec.Struct, frozen=True):
    mode: str
    integration_branch: str = ""
    base_branch: str = ""
    auto_integrate: bool = False


class _Validation(msgspec.Struct, frozen=True):
    test_commands: list[str] = []


class _Tested(msgspec.Struct, frozen=True):
    validation: _Validation = msgspec.field(default_factory=_Validation)


class _Effective(msgspec.Struct, frozen=True):
    mode: str
    mapped_base: str
    integration_branch: str
    snapshot_branch_prefix: str
    final_pr_target: str | None
    auto_integrate: bool


def _integration(workflow: object) -> _Integration | None:
    if workflow is None:
        return None
    found = msgspec.convert(workflow, _Integration)
    return found if found.mode == "integration" else None


def _of_group(place: Stored, project: Mapping[str, object], groups: Mapping[str, object]) -> object:
    group = project.get("delivery_policy_group")
    if not isinstance(group, str):
        return None
    if group not in groups:
        raise Stored(group, place.owner, "delivery_policy_group").refused(
            f"must name a group of delivery_policy_groups; {shown(group)} is none"
        )
    return groups[group]


def _built_in(place: Stored, project: Mapping[str, object]) -> dict[str, object]:
    """The lowest layer: what holds if no layer says otherwise."""
    integration = _integration(project.get("delivery_workflow"))
    if integration is not None:
        return {
            "mode": "branch_only",
            "mapped_base": integration.base_branch,
            "integration_branch": integration.integration_branch,
            "snapshot_branch_prefix": SNAPSHOT_PREFIX,
            "final_pr_target": None,
            "auto_integrate": integration.auto_integrate,
        }
    base = branch(Stored(project.get("integration_ref", MAIN_BRANCH), place.owner, "integration_ref"))
    return {
        "mode": "per_ticket_pr",
        "mapped_base": base,
        "integration_branch": INTEGRATION_BRANCH,
        "snapshot_branch_prefix": SNAPSHOT_PREFIX,
        "final_pr_target": base,
        "auto_integrate": False,
    }


def _contradiction(effective: _Effective) -> str | None:
    """Why the policy cannot work, or None. Branches that differ only in case are one: some file systems say so."""
    base, collected = effective.mapped_base.casefold(), effective.integration_branch.casefold()
    target = effective.final_pr_target
    final = None if target is None else target.casefold()
    collects = effective.mode != "per_ticket_pr"
    if collects and base == collected:
        return "mapped_base and integration_branch must be two branches"
    if effective.mode == "branch_only" and final is not None:
        return "branch_only needs final_pr_target null"
    if effective.mode == "batch_pr" and (final is None or final in (base, collected)):
        return "batch_pr needs a final_pr_target other than mapped_base and integration_branch"
    if effective.mode == "per_ticket_pr" and final != base:
        return "per_ticket_pr needs a final_pr_target equal to mapped_base"
    if effective.mode == "per_ticket_pr" and effective.auto_integrate:
        return "per_ticket_pr cannot have auto_integrate"
    prefix = effective.snapshot_branch_prefix.casefold()
    used = [name for name in (base, collected if collects else None, final) if name is not None]
    if any(_clash(prefix, name) for name in used):
        return "snapshot_branch_prefix must not lie above, below or on a branch that is used"
    return None


def _clash(prefix: str, name: str) -> bool:
    return f"{name}/".startswith(f"{prefix}/") or f"{prefix}/".startswith(f"{name}/")
