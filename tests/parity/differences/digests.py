"""Differences in the orchestrator's tools."""

from parity.compare import Says
from parity.differences.difference import Difference

UNKNOWN = {"0.is_error": True, "0.data": None}
JOIN = Says("board join failed (", "): ")

DIGESTS = (
    Difference(
        "why-stale",
        "A digest that is not up to date says why: the bridge is silent about a wrong credential for ever.",
        {
            "no-token-resource": {
                "0.result.contents.0.text.subscription.detail": Says("ONBOARD_CENTRAL_TOKEN is not set")
            },
            "no-token-digest": {"0.data.subscription.detail": Says("ONBOARD_CENTRAL_TOKEN is not set")},
            "no-central-resource": {
                "0.result.contents.0.text.subscription.detail": Says("unreachable at <closed url>")
            },
            "no-central-digest": {"0.data.subscription.detail": Says("unreachable at <closed url>")},
        },
    ),
    Difference(
        "canceled-counts",
        "Canceled tickets are counted; the bridge looks for another spelling than Central's and counts none.",
        {"digest-canceled": {"0.data.counts.cancelled": 1}},
    ),
    Difference(
        "new-tickets",
        "Only a ticket that was created in the span of the digest is new; in the bridge any event without a former status "
        "makes one.",
        {"digest-old-ticket": {"2.data.new_tickets": [], "2.data.counts.new": 0}},
    ),
    Difference(
        "whose-record",
        "What is acknowledged and watched belongs to an identity, so Central must have said once who that is.",
        {
            f"{place}-{tool}": UNKNOWN | {"0.text": JOIN}
            for place in ("no-token", "no-central")
            for tool in ("digest_ack", "watch", "unwatch")
        },
    ),
)
