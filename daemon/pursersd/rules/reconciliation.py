"""Offers found by reading state, put into a result that is being made (bridge.md §2.6, final reconcile).

`backlog.offer_events` makes the events, of the rows of dispatch_my_offers or of ticket_list; here is where they go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pursersd.rules.events import OFFER_MADE, is_synthetic, kind_of, ticket_of

Event = dict[str, object]


@dataclass(frozen=True, slots=True)
class Found:
    """What a wait is about to return. `reason` overrides what the events say; only a single-board wait has one."""

    events: list[Event] = field(default_factory=list)
    reason: str | None = None

    @property
    def needs_offers(self) -> bool:
        """Whether the offers must be looked at once more before this is returned: it tells of none."""
        return not any(kind_of(event) in OFFER_MADE for event in self.events)

    def with_offers(self, offers: Sequence[Event]) -> "Found":
        """The same with `offers` before all else; a cue about an offered ticket gives way to the offer.

        The result is no timeout then, and its reason is that of the first offer: `reconciled`.
        """
        if not offers or not self.needs_offers:
            return self
        offered = {_ticket(offer) for offer in offers}
        rest = (event for event in self.events if not (is_synthetic(event) and _ticket(event) in offered))
        return Found([*offers, *rest])


def _ticket(event: Mapping[str, object]) -> tuple[object, str | None]:
    """The ticket of an event, told from one of the same name on another board."""
    return event.get("board_id"), ticket_of(event)


def as_offers(offers: Sequence[Mapping[str, object]]) -> list[Event]:
    """Reconciled offers as the entry of a multi-board wait tells them: with the reason `offer` (bridge.md §2.4)."""
    return [{**offer, "reason": "offer"} for offer in offers]
