"""Which work a wait is for: tickets to claim, or submissions to review (bridge.md §2.4)."""

from pursersd.errors import WaitPolicyError
from pursersd.rules.events import View


def choose(wait_for: str, role: str | None) -> View:
    """The view of a checked `wait_for` for a seat whose role Central confirmed as `role`.

    Raises WaitPolicyError when that role cannot have the view, or must name one.
    """
    if wait_for == "auto":
        if role == "reviewer":
            return "submitted"
        if role == "worker":
            return "claimable"
        raise WaitPolicyError("wait_for='auto' is available only to worker or reviewer seats")
    if wait_for == "submitted":
        if role != "reviewer":
            raise WaitPolicyError("wait_for='submitted' requires board:review authorization")
        return "submitted"
    return "claimable"
