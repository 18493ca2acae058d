"""What it means to send a call again after its link or its Central connection broke (design, §6).

One table for all tools; it also says which tools change nothing (`readOnlyHint`).
"""

from collections.abc import Mapping
from enum import StrEnum


class Resend(StrEnum):
    """What a second sending of the same call means."""

    READ = "read"
    """Nothing: send it freely."""
    WAIT = "wait"
    """Resume with the time that remains and the same cursor."""
    KEYED = "keyed"
    """Nothing, because the call carries an idempotency key."""
    VERIFY = "verify"
    """Look at Central first, then answer."""
    MUTATING = "mutating"
    """A second effect: never, once bytes were sent."""


TOOLS: Mapping[str, Resend] = {
    "a2a_wait": Resend.WAIT,
    "project_registry_get": Resend.READ,
}


def resend_class(tool: str) -> Resend:
    """The class of a tool; one that the table does not know is treated as the most dangerous."""
    return TOOLS.get(tool, Resend.MUTATING)


def read_only(tool: str) -> bool:
    """Whether the tool changes nothing on the board, so that a host may run other calls beside it."""
    return resend_class(tool) in (Resend.READ, Resend.WAIT)


def remaining(timeout_s: float, age_s: float) -> float:
    """Seconds that are left of a wait whose request is `age_s` old; never negative, never more than it began with."""
    return max(0.0, timeout_s - max(0.0, age_s))
