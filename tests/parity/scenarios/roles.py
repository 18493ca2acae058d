"""Views by role: leads, and a seat that is another one on each board."""

from parity.scenarios.acts import BASE, claimed, created, idle, on, submitted, wait
from parity.scenarios.identity import UNDECLARED
from parity.script import Board, Place, Scenario, Seq

LEAD = Place("lead", "cora", further=(Board("audit", {"cora": "reviewer"}),))
CONDUCTOR = Place("conductor", "cora", variables={"PURSERS_ROLE": "orchestrator"}, further=(Board("second"),))

SUBMITTED = on("audit", created("B"), claimed("ann", "B"), submitted("ann", "B"))
AUDIT_BASE = {"$board": BASE, "$audit": Seq("base", board="audit")}

SCENARIOS = (
    Scenario("lead-auto", "A coordinator must choose a view.", LEAD, (idle(), idle(since_seq=BASE))),
    Scenario(
        "lead-auto-many",
        "Also for many boards.",
        LEAD,
        (
            idle(boards=["$board"]),
            idle(boards=["$board"], since_seq=BASE),
            idle(boards=["$board"], since_seq={"$board": BASE}),
        ),
    ),
    Scenario(
        "lead-submitted",
        "It may not wait for submissions.",
        LEAD,
        (idle(wait_for="submitted"), idle(boards=["$board"], since_seq={"$board": BASE}, wait_for="submitted")),
    ),
    Scenario(
        "lead-claimable", "It may watch open work.", LEAD, (created("A"), wait(since_seq=BASE, wait_for="claimable"))
    ),
    Scenario(
        "lead-role-denied",
        "A board that does not allow the role is left out.",
        LEAD,
        (created("A"), wait(boards=["$board", "$audit"], since_seq=AUDIT_BASE, wait_for="claimable")),
    ),
    Scenario(
        "conductor-auto",
        "An orchestrator must choose a view, too.",
        CONDUCTOR,
        (idle(), idle(boards=["$board", "$second"], since_seq={"$board": BASE})),
    ),
    Scenario(
        "conductor-claimable",
        "It may watch open work.",
        CONDUCTOR,
        (created("A"), wait(boards=["$board", "$second"], since_seq={"$board": BASE}, wait_for="claimable")),
    ),
    Scenario(
        "mixed-auto",
        "Where Central chooses the role, each board has its own view.",
        UNDECLARED,
        (created("A"), *SUBMITTED, wait(boards=["$board", "$audit"], since_seq=AUDIT_BASE)),
    ),
    Scenario(
        "mixed-submitted",
        "One board on which the view is not allowed is enough to refuse the call.",
        UNDECLARED,
        (created("A"), *SUBMITTED, idle(boards=["$board", "$audit"], since_seq=AUDIT_BASE, wait_for="submitted")),
    ),
)
