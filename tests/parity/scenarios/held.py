"""What happens to the work of a worker's seat."""

from parity.scenarios.acts import (
    BASE,
    HEAD,
    annotated,
    approved,
    canceled,
    claimed,
    created,
    idle,
    parked,
    rejected,
    submitted,
    unclaimed,
    wait,
)
from parity.script import Do, Place, Scenario

HELD = Place("held", seats=("bob", "rex"))

MINE = (created("A"), claimed("ann", "A"))
DONE = (*MINE, submitted("ann", "A", "branch_and_commit: hub/topic @ 123"))
ASKED = Do(
    "ann",
    "ticket_request_human",
    {"ticket_id": "$A", "message": "Which greeting?", "kind": "decision"},
    keep={"request": "request_id"},
)
ANSWERED = Do(
    "boss",
    "ticket_human_resolve",
    {"ticket_id": "$A", "request_id": "$request", "action": "accept", "content": {"answer": "Hello"}},
)

SCENARIOS = (
    Scenario("own-acts", "What the seat did itself is no news.", HELD, (*MINE, idle(since_seq=HEAD))),
    Scenario("own-ticket", "How its work came to be is.", HELD, (*MINE, wait(since_seq=BASE))),
    Scenario("held-annotated", "A note on work in hand.", HELD, (*MINE, annotated("boss", "A"), wait(since_seq=BASE))),
    Scenario(
        "held-annotated-omitted",
        "The newest of several notes.",
        HELD,
        (*MINE, annotated("boss", "A"), annotated("boss", "A"), wait()),
    ),
    Scenario(
        "held-taken-away",
        "The admin took the work away.",
        HELD,
        (*MINE, unclaimed("boss", "A"), wait(since_seq=BASE)),
    ),
    Scenario("held-canceled", "Work in hand was canceled.", HELD, (*MINE, canceled("A"), idle(since_seq=BASE))),
    Scenario("held-rejected", "The reviewer sent it back.", HELD, (*DONE, rejected("rex", "A"), wait(since_seq=BASE))),
    Scenario("held-approved", "The reviewer approved it.", HELD, (*DONE, approved("rex", "A"), idle(since_seq=BASE))),
    Scenario("held-parked", "The admin parked what was submitted.", HELD, (*DONE, parked("A"), wait(since_seq=BASE))),
    Scenario(
        "human-answered",
        "A human answered the seat's question.",
        HELD,
        (*MINE, ASKED, ANSWERED, wait(since_seq=BASE)),
    ),
    Scenario(
        "others-annotated",
        "A note on somebody else's work.",
        HELD,
        (created("A"), claimed("bob", "A"), annotated("boss", "A"), idle(since_seq=BASE)),
    ),
)
