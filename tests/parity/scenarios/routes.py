"""Waits on the boards of the project registry: which boards, and where their work is done."""

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
    start_wait,
    stirred,
    submitted,
    wait,
)
from parity.scenarios.identity import UNDECLARED
from parity.script import Blocking, Board, Do, Exists, Finish, Json, Place, Scenario, Seq

SECOND, THIRD = "second", "third"
FURTHER = (Board(SECOND), Board(THIRD))

REGISTRY = Place("registry", further=FURTHER)
REVIEWS = Place("registry-review", "rex", seats=("ann",), further=FURTHER)
HOME_ONLY = Place("only-home", variables={"PURSERS_BOARDS": " Home "}, further=FURTHER)
LISTED = Place("listed", variables={"PURSERS_BOARDS": "{second}, elsewhere"}, further=FURTHER)
ALWAYS = Place("always", variables={"PURSERS_BOARDS": "registry"}, further=FURTHER)

HUB = "https://hub.example"


def project(board: str, folder: str, **fields: Any) -> dict[str, Any]:
    """A project on a board in whose folder seats may work."""
    own = {"board_id": board, "work_dir": f"/srv/{folder}", "status": "active", "work_dir_owner": "fleet"}
    return own | fields


def stored(**projects: dict[str, Any]) -> Do:
    """The admin stores a registry of these projects on the home board."""
    registry = {"schema_version": 1, "projects": projects}
    return Do("boss", "board_state_update", {"key": "project_registry", "value": Json(registry)})


def everywhere(**arguments: Any) -> Any:
    """A wait on the boards of the registry that returns at once."""
    return wait(boards="registry", **arguments)


THREE = stored(
    gamma=project("$third", "gamma"),
    alpha=project("$board", "alpha"),
    beta=project("$second", "beta"),
    delta=project("$third", "delta"),
)
BASES = {"$board": BASE, "$second": Seq("base", board=SECOND), "$third": Seq("base", board=THIRD)}
ON_EACH = (
    *on(SECOND, created("B", target_url="beta/two")),
    *on(THIRD, created("C", target_url="delta/three")),
    created("A"),
)

MISSING = (
    Scenario(
        "no-registry",
        "Without a registry the home board alone is waited for, and the result says so.",
        REGISTRY,
        (created("A"), everywhere(), created("B"), everywhere(since_seq=BASE)),
    ),
    Scenario(
        "no-registry-map",
        "Of a map of cursors the home board's counts.",
        REGISTRY,
        (
            created("A"),
            created("B"),
            everywhere(since_seq={"$second": 1, "$board": Seq("base", 1)}),
            everywhere(since_seq={"$second": 1}),
        ),
    ),
    Scenario(
        "broken-registry",
        "The same with a registry that nobody can read.",
        REGISTRY,
        (
            created("A"),
            Do("boss", "board_state_update", {"key": "project_registry", "value": "[1"}),
            everywhere(since_seq={"$board": BASE}),
            Do("boss", "board_state_update", {"key": "project_registry", "value": Json({"schema_version": 1})}),
            idle(boards="registry", since_seq={"$board": HEAD}),
        ),
    ),
)

BOARDS = (
    Scenario(
        "boards",
        "The home board first, then as stored, each once; new_seq is passed back as it came.",
        REGISTRY,
        (
            THREE,
            *ON_EACH,
            everywhere(since_seq=BASES),
            *on(THIRD, created("D", target_url="gamma")),
            everywhere(since_seq=LAST),
        ),
    ),
    Scenario(
        "boards-omitted",
        "Without a cursor the histories are accounted for by board.",
        REGISTRY,
        (THREE, *ON_EACH, everywhere()),
    ),
    Scenario(
        "boards-inactive",
        "Paused projects and those without seats have no board.",
        REGISTRY,
        (
            stored(
                alpha=project("$board", "alpha"),
                beta=project("$second", "beta", status="paused"),
                gamma=project("$third", "gamma", fleet=False),
            ),
            *ON_EACH,
            everywhere(since_seq=BASES),
        ),
    ),
    Scenario(
        "boards-unknown",
        "A board that does not exist is not founded.",
        REGISTRY,
        (
            stored(alpha=project("$board", "alpha"), beta=project("{board}-elsewhere", "beta")),
            created("A"),
            everywhere(since_seq=BASES),
            Exists("{board}-elsewhere"),
        ),
    ),
    Scenario(
        "only-home",
        "PURSERS_BOARDS=home makes one of every list, without routes.",
        HOME_ONLY,
        (
            THREE,
            *ON_EACH,
            wait(boards=["$second"], since_seq=BASES),
            *on(SECOND, created("D")),
            created("E"),
            everywhere(since_seq=LAST),
        ),
    ),
    Scenario(
        "listed",
        "PURSERS_BOARDS as a list narrows the registry, and not a list of the caller.",
        LISTED,
        (THREE, *ON_EACH, everywhere(since_seq=BASES), wait(boards=["$third"], since_seq=BASES)),
    ),
    Scenario(
        "always",
        "PURSERS_BOARDS=registry makes the registry of every list.",
        ALWAYS,
        (THREE, *ON_EACH, wait(boards=["$third"], since_seq=BASES), created("D"), wait(since_seq=Seq("base", 1))),
    ),
)

TWO_BASES = {"$board": BASE, "$second": Seq("base", board=SECOND)}
TWO_HEADS = {"$board": HEAD, "$second": Seq("head", board=SECOND)}

MAPPED = stored(
    home=project("$board", "alpha", work_dir_owner="operator", repository_url=f"{HUB}/home"),
    alpha=project("$second", "alpha", fleet_clone_dir="/srv/fleet/alpha", work_dir_owner="operator"),
    gamma=project("$second", "gamma", work_dir_owner="operator"),
    delta=project("$second", "delta", repository_url=f"{HUB}/delta"),
    twin=project("$second", "twin", repository_url=f"{HUB}/twins"),
    other=project("$second", "other/twin", repository_url=f"{HUB}/twins"),
)

TARGETS = {
    "A": "alpha/one",
    "B": "nobody/two",
    "C": f"{HUB}/delta",
    "D": f"{HUB}/home",
    "E": f"{HUB}/nobody",
    "F": "http://hub.example/delta",
    "G": "gamma/five",
    "H": "twin/six",
    "I": f"{HUB}/twins",
    "J": "https://[hub/delta",
}
"""One of each kind: routes, and all that leads nowhere."""

ROUTES = (
    Scenario(
        "routes",
        "A worker gets where its work is done, and nothing that it could never claim.",
        REGISTRY,
        (
            MAPPED,
            *on(SECOND, *(created(label, target_url=target) for label, target in TARGETS.items())),
            everywhere(since_seq=TWO_BASES),
        ),
    ),
    Scenario(
        "routes-backlog",
        "Open work without an event has the folder of its board, if it has only one; the operator's is not for seats.",
        REGISTRY,
        (
            MAPPED,
            created("A"),
            *on(SECOND, created("B")),
            everywhere(since_seq=TWO_HEADS),
        ),
    ),
    Scenario(
        "routes-nothing-left",
        "Events that no seat could claim are no reason to return, and their work is not told as backlog next time.",
        REGISTRY,
        (
            MAPPED,
            *on(SECOND, created("A", target_url="nobody/one")),
            idle(boards="registry", since_seq=TWO_BASES),
            idle(boards="registry", since_seq=LAST),
        ),
    ),
    Scenario(
        "routes-held",
        "News of work in hand, the target of which leads nowhere.",
        REGISTRY,
        (
            MAPPED,
            *on(SECOND, created("A", target_url="nobody/one"), claimed("ann", "A"), annotated("boss", "A")),
            idle(boards="registry", since_seq=TWO_BASES),
        ),
    ),
    Scenario(
        "routes-live",
        "Live work has a route, too.",
        REGISTRY,
        (
            MAPPED,
            *stirred("board", SECOND),
            start_wait(boards="registry", since_seq=TWO_HEADS, timeout_s=6),
            Blocking(("board", SECOND)),
            *on(SECOND, created("C", target_url="alpha/one")),
            Finish(),
        ),
    ),
    Scenario(
        "routes-live-nothing-left",
        "Also while the wait blocks; what comes next is one.",
        REGISTRY,
        (
            MAPPED,
            *stirred("board", SECOND),
            start_wait(boards="registry", since_seq=TWO_HEADS),
            Blocking(("board", SECOND)),
            *on(SECOND, created("C", target_url="nobody/one")),
            Finish(),
        ),
    ),
    Scenario(
        "routes-undeclared",
        "A seat whose role Central chose gets events that lead nowhere, with the reason.",
        UNDECLARED,
        (
            created("A", target_url="nobody/two"),
            stored(alpha=project("$board", "alpha", work_dir_owner="operator")),
            created("B"),
            everywhere(since_seq=BASE),
        ),
    ),
    Scenario(
        "routes-review",
        "A reviewer is told why a route leads nowhere.",
        REVIEWS,
        (
            MAPPED,
            *on(
                SECOND,
                *(
                    act
                    for label, target in TARGETS.items()
                    if label != "C"
                    for act in (created(label, target_url=target), claimed("ann", label), submitted("ann", label))
                ),
            ),
            everywhere(since_seq=TWO_BASES),
        ),
    ),
    Scenario(
        "routes-review-claimable",
        "A reviewer that watches open work is treated as a worker.",
        REVIEWS,
        (
            MAPPED,
            *on(SECOND, created("A", target_url="nobody/one"), created("B", target_url="alpha/two")),
            everywhere(since_seq=TWO_BASES, wait_for="claimable"),
        ),
    ),
)

SCENARIOS = MISSING + BOARDS + ROUTES
