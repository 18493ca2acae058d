"""A worker's waits on many boards: cursors, events, modes, and boards that do not let it in."""

from parity.scenarios.acts import (
    BASE,
    HEAD,
    LAST,
    canceled,
    caught_up,
    created,
    idle,
    on,
    remembered,
    start_wait,
    stirred,
    wait,
)
from parity.scenarios.live import POLL
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
        "many-passed-back",
        "Each event has its board, in the order of the call; a board named twice counts once; new_seq is passed back.",
        MANY,
        (
            created("A"),
            *on(SECOND, created("B")),
            wait(boards=["$second", "$board", "$second"], since_seq=BASES),
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
        "many-project",
        "Only one project's tickets, new and old, on every board.",
        MANY,
        (
            *on(SECOND, created("A", target_url="beta/old"), created("B")),
            created("C", target_url="beta/new"),
            created("D"),
            wait(boards=BOTH, since_seq={**BASES, "$second": Seq("head", board=SECOND)}, project="beta"),
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
        "many-name",
        "A name for one call, on every board.",
        MANY,
        (
            created("A"),
            *on(SECOND, created("B")),
            wait(boards=BOTH, since_seq=BASES, agent_name="ann-2"),
        ),
    ),
)

LIVE = (
    Scenario(
        "many-live",
        "A new ticket on the second board ends the wait.",
        MANY,
        (
            *stirred("board", SECOND),
            start_wait(boards=BOTH, since_seq=HEADS, timeout_s=6),
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
            *stirred("board", SECOND),
            caught_up("ann"),
            caught_up("ann", SECOND),
            start_wait(boards=BOTH, timeout_s=6),
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
            *stirred("board", SECOND),
            start_wait(boards=BOTH, since_seq=HEADS),
            Blocking(("board", SECOND)),
            *on(SECOND, remembered()),
            Finish(),
        ),
    ),
    Scenario(
        "many-denied-stream",
        "Where a subscription is denied the board alone is polled.",
        MANY,
        (
            Denied(SECOND),
            *stirred("board", SECOND),
            idle(boards=ALL_THREE, since_seq={**HEADS, "$third": Seq("head", board=THIRD)}),
            *stirred("board", SECOND),
            start_wait(boards=BOTH, since_seq=HEADS, timeout_s=6),
            Blocking(("board", SECOND)),
            *on(SECOND, created("E")),
            Finish(),
            Denied(SECOND, on=False),
        ),
    ),
    Scenario(
        "many-denied-seat",
        "Where only the seat is denied its board is not polled.",
        MANY,
        (
            Denied(what="seat"),
            *stirred(),
            start_wait(boards=["$board"], since_seq=HEAD, timeout_s=6),
            Blocking(),
            created("B"),
            Finish(),
            Denied(what="seat", on=False),
        ),
    ),
    Scenario(
        "many-polled",
        "A seat that may only poll.",
        POLL,
        (
            *stirred("board", SECOND),
            idle(boards=BOTH, since_seq=HEADS),
            *stirred("board", SECOND),
            start_wait(boards=BOTH, since_seq=HEADS, timeout_s=6),
            Blocking(("board", SECOND)),
            *on(SECOND, created("E")),
            Finish(),
        ),
    ),
)

SCENARIOS = ENTRY + LIVE
