"""Waits on many boards some of which do not let the seat in, or no longer."""

from parity.scenarios.acts import BASE, HEAD, created, idle, on, remembered, start_wait, stirred, wait
from parity.script import Blocking, Board, Do, Exists, Finish, Held, Hold, Place, Release, Scenario, Seq

SECOND, SHUT = "second", "shut"

STREET = Place("street", seats=("bob",), further=(Board(SECOND), Board(SHUT, {"ann": None})))

ADMITTED = Do("boss", "board_member_add", {"principal_id": "{principal ann}", "role": "member"})
BACK = (*on("second", ADMITTED, Do("ann", "board_join", {"role": "worker", "allow_takeover": True})),)
REMOVED = Do("boss", "board_member_remove", {"principal_id": "{principal ann}"})

WITH_SHUT = ["$board", "$shut"]
BOTH = ["$board", "$second"]
HEADS = {"$board": HEAD, "$second": Seq("head", board=SECOND)}

SCENARIOS = (
    Scenario(
        "skipped",
        "A board that does not know the seat is left out; its cursor stays as it is.",
        STREET,
        (created("A"), wait(boards=WITH_SHUT, since_seq={"$board": BASE, "$shut": 7})),
    ),
    Scenario(
        "skipped-live",
        "The others are waited for.",
        STREET,
        (
            *stirred(),
            start_wait(boards=WITH_SHUT, since_seq={"$board": HEAD}, timeout_s=6),
            Blocking(),
            created("B"),
            Finish(),
        ),
    ),
    Scenario(
        "all-denied",
        "No board lets the seat in.",
        STREET,
        (idle(boards=["$shut"]), idle(boards=["$shut"], since_seq={"$shut": 7}), idle(boards=["$shut"], since_seq=7)),
    ),
    Scenario(
        "denied-remembered",
        "A refusal counts for a while, also when the board would let the seat in.",
        STREET,
        (
            *on(SHUT, ADMITTED),
            created("A"),
            wait(boards=WITH_SHUT, since_seq={"$board": BASE}),
        ),
    ),
    Scenario(
        "unknown",
        "A board that does not exist is not founded.",
        STREET,
        (
            created("A"),
            wait(boards=["$board", "{board}-mistyped"], since_seq={"$board": BASE}),
            Exists("{board}-mistyped"),
        ),
    ),
    Scenario(
        "unknown-alone",
        "The same without another board.",
        STREET,
        (idle(boards=["{board}-nowhere"]), Exists("{board}-nowhere")),
    ),
    Scenario(
        "projection-fails",
        "The tickets of one board cannot be read: its events come as they are, and the result says so.",
        STREET,
        (
            created("A"),
            *on(SECOND, created("B")),
            Hold("ticket_list"),
            start_wait(
                boards=["$second", "$board"],
                since_seq={"$board": BASE, "$second": Seq("base", board=SECOND)},
                timeout_s=20,
            ),
            Held("ticket_list"),
            *on(SECOND, REMOVED),
            Release("ticket_list"),
            Finish(),
            *BACK,
        ),
    ),
    Scenario(
        "removed",
        "A board takes the membership back while the wait blocks.",
        STREET,
        (
            *stirred("board", SECOND),
            start_wait(boards=BOTH, since_seq=HEADS, timeout_s=6),
            Blocking(("board", SECOND)),
            *on(SECOND, REMOVED, remembered()),
            Finish(),
            *BACK,
        ),
    ),
)
