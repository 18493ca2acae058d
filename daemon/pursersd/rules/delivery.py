"""How finished work of a project reaches its repository, as the project registry stores it (bridge.md §1.8).

A workflow is the older, complete form. A policy is one layer of several: see delivery_layers.
"""

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pursersd.rules.stored import Check, Stored, flag, is_trimmed, one_of, optional, text, whole

INTEGRATION_BRANCH = "pursers-integration"
MAX_COMMANDS = 20
MAX_COMMAND = 500
MAX_BRANCH = 200

_NOT_A_BRANCH = re.compile(
    r"""[\x00-\x20\x7f~^:?*\[\\]        # what Git forbids anywhere
      | \.\. | @\{ | \A@\Z
      | \A- | \Arefs/ | \.\Z
      | \A/ | // | /\Z                  # an empty part
      | (\A|/)\. | \.lock(/|\Z)         # a hidden part, or one that Git would take for a lock
    """,
    re.VERBOSE,
)
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_REVISION = re.compile(r"[0-9a-f]{40}")
_ACTIVATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_CRON_ITEM = re.compile(r"(?:\*|([0-9]{1,4300})(?:-([0-9]{1,4300}))?)(?:/([0-9]{1,4300}))?")
"""int() takes no number of more digits."""
_CRON_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_CONTROL = re.compile(r"[\x00-\x1f]")


def workflow(stored: Stored) -> dict[str, object] | None:
    """A delivery workflow with its defaults filled in; null stays null."""
    if stored.value is None:
        return None
    given = stored.shaped(_WORKFLOW, required=("mode",))
    if given["mode"] == "direct":
        if len(given) > 1:
            raise stored.refused("must have no other field when its mode is direct")
        return given
    base = branch(stored.member("base_branch"))
    defaults = {
        "mode": "integration",
        "integration_branch": INTEGRATION_BRANCH,
        "base_branch": base,
        "auto_integrate": False,
        "collection_paused": False,
    }
    complete = {**defaults, **given}
    if str(complete["integration_branch"]).casefold() == base.casefold():
        raise stored.member("base_branch").refused("must be another branch than integration_branch")
    return complete


def policy(stored: Stored) -> dict[str, object] | None:
    """One layer of delivery policy: what it sets and nothing else; null stays null."""
    return None if stored.value is None else stored.shaped(_POLICY)


def activation(stored: Stored) -> dict[str, object] | None:
    """The record that a policy was activated; null stays null."""
    return None if stored.value is None else stored.shaped(_ACTIVATED, required=tuple(_ACTIVATED))


def _is_branch(value: str) -> bool:
    return 1 <= len(value) <= MAX_BRANCH and not _NOT_A_BRANCH.search(value)


def _is_timezone(value: str) -> bool:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # OSError: a folder of zones, or a name too long for a file, where the zones come from the tzdata package.
        return False
    return True


def _is_schedule(value: str) -> bool:
    fields = value.split()
    return (
        is_trimmed(value)
        and len(fields) == len(_CRON_BOUNDS)
        and all(_is_cron(field, low, high) for field, (low, high) in zip(fields, _CRON_BOUNDS, strict=True))
    )


def _is_cron(field: str, low: int, high: int) -> bool:
    return all(_is_cron_item(item, low, high) for item in field.split(","))


def _is_cron_item(item: str, low: int, high: int) -> bool:
    found = _CRON_ITEM.fullmatch(item)
    if found is None:
        return False
    first, last, step = found.groups()
    if step is not None and not 1 <= int(step) <= high - low + 1:
        return False
    return first is None or low <= int(first) <= int(last or first) <= high


def _release_trigger(stored: Stored) -> dict[str, object]:
    trigger = {name: value for name, value in stored.shaped(_TRIGGER, required=("kind",)).items() if value is not None}
    for name in ("timezone", "schedule"):
        if trigger["kind"] == "scheduled" and name not in trigger:
            raise stored.member(name).refused("must be set when kind is scheduled")
        if trigger["kind"] != "scheduled" and name in trigger:
            raise stored.member(name).refused("must not be set unless kind is scheduled")
    return trigger


def _commands(stored: Stored) -> list[str]:
    value = stored.value
    if not isinstance(value, list) or len(value) > MAX_COMMANDS:
        raise stored.refused(f"must be a list of at most {MAX_COMMANDS} commands")
    return list(dict.fromkeys(_command(Stored(item, stored.owner, stored.path)) for item in value))


def _is_command(value: str) -> bool:
    return is_trimmed(value) and len(value) <= MAX_COMMAND and not _CONTROL.search(value)


def _required(stored: Stored) -> bool:
    if stored.value is not True:
        raise stored.refused("must be true: a layer cannot weaken what is required")
    return True


def _activation_version(stored: Stored) -> int:
    # true and 1.0 are taken for 1 here, and only here.
    if stored.value != 1:
        raise stored.refused("must be 1")
    return 1


branch = text("must be a valid short Git branch name", _is_branch)
group_name = text(
    "must be 1 to 80 letters, digits, dots, underscores or dashes, a letter or digit first",
    lambda value: _GROUP.fullmatch(value) is not None,
)
_command = text(
    f"must be commands of at most {MAX_COMMAND} characters without blanks around them or control characters",
    _is_command,
)

_WORKFLOW: dict[str, Check] = {
    "mode": one_of("direct", "integration"),
    "integration_branch": branch,
    "base_branch": branch,
    "auto_integrate": flag,
    "collection_paused": flag,
}

_TRIGGER: dict[str, Check] = {
    "kind": one_of("ready", "manual", "scheduled"),
    "timezone": optional(text("must be an IANA time zone that this machine knows", _is_timezone)),
    "schedule": optional(text("must be a cron schedule of five numeric fields", _is_schedule)),
}

_CHECKS: dict[str, Check] = {
    "test_commands": _commands,
    "required_reviewers": whole(1, 10),
    "independent_review": _required,
    "require_upstream_policies": _required,
}

_POLICY: dict[str, Check] = {
    "mode": one_of("per_ticket_pr", "batch_pr", "branch_only"),
    "mapped_base": branch,
    "integration_branch": branch,
    "final_pr_target": optional(branch),
    "snapshot_branch_prefix": text(
        "must be the beginning of valid branch names, without a slash at its end",
        # The rules for a prefix are those for any branch below it.
        lambda value: _is_branch(f"{value}/example"),
    ),
    "release_trigger": _release_trigger,
    "pr_update": one_of("rolling", "freeze_on_ready"),
    "auto_integrate": flag,
    "collection_paused": flag,
    "final_merge": one_of("manual"),
    "validation": lambda stored: stored.shaped(_CHECKS),
    "conflict_policy": one_of("repair_then_review", "pause"),
}

_ACTIVATED: dict[str, Check] = {
    "schema_version": _activation_version,
    "state": one_of("active"),
    "policy_revision": text(
        "must be 40 lowercase hexadecimal digits", lambda value: _REVISION.fullmatch(value) is not None
    ),
    "activation_id": text(
        "must be 1 to 128 letters, digits, dots, underscores, colons or dashes, a letter or digit first",
        lambda value: _ACTIVATION.fullmatch(value) is not None,
    ),
}
