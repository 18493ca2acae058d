"""Who waits: names, roles, credentials, and settings that do not fit."""

from collections.abc import Iterator

from parity.scenarios.acts import BASE, annotated, claimed, created, idle, wait
from parity.scenarios.held import HELD
from parity.script import Board, Call, Do, Exists, Handshake, Place, Scenario, Seq, Step

UNDECLARED = Place("undeclared", "moe", seats=("ann",), further=(Board("audit", {"moe": "reviewer"}),))
"""Central chooses the role: another one on each board."""

TROUBLE = {
    "no-token": Place("no-token", variables={"ONBOARD_CENTRAL_TOKEN": None}),
    "wrong-token": Place("wrong-token", variables={"ONBOARD_CENTRAL_TOKEN": "not-a-token"}),
    "outsider": Place("outsider", "eve"),
    "no-scope": Place("no-scope", variables={"PURSERS_ROLE": "reviewer"}),
    "no-central": Place("no-central", variables={"ONBOARD_CENTRAL_URL": "{closed}"}),
    "other-instance": Place("other-instance", variables={"ONBOARD_CENTRAL_INSTANCE_ID": "CI-" + "0" * 64}),
    "no-board": Place(
        "no-board", variables={"ONBOARD_BOARD_ID": "{board}-mistyped", "ONBOARD_CENTRAL_TOKEN": "{unbound}"}
    ),
}
"""Places where nothing can work."""


def _trouble() -> Iterator[Scenario]:
    for name, place in TROUBLE.items():
        calls: tuple[Step, ...] = (idle(), idle(since_seq=Seq("base", 7)))
        if name == "no-board":
            calls = (*calls, Exists("{board}-mistyped"))
        yield Scenario(f"{name}-wait", "What is wrong, and that no cursor moved.", place, calls)
        yield Scenario(f"{name}-registry", "What is wrong.", place, (Call("project_registry_get"),))


SCENARIOS = (
    Scenario("name-new", "A name for one call, never seen before.", HELD, (created("A"), wait(agent_name="ann-2"))),
    Scenario("name-exact", "The same with a cursor.", HELD, (created("A"), wait(agent_name="ann-2", since_seq=BASE))),
    Scenario(
        "name-held",
        "Work in hand belongs to the name.",
        HELD,
        (
            Do("ann", "board_join", {"role": "worker", "allow_takeover": True}, "ann-2"),
            created("A"),
            claimed("ann", "A", "ann-2"),
            annotated("boss", "A"),
            wait(agent_name="ann-2", since_seq=BASE),
            idle(since_seq=Seq("base", 1)),
        ),
    ),
    Scenario("name-empty", "An empty name.", HELD, (wait(agent_name="", since_seq=BASE),)),
    Scenario("name-bad", "A name with a blank.", HELD, (wait(agent_name="two words", since_seq=BASE),)),
    Scenario("name-long", "A name of 81 characters.", HELD, (wait(agent_name="x" * 81),)),
    Scenario(
        "bad-role",
        "A role that does not exist.",
        Place("bad-role", variables={"PURSERS_ROLE": "boss"}),
        (Handshake(), idle()),
    ),
    Scenario("no-role", "Without a role Central decides.", UNDECLARED, (created("A"), wait(since_seq=BASE))),
    *_trouble(),
)
