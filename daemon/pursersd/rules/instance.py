"""Which Central a conversation insists on (bridge.md §6.1)."""

import re

from pursersd.rules.environment import Reader

_INSTANCE = re.compile(r"CI-[0-9a-f]{64}")


def expected_instance(found: Reader) -> str | None:
    """The instance id that Central must have; None if any will do, or because what was given is none (a problem)."""
    instance_id = found.value("ONBOARD_CENTRAL_INSTANCE_ID") or None
    if instance_id is not None and not _INSTANCE.fullmatch(instance_id):
        found.problem(
            "ONBOARD_CENTRAL_INSTANCE_ID must be CI- and 64 lower-case hex digits",
            "Set it to the instance_id that Central shows under /healthz, or unset it.",
        )
        return None
    if instance_id is not None:
        found.came("instance_id", "ONBOARD_CENTRAL_INSTANCE_ID")
    return instance_id
