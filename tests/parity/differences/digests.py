"""Differences in the orchestrator's tools."""

from parity.compare import Says
from parity.differences.difference import Difference

TROUBLES = {
    "no-token": Says("ONBOARD_CENTRAL_TOKEN is not set"),
    "wrong-token": Says("HTTP 401"),
    "outsider": Says("'<board>' is not one of this credential's boards"),
    "no-scope": Says("lacks board:review"),
    "no-central": Says("unreachable at <closed url>"),
    "other-instance": Says("Central instance mismatch"),
}

DIGESTS = (
    Difference(
        "why-stale",
        "A digest that is not up to date says why: the bridge is silent about a wrong credential for ever.",
        {f"{name}-digest": {"0.data.subscription.detail": said} for name, said in TROUBLES.items()}
        | {
            f"{name}-resource": {"0.result.contents.0.text.subscription.detail": said}
            for name, said in TROUBLES.items()
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
            f"{name}-{tool}": {"0.is_error": True, "0.data": None, "0.text": said}
            for name, said in TROUBLES.items()
            for tool in ("digest_ack", "watch", "unwatch")
        },
    ),
)
