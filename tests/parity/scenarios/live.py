"""What happens while a wait blocks."""

from parity.scenarios.acts import (
    HEAD,
    LAST,
    annotated,
    canceled,
    caught_up,
    claimed,
    created,
    idle,
    remembered,
    start_wait,
    stirred,
    submitted,
    wait,
)
from parity.scenarios.review import REVIEW
from parity.script import (
    Blocking,
    Board,
    Cancel,
    Denied,
    Finish,
    Held,
    Hold,
    Place,
    Release,
    Scenario,
    Seq,
    Unreachable,
)

LIVE = Place("live", seats=("bob",))
POLL = Place("poll", variables={"PURSERS_WAIT_MODE": "poll"}, further=(Board("second"),))

QUIET = stirred()

MINE = (created("A"), claimed("ann", "A"))

SCENARIOS = (
    Scenario(
        "live-created",
        "A new ticket ends the wait, and the next one does not tell of it again.",
        LIVE,
        (*QUIET, start_wait(since_seq=HEAD), Blocking(), created("B"), Finish(), idle(since_seq=LAST)),
    ),
    Scenario(
        "live-omitted",
        "The same without cursors.",
        LIVE,
        (*QUIET, caught_up("ann"), start_wait(), Blocking(), created("B"), Finish(), idle()),
    ),
    Scenario(
        "live-annotated",
        "A note on work in hand ends the wait.",
        LIVE,
        (*MINE, start_wait(since_seq=HEAD), Blocking(), annotated("boss", "A"), Finish()),
    ),
    Scenario(
        "live-canceled",
        "So does the end of that work.",
        LIVE,
        (*MINE, start_wait(since_seq=HEAD), Blocking(), canceled("A"), Finish()),
    ),
    Scenario(
        "live-others",
        "What is for nobody here does not end it, but moves the cursor.",
        LIVE,
        (*QUIET, start_wait(since_seq=HEAD), Blocking(), remembered(), Finish()),
    ),
    Scenario(
        "live-for-other",
        "A ticket for another seat does not end it.",
        LIVE,
        (*QUIET, start_wait(since_seq=HEAD), Blocking(), created("B", assigned_to="bob"), Finish()),
    ),
    Scenario(
        "live-submitted",
        "A submission ends a reviewer's wait.",
        REVIEW,
        (*MINE, start_wait(since_seq=HEAD), Blocking(), submitted("ann", "A"), Finish()),
    ),
    Scenario(
        "live-polled",
        "A seat that may only poll is told by the next look.",
        POLL,
        (*QUIET, start_wait(since_seq=HEAD, timeout_s=6), Blocking(), created("B"), Finish()),
    ),
    Scenario(
        "denied-stream",
        "Where the subscription is denied the board is polled.",
        LIVE,
        (
            Denied(),
            *QUIET,
            start_wait(since_seq=HEAD, timeout_s=6),
            Blocking(),
            created("B"),
            Finish(),
            Denied(on=False),
        ),
    ),
    Scenario(
        "cut",
        "What happens while the network is away is told when it is back.",
        LIVE,
        (
            *QUIET,
            start_wait(since_seq=HEAD, timeout_s=6),
            Blocking(),
            Unreachable(),
            created("B"),
            Unreachable(False),
            Finish(),
        ),
    ),
    Scenario(
        "away",
        "All connections were cut between two waits.",
        LIVE,
        (
            *QUIET,
            idle(since_seq=HEAD),
            Unreachable(),
            created("B"),
            Unreachable(False),
            wait(since_seq=Seq("head", -1)),
        ),
    ),
    Scenario(
        "canceled-omitted",
        "A call without a cursor that the host canceled loses nothing.",
        LIVE,
        (
            *MINE,
            caught_up("ann"),
            annotated("boss", "A"),
            Hold("ticket_list"),
            start_wait(timeout_s=20),
            Held("ticket_list"),
            Cancel(),
            Release("ticket_list"),
            idle(),
        ),
    ),
)
