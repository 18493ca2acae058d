"""Offers of the dispatcher: a ticket that Central holds out to one seat for a while (bridge.md §2.6)."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pursersd.rules.events import OFFER_KIND, View


def offer_to(agent_id: str, ticket: Mapping[str, object], view: View) -> dict[str, object] | None:
    """The ticket's offer of this view's kind, if it was made to this seat."""
    offer = ticket.get(f"{OFFER_KIND[view]}_offer")
    return offer if isinstance(offer, dict) and offer.get("agent_id") == agent_id else None


def described(board: str, ticket: Mapping[str, object], offer: Mapping[str, object]) -> dict[str, object]:
    """The `offer` field of an event."""
    skills = ticket.get("skills_required")
    return {
        "ticket_id": ticket.get("ticket_id"),
        "board_id": board,
        "expires_at": offer.get("expires_at"),
        "tier": ticket.get("tier", 2),
        "skills_required": list(skills) if isinstance(skills, list) else [],
    }


def is_live(offer: Mapping[str, object], now_epoch: float) -> bool:
    """Whether the offer has not expired; one without an expiry is live, one that cannot be read is not."""
    epoch = offer.get("expires_at_epoch")
    if isinstance(epoch, int | float) and not isinstance(epoch, bool):
        return epoch > now_epoch
    expires_at = offer.get("expires_at")
    if expires_at is None:
        return True
    try:
        # Python 3.11 reads the suffix Z by itself.
        expires = datetime.fromisoformat(str(expires_at))
    except ValueError:
        return False
    return expires.tzinfo is not None and expires > datetime.fromtimestamp(now_epoch, UTC)
