"""What a2a_wait refuses before anything else happens, and what it understands."""

from typing import Any

from parity.scenarios.acts import BASE, created, idle, wait
from parity.script import Call, Describe, Handshake, Place, Scenario

WORDS = Place("words")
SHORT = Place("short", variables={"PURSERS_HOST_TIMEOUT_S": "31"})
"""Of a host that lets a call block for one second only."""


def refused(name: str, **arguments: Any) -> Scenario:
    """The arguments are wrong."""
    return Scenario(f"refused-{name}", "The text says what is right.", WORDS, (Call("a2a_wait", arguments),))


SCENARIOS = (
    Scenario("handshake", "Who answers.", WORDS, (Handshake(),)),
    Scenario("describe-wait", "What the host is told of the tool.", WORDS, (Describe("a2a_wait"),)),
    Scenario("describe-registry", "What the host is told of the tool.", WORDS, (Describe("project_registry_get"),)),
    refused("boards-text", boards="alpha"),
    refused("boards-number", boards=5),
    refused("boards-empty", boards=[]),
    refused("boards-blank", boards=["alpha", "  "]),
    refused("boards-of-numbers", boards=[1]),
    refused("wait-for", wait_for="everything"),
    refused("wait-for-null", wait_for=None),
    refused("cursor-negative", since_seq=-1),
    refused("cursor-map-alone", since_seq={"alpha": 1}),
    refused("cursor-map-negative", since_seq={"alpha": -1}, boards=["alpha"]),
    refused("cursor-map-blank", since_seq={" ": 1}, boards=["alpha"]),
    refused("cursor-list", since_seq=[1]),
    refused("cursor-text", since_seq="soon"),
    refused("cursor-fraction", since_seq=1.5),
    refused("timeout-zero", timeout_s=0),
    refused("timeout-negative", timeout_s=-1),
    refused("timeout-long", timeout_s=561),
    refused("timeout-text", timeout_s="soon"),
    refused("timeout-null", timeout_s=None),
    refused("only-mine", only_mine="maybe"),
    refused("project", project=5),
    refused("agent-name", agent_name=5),
    refused("the-first-of-many", boards=[], wait_for="everything", since_seq=-1, timeout_s=0),
    Scenario("cursor-huge", "A cursor that no journal can reach.", WORDS, (idle(since_seq=2**63),)),
    Scenario("cursor-largest", "The largest that Central's database can hold.", WORDS, (idle(since_seq=2**63 - 1),)),
    Scenario("cursor-true", "true is 1.", WORDS, (idle(since_seq=True, project="none"),)),
    Scenario(
        "digits", "Digits in a text are a number.", WORDS, (idle(since_seq="0", timeout_s="1", project="none"),)
    ),
    Scenario("json-in-text", "A text may hold JSON.", WORDS, (created("A"), wait(since_seq=BASE, boards="null"))),
    Scenario("undeclared", "Other arguments are ignored.", WORDS, (created("A"), wait(since_seq=BASE, colour="blue"))),
    Scenario("no-such-tool", "There is no such tool.", WORDS, (Call("a2a_sleep", {}),)),
    Scenario("host-limit-given", "A timeout above the limit of the host is refused.", SHORT, (idle(),)),
    Scenario("host-limit-default", "The default gives way to it.", SHORT, (Call("a2a_wait", {}),)),
)
