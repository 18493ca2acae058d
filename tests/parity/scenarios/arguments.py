"""What a2a_wait refuses before anything else happens, and what it understands."""

from typing import Any

from parity.scenarios.acts import BASE, created, idle, wait
from parity.script import Call, Describe, Handshake, Place, Scenario

WORDS = Place("words")
SHORT = Place("short", variables={"PURSERS_HOST_TIMEOUT_S": "31"})
"""Of a host that lets a call block for one second only."""

MOSAIC = Place("mosaic", variables={"PURSERS_HOST": "mosaic"})
"""Of a host that nobody knows."""


def refused(name: str, *calls: dict[str, Any]) -> Scenario:
    """The arguments are wrong."""
    about = "The text says what is right."
    return Scenario(f"refused-{name}", about, WORDS, tuple(Call("a2a_wait", arguments) for arguments in calls))


SCENARIOS = (
    Scenario("handshake", "Who answers.", WORDS, (Handshake(),)),
    Scenario("describe-wait", "What the host is told of the tool.", WORDS, (Describe("a2a_wait"),)),
    Scenario("describe-registry", "What the host is told of the tool.", WORDS, (Describe("project_registry_get"),)),
    refused(
        "boards",
        {"boards": "alpha"},
        {"boards": 5},
        {"boards": []},
        {"boards": ["alpha", "  "]},
        {"boards": [1]},
    ),
    refused("wait-for", {"wait_for": "everything"}, {"wait_for": None}),
    refused(
        "cursor",
        {"since_seq": -1},
        {"since_seq": {"alpha": 1}},
        {"since_seq": {"alpha": -1}, "boards": ["alpha"]},
        {"since_seq": {" ": 1}, "boards": ["alpha"]},
        {"since_seq": [1]},
        {"since_seq": "soon"},
        {"since_seq": 1.5},
    ),
    refused(
        "timeout",
        {"timeout_s": 0},
        {"timeout_s": -1},
        {"timeout_s": 561},
        {"timeout_s": "soon"},
        {"timeout_s": None},
    ),
    refused("others", {"only_mine": "maybe"}, {"project": 5}, {"agent_name": 5}),
    refused(
        "in-order",
        {"boards": [], "wait_for": "everything", "since_seq": -1, "timeout_s": 0},
        {"wait_for": "everything", "since_seq": -1, "timeout_s": 0},
        {"since_seq": -1, "timeout_s": 0},
    ),
    Scenario("cursor-huge", "A cursor that no journal can reach.", WORDS, (idle(since_seq=2**63),)),
    Scenario("cursor-largest", "The largest that Central's database can hold.", WORDS, (idle(since_seq=2**63 - 1),)),
    Scenario("cursor-true", "true is 1.", WORDS, (idle(since_seq=True, project="none"),)),
    Scenario("digits", "Digits in a text are a number.", WORDS, (idle(since_seq="0", timeout_s="2", project="none"),)),
    Scenario("json-in-text", "A text may hold JSON.", WORDS, (created("A"), wait(since_seq=BASE, boards="null"))),
    Scenario("undeclared", "Other arguments are ignored.", WORDS, (created("A"), wait(since_seq=BASE, colour="blue"))),
    Scenario("no-such-tool", "There is no such tool.", WORDS, (Call("a2a_sleep", {}),)),
    Scenario("host-limit-given", "A timeout above the limit of the host is refused.", SHORT, (idle(),)),
    Scenario("host-unknown", "How long an unknown host lets a call block.", MOSAIC, (idle(timeout_s=1000),)),
    Scenario("host-limit-default", "The default gives way to it.", SHORT, (Call("a2a_wait", {}),)),
)
