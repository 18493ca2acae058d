"""A worker's waits on many boards: cursors, events, modes, and boards that do not let it in."""

from parity.scenarios.acts import (
    BASE,
    HEAD,
    LAST,
    annotated,
    canceled,
    caught_up,
    claimed,
    created,
    idle,
    on,
    quiet,
    remembered,
    start_wait,
    wait,
)
from parity.script import Blocking, Board, Denied, Finish, Place, Scenario, Seq

SECOND = "second"
THIRD = "third"
CLOSED = "closed-shop"

MANY = Place("many", seats=("bob",), further=(Board(SECOND), Board(THIRD)))

BOTH = ["$board", "$second"]
ALL_THREE = ["$board", "$second", "$third"]

BASES = {"$board": BASE, "$second": Seq("base", board=SECOND)}
HEADS = {"$board": HEAD, "$second": Seq("head", board=SECOND)}

ENTRY = (
    Scenario(
        "many-quiet",
        "Nothing has happened on either board.",
        MANY,
        (idle(boards=BOTH, since_seq=HEADS),),
    ),
    Scenario(
        "many-tagged",
        "Events of both boards, in the order of the call, each with its board.",
        MANY,
        (
            *on(SECOND, created("B")),
            created("A"),
            wait(boards=BOTH, since_seq=BASES),
        ),
    ),
    Scenario(
        "many-order",
        "The order of the call is that of the answer.",
        MANY,
        (
            created("A"),
            *on(SECOND, created("B")),
            wait(boards=["$second", " $board ", "$second"][:1] + ["$board"], since_seq=BASES),
        ),
    ),
    Scenario(
        "many-passed-back",
        "new_seq is passed back as it came.",
        MANY,
        (
            created("A"),
            *on(SECOND, created("B")),
            wait(boards=BOTH, since_seq=BASES),
            *on(SECOND, created("C")),
            wait(boards=BOTH, since_seq=LAST),
        ),
    ),
    Scenario(
        "many-int",
        "One number is the cursor of every board.",
        MANY,
        (
            created("A"),
            *on(SECOND, created("B")),
            wait(boards=BOTH, since_seq=0, only_mine=True),
        ),
    ),
    Scenario(
        "many-missing",
        "A board that is missing in the map begins at 0; one that is not asked for is left out.",
        MANY,
        (
            created("A"),
            *on(SECOND, created("B")),
            wait(boards=BOTH, since_seq={"$board": BASE, "$third": 0}),
        ),
    ),
    Scenario(
        "many-omitted",
        "Without a cursor each board goes on where the seat is there; the histories are accounted for by board.",
        MANY,
        (
            created("A"),
            *on(SECOND, created("B"), canceled("B"), created("C")),
            wait(boards=ALL_THREE),
        ),
    ),
    Scenario(
        "many-omitted-quiet",
        "The same with nothing to tell.",
        MANY,
        (idle(boards=BOTH),),
    ),
    Scenario(
        "many-one",
        "A list of one board is still a list.",
        MANY,
        (created("A"), wait(boards=["$board"], since_seq={"$board": BASE})),
    ),
    Scenario(
        "many-not-home",
        "The home board need not be among them.",
        MANY,
        (*on(SECOND, created("B")), wait(boards=["$second"], since_seq=Seq("base", board=SECOND))),
    ),
    Scenario(
        "many-ahead",
        "A cursor beyond the end of one board is set back there; the warning names the board.",
        MANY,
        (
            idle(
                boards=BOTH,
                since_seq={"$board": HEAD, "$second": Seq("head", 5, SECOND)},
            ),
        ),
    ),
    Scenario(
        "many-backlog",
        "Open work older than the cursors, once.",
        MANY,
        (
            created("A"),
            *on(SECOND, created("B")),
            wait(boards=BOTH, since_seq=HEADS),
            idle(boards=BOTH, since_seq=LAST),
        ),
    ),
    Scenario(
        "many-backlog-beside-events",
        "An event on one board, open work on the other.",
        MANY,
        (
            created("A"),
            *on(SECOND, created("B")),
            wait(boards=BOTH, since_seq={"$board": HEAD, "$second": Seq("base", board=SECOND)}),
        ),
    ),
    Scenario(
        "many-held",
        "News of work in hand on the other board.",
        MANY,
        (
            *on(SECOND, created("B"), claimed("ann", "B"), annotated("boss", "B")),
            wait(boards=BOTH, since_seq={"$board": HEAD, "$second": Seq("base", 1, SECOND)}),
        ),
    ),
    Scenario(
        "many-project",
        "The project counts on every board.",
        MANY,
        (
            created("A"),
            *on(SECOND, created("B", target_url="beta/two")),
            wait(boards=BOTH, since_seq=BASES, project="beta"),
        ),
    ),
    Scenario(
        "many-name",
        "A name for one call, on every board.",
        MANY,
        (
            created("A"),
            *on(SECOND, created("B")),
            wait(boards=BOTH, since_seq=BASES, agent_name="ann-2"),
        ),
    ),
    Scenario(
        "many-long",
        "More than 200 events on one board are shortened there.",
        MANY,
        (
            created("A"),
            *on(THIRD, created("C"), remembered(times=201)),
            wait(boards=["$board", "$third"], since_seq={"$board": BASE, "$third": Seq("base", board=THIRD)}),
        ),
    ),
)

LIVE = (
    Scenario(
        "many-live",
        "A new ticket on the second board ends the wait.",
        MANY,
        (
            *quiet("A"),
            *on(SECOND, *quiet("B")),
            start_wait(boards=BOTH, since_seq=HEADS),
            Blocking(("board", SECOND)),
            *on(SECOND, created("C")),
            Finish(),
            idle(boards=BOTH, since_seq=LAST),
        ),
    ),
    Scenario(
        "many-live-omitted",
        "The same without cursors.",
        MANY,
        (
            *quiet("A"),
            *on(SECOND, *quiet("B")),
            caught_up("ann"),
            caught_up("ann", SECOND),
            start_wait(boards=BOTH),
            Blocking(("board", SECOND)),
            *on(SECOND, created("C")),
            Finish(),
            idle(boards=BOTH),
        ),
    ),
    Scenario(
        "many-live-others",
        "What is for nobody here moves the cursor of its board.",
        MANY,
        (
            *quiet("A"),
            *on(SECOND, *quiet("B")),
            start_wait(boards=BOTH, since_seq=HEADS),
            Blocking(("board", SECOND)),
            *on(SECOND, remembered()),
            Finish(),
        ),
    ),
    Scenario(
        "many-live-held",
        "News of work in hand on the second board.",
        MANY,
        (
            *quiet("A"),
            *on(SECOND, created("B"), claimed("ann", "B")),
            start_wait(boards=BOTH, since_seq=HEADS),
            Blocking(("board", SECOND)),
            *on(SECOND, annotated("boss", "B")),
            Finish(),
        ),
    ),
    Scenario(
        "many-denied-stream",
        "Where a subscription is denied the board alone is polled.",
        MANY,
        (
            Denied(SECOND),
            *quiet("A"),
            *on(SECOND, *quiet("B")),
            idle(boards=ALL_THREE, since_seq={**HEADS, "$third": Seq("head", board=THIRD)}),
            *quiet("C"),
            *on(SECOND, *quiet("D")),
            start_wait(boards=BOTH, since_seq=HEADS, timeout_s=6),
            Blocking(("board", SECOND)),
            *on(SECOND, created("E")),
            Finish(),
            Denied(SECOND, on=False),
        ),
    ),
)

SCENARIOS = ENTRY + LIVE
