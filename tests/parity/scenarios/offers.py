"""Boards on which Central hands out the work: offers of work and of reviews, and what becomes of them."""

from typing import Any

from parity.scenarios.acts import (
    BASE,
    HEAD,
    LAST,
    annotated,
    claimed,
    created,
    idle,
    on,
    review_claimed,
    review_released,
    start_wait,
    stirred,
    submitted,
    unclaimed,
    wait,
)
from parity.script import Blocking, Board, Do, Finish, Place, Scenario, See, Seq, Until

SECOND = "second"

OFFERS = Place(
    "offers",
    seats=("bob",),
    variables={"PURSERS_TIER_MAX": "2", "PURSERS_SKILLS": "sql, python,sql", "PURSERS_CAN_WORK": "yes"},
    further=(Board(SECOND),),
)
REVIEW_OFFERS = Place(
    "review-offers",
    "rex",
    seats=("ann", "ria"),
    variables={"PURSERS_CAN_REVIEW": "true", "PURSERS_CAN_WORK": "0"},
)

HERE = ["$board"]
BOTH = ["$board", "$second"]
HEADS = {"$board": HEAD, "$second": Seq("head", board=SECOND)}


def trained(who: str, role: str, **capabilities: Any) -> Do:
    """A seat declares what it can do."""
    return Do(
        who, "board_join", {"role": role, "allow_takeover": True, "capabilities": {"host": "rig", **capabilities}}
    )


def lifetime(seconds: int) -> Do:
    """The admin sets how long an offer stands."""
    return Do("boss", "board_dispatch_policy_set", {"offer_ttl_s": seconds})


def is_dispatched(label: str, state: str) -> Until:
    """Central has come so far with the ticket."""
    return Until(
        Do("boss", "ticket_get", {"ticket_id": f"${label}", "view": "full"}), "ticket.dispatch_state.state", state
    )


def withdrawn(who: str, label: str) -> Do:
    """The admin keeps the ticket from a seat."""
    return Do("boss", "ticket_update", {"ticket_id": f"${label}", "exclude_agents": [who]})


BOB = trained("bob", "worker", skills=["rust"], tier_max=3)
BOB_GONE = trained("bob", "worker", can_work=False)
FOR_BOB = {"skills_required": ["rust"], "tier": 3}

WORK = (
    Scenario(
        "offers-declared",
        "What the seat can do is declared when it joins.",
        OFFERS,
        (
            idle(since_seq=HEAD),
            See("boss", "board_status", {}, "agents.agent_name=ann.capabilities"),
        ),
    ),
    Scenario(
        "offer",
        "An offer to this seat; as long as it stands, the next wait tells it again, but not at once for ever.",
        OFFERS,
        (created("A"), wait(since_seq=BASE), wait(since_seq=LAST), idle(since_seq=LAST)),
    ),
    Scenario("offer-omitted", "The same without a cursor.", OFFERS, (created("A"), wait(), wait())),
    Scenario(
        "offer-old",
        "An offer older than the cursor.",
        OFFERS,
        (created("A"), wait(boards=HERE, since_seq=HEAD)),
    ),
    Scenario(
        "offer-after-others",
        "Somebody had the work before.",
        OFFERS,
        (
            created("A"),
            claimed("ann", "A"),
            unclaimed("boss", "A"),
            wait(boards=HERE, since_seq=HEAD),
        ),
    ),
    Scenario(
        "offer-live",
        "An offer ends the wait.",
        OFFERS,
        (
            *stirred("board", SECOND),
            start_wait(boards=BOTH, since_seq=HEADS, timeout_s=6),
            Blocking(("board", SECOND)),
            *on(SECOND, created("C", tier=1, skills_required=["sql"])),
            Finish(),
        ),
    ),
    Scenario(
        "offer-elsewhere",
        "An offer to another seat.",
        OFFERS,
        (
            BOB,
            created("A", **FOR_BOB),
            idle(since_seq=BASE),
            idle(since_seq=HEAD, only_mine=False),
            BOB_GONE,
        ),
    ),
    Scenario(
        "offer-nobody",
        "Nobody can do it.",
        OFFERS,
        (created("A", skills_required=["cobol"]), idle(boards=HERE, since_seq=BASE)),
    ),
    Scenario(
        "offer-project",
        "A caller who waits for one project.",
        OFFERS,
        (created("A"), idle(since_seq=BASE, project="beta"), wait(since_seq=BASE, project="alpha")),
    ),
    Scenario(
        "offer-expired",
        "An offer that nobody took, then everybody's.",
        OFFERS,
        (
            lifetime(1),
            created("A"),
            wait(since_seq=BASE),
            is_dispatched("A", "broadcast"),
            wait(since_seq=LAST),
            idle(since_seq=LAST),
            wait(since_seq=BASE),
            lifetime(120),
        ),
    ),
    Scenario(
        "offer-expired-live",
        "Its end ends the wait.",
        OFFERS,
        (
            lifetime(2),
            created("A"),
            wait(boards=HERE, since_seq=BASE),
            wait(boards=HERE, since_seq=LAST),
            wait(boards=HERE, since_seq=LAST),
            lifetime(120),
        ),
    ),
    Scenario(
        "offer-withdrawn",
        "An offer was taken back.",
        OFFERS,
        (created("A"), wait(since_seq=BASE), withdrawn("ann", "A"), wait(since_seq=LAST)),
    ),
    Scenario(
        "offered-held",
        "News of work in hand.",
        OFFERS,
        (
            created("A"),
            claimed("ann", "A"),
            annotated("boss", "A"),
            wait(boards=HERE, since_seq=BASE),
        ),
    ),
    Scenario(
        "offered-held-live",
        "The same while the wait blocks.",
        OFFERS,
        (
            created("A"),
            claimed("ann", "A"),
            start_wait(boards=HERE, since_seq=HEAD, timeout_s=6),
            Blocking(),
            annotated("boss", "A"),
            Finish(),
        ),
    ),
    Scenario(
        "offer-name",
        "A name for one call has offers of its own.",
        OFFERS,
        (
            idle(since_seq=HEAD, agent_name="ann-2"),
            created("A", exclude_agents=["ann"]),
            idle(since_seq=BASE),
            wait(since_seq=BASE, agent_name="ann-2"),
            wait(since_seq=HEAD, agent_name="ann-2"),
        ),
    ),
)

ANN = trained("ann", "worker", skills=[], tier_max=3)
DONE = (ANN, created("A"), claimed("ann", "A"), submitted("ann", "A"))

REVIEW = (
    Scenario(
        "review-offer",
        "A submission is offered to this reviewer.",
        REVIEW_OFFERS,
        (idle(since_seq=HEAD), *DONE, wait(since_seq=BASE), wait(since_seq=LAST), idle(since_seq=LAST)),
    ),
    Scenario(
        "review-offer-live",
        "It ends the wait.",
        REVIEW_OFFERS,
        (
            *DONE[:-1],
            start_wait(boards=HERE, since_seq=HEAD, timeout_s=6),
            Blocking(),
            DONE[-1],
            Finish(),
        ),
    ),
    Scenario(
        "review-offer-elsewhere",
        "It is offered to the other reviewer, who takes it and gives it back.",
        REVIEW_OFFERS,
        (
            trained("ria", "reviewer", tier_max=3),
            ANN,
            created("A", tier=3),
            claimed("ann", "A"),
            submitted("ann", "A"),
            idle(since_seq=BASE),
            review_claimed("ria", "A"),
            review_released("ria", "A"),
            idle(since_seq=BASE),
            trained("ria", "reviewer", can_review=False),
        ),
    ),
    Scenario(
        "review-offered-held",
        "News of a review in hand.",
        REVIEW_OFFERS,
        # A canceled submission keeps its reviewer busy, so it is given back.
        (*DONE, review_claimed("rex", "A"), annotated("boss", "A"), wait(since_seq=BASE), review_released("rex", "A")),
    ),
    Scenario(
        "review-offer-expired",
        "Nobody took it: it is everybody's.",
        REVIEW_OFFERS,
        (
            *DONE[:-1],
            lifetime(1),
            Do("rex", "board_join", {"role": "reviewer", "allow_takeover": True}),
            DONE[-1],
            is_dispatched("A", "broadcast"),
            wait(since_seq=BASE),
            wait(since_seq=HEAD),
            lifetime(120),
        ),
    ),
)

SCENARIOS = WORK + REVIEW
