"""A reviewer's waits."""

from parity.scenarios.acts import (
    BASE,
    HEAD,
    LAST,
    annotated,
    approved,
    canceled,
    claimed,
    created,
    idle,
    rejected,
    review_claimed,
    review_released,
    submitted,
    wait,
)
from parity.scenarios.arguments import WORDS
from parity.script import Do, Place, Scenario, Until

REVIEW = Place("review", "rex", seats=("ann", "ria"))

WORK = (created("A"), claimed("ann", "A"), submitted("ann", "A", "branch_and_commit: hub/topic @ 123"))


def claim_ttl(seconds: int) -> Do:
    """The admin sets how long a claim lasts."""
    return Do("boss", "board_claim_ttl_set", {"claim_ttl_s": seconds})


BRIEFLY_TAKEN = (*WORK, claim_ttl(1), review_claimed("ria", "A"), claim_ttl(900))
GIVEN_UP = Until(Do("boss", "board_reap"), "released")

SCENARIOS = (
    Scenario("review-none", "Open work is nothing for a reviewer.", REVIEW, (created("A"), idle(since_seq=BASE))),
    Scenario("review", "A submission.", REVIEW, (*WORK, wait(since_seq=BASE))),
    Scenario("review-omitted", "The same without a cursor.", REVIEW, (*WORK, wait())),
    Scenario("review-backlog", "A submission older than the cursor.", REVIEW, (*WORK, wait(since_seq=HEAD))),
    Scenario("review-backlog-once", "It is told once.", REVIEW, (*WORK, wait(since_seq=HEAD), idle(since_seq=LAST))),
    Scenario("review-by-name", "The view may be named.", REVIEW, (*WORK, wait(since_seq=BASE, wait_for="SUBMITTED"))),
    Scenario(
        "review-project",
        "Only one project.",
        REVIEW,
        (*WORK, idle(since_seq=BASE, project="beta"), wait(since_seq=BASE, project="alpha")),
    ),
    Scenario(
        "review-taken", "Another reviewer has it.", REVIEW, (*WORK, review_claimed("ria", "A"), idle(since_seq=BASE))
    ),
    Scenario(
        "review-taken-backlog",
        "The same, older than the cursor.",
        REVIEW,
        (*WORK, review_claimed("ria", "A"), idle(since_seq=HEAD)),
    ),
    Scenario(
        "review-released",
        "The other reviewer gave it back.",
        REVIEW,
        (*WORK, review_claimed("ria", "A"), review_released("ria", "A"), wait(since_seq=BASE)),
    ),
    Scenario(
        "review-lapsed",
        "The lease of the other reviewer ran out.",
        REVIEW,
        (*BRIEFLY_TAKEN, GIVEN_UP, wait(since_seq=BASE)),
    ),
    Scenario(
        "review-approved",
        "The other reviewer finished it.",
        REVIEW,
        (*WORK, approved("ria", "A"), idle(since_seq=BASE)),
    ),
    Scenario(
        "review-held-annotated",
        "A note on what this reviewer has.",
        REVIEW,
        (*WORK, review_claimed("rex", "A"), annotated("boss", "A"), wait(since_seq=BASE)),
    ),
    Scenario(
        "review-held-canceled",
        "What this reviewer has was canceled.",
        REVIEW,
        (*WORK, review_claimed("rex", "A"), canceled("A"), idle(since_seq=BASE)),
    ),
    Scenario(
        "review-again",
        "What this reviewer sent back was submitted again.",
        REVIEW,
        (*WORK, rejected("rex", "A"), claimed("ann", "A"), submitted("ann", "A"), wait(since_seq=BASE)),
    ),
    Scenario(
        "review-claimable",
        "A reviewer may watch open work.",
        REVIEW,
        (created("A"), wait(since_seq=BASE, wait_for="claimable")),
    ),
    Scenario("worker-submitted", "A worker may not wait for submissions.", WORDS, (wait(wait_for="submitted"),)),
    Scenario(
        "worker-submitted-exact",
        "The same with a cursor.",
        WORDS,
        (wait(since_seq=BASE, wait_for="submitted"),),
    ),
)
