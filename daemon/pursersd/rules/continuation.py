"""What the next holder of a ticket can build on (bridge.md §2.6, field `continuation`)."""

import re
from collections.abc import Mapping

_BRANCH = re.compile(r"^\s*branch_and_commit\s*:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


def continuation(ticket: Mapping[str, object]) -> dict[str, object] | None:
    """Who held the ticket before and the branch of the newest submission that names one; None if neither is known."""
    branch = _branch(ticket)
    name, agent_id = ticket.get("last_claimed_by"), ticket.get("last_claimed_by_agent_id")
    if not name and not agent_id and not branch:
        return None
    holder = {
        "agent_name": name,
        "agent_id": agent_id,
        "principal_id": ticket.get("last_claimed_by_principal_id"),
        "claimed_at": ticket.get("last_claimed_at"),
        "release_reason": ticket.get("last_release_reason"),
    }
    abandoned = ticket.get("abandoned_count")
    return {
        "prior_holder": holder if name or agent_id else None,
        "branch_and_commit": branch,
        "abandoned_count": abandoned if isinstance(abandoned, int) else 0,
    }


def _branch(ticket: Mapping[str, object]) -> str | None:
    history = ticket.get("submission_history")
    for submission in reversed(history if isinstance(history, list) else []):
        notes = submission.get("notes") if isinstance(submission, dict) else None
        found = _BRANCH.search(notes) if isinstance(notes, str) else None
        if found:
            return found[1].strip()
    return None
