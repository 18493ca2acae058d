"""How a worker's wait begins: cursors, history, backlog."""

from parity.scenarios.acts import (
    BASE,
    HEAD,
    LAST,
    canceled,
    caught_up,
    claimed,
    created,
    idle,
    parked,
    remembered,
    unclaimed,
    unparked,
    wait,
)
from parity.script import Place, Scenario, See, Seq

CURSOR = Place("cursor", seats=("bob",))
WORK = Place("work", seats=("bob",))
LONG = Place("long")

BUSY = (created("A"), created("B"), claimed("bob", "A"), unclaimed("bob", "A"), remembered())
"""Five events; two tickets are open afterwards."""

CURSORS = (
    Scenario("quiet-omitted", "Nothing has happened: it times out.", CURSOR, (idle(),)),
    Scenario("quiet-exact", "Nothing has happened since the cursor.", CURSOR, (idle(since_seq=HEAD),)),
    Scenario("ticket-omitted", "A new ticket, read from the seat's own cursor.", CURSOR, (created("A"), wait())),
    Scenario("ticket-exact", "A new ticket after the cursor.", CURSOR, (created("A"), wait(since_seq=BASE))),
    Scenario(
        "cursor-zero",
        "All that there ever was and that this seat may see.",
        CURSOR,
        (created("A"), wait(since_seq=0)),
    ),
    Scenario(
        "history-omitted",
        "Several events: the newest of each ticket that can be worked on, and an account of all.",
        CURSOR,
        (*BUSY, wait()),
    ),
    Scenario(
        "history-exact",
        "The same from a cursor of the caller: nothing is left out.",
        CURSOR,
        (*BUSY, wait(since_seq=BASE)),
    ),
    Scenario(
        "history-rest",
        "Only what came after the cursor.",
        CURSOR,
        (created("A"), canceled("A"), created("B"), wait(since_seq=Seq("base", 2))),
    ),
    Scenario(
        "history-long",
        "More than 200 events are shortened even from a cursor of the caller.",
        LONG,
        (created("A"), created("B"), remembered(times=199), wait(since_seq=BASE), wait()),
    ),
    Scenario(
        "history-200",
        "200 events are not: the caller gets the events as they are.",
        LONG,
        (created("A"), created("B"), remembered(times=198), wait(since_seq=BASE)),
    ),
    Scenario(
        "cursor-of-caller",
        "A caller with a cursor does not move the seat's own.",
        CURSOR,
        (
            created("A"),
            wait(since_seq=BASE),
            idle(since_seq=LAST),
            See("ann", "board_catchup", {"cursor": HEAD, "touch": False, "ack": False}, "acknowledged_cursor"),
        ),
    ),
    Scenario(
        "cursor-ahead",
        "A cursor beyond the end is set back, with a warning.",
        CURSOR,
        (idle(since_seq=Seq("head", 5)),),
    ),
    Scenario(
        "cursor-ahead-work",
        "The same while there is open work.",
        CURSOR,
        (created("A"), wait(since_seq=Seq("head", 5))),
    ),
    Scenario(
        "other-events-exact",
        "Only things that no wait returns.",
        CURSOR,
        (remembered(), idle(since_seq=BASE)),
    ),
    Scenario("other-events-omitted", "The same, accounted for.", CURSOR, (remembered(), idle())),
)

BACKLOGS = (
    Scenario(
        "backlog",
        "Open work older than the cursor is told without a place in the journal.",
        WORK,
        (created("A"), wait(since_seq=HEAD)),
    ),
    Scenario(
        "backlog-once",
        "The next call does not tell of it again.",
        WORK,
        (created("A"), wait(since_seq=HEAD), idle(since_seq=LAST)),
    ),
    Scenario(
        "backlog-changed",
        "It does when something has happened to the ticket.",
        WORK,
        (created("A"), wait(since_seq=HEAD), claimed("bob", "A"), unclaimed("bob", "A"), wait(since_seq=HEAD)),
    ),
    Scenario(
        "backlog-continuation",
        "Work that somebody gave up names who.",
        WORK,
        (created("A"), claimed("bob", "A"), unclaimed("bob", "A"), wait(since_seq=HEAD)),
    ),
    Scenario(
        "backlog-beside-events",
        "Older open work comes behind the events.",
        WORK,
        (created("A"), created("B"), wait(since_seq=Seq("base", 1))),
    ),
    Scenario(
        "backlog-beside-others",
        "Open work is told although only irrelevant things have happened.",
        WORK,
        (created("A"), remembered(), idle(since_seq=Seq("base", 1))),
    ),
    Scenario(
        "backlog-compacted",
        "Open work that a compacted result left out is told by the next call.",
        WORK,
        (created("A"), caught_up("ann"), created("B"), wait(), idle(since_seq=LAST)),
    ),
    Scenario(
        "told-once-exact",
        "What an event told of at the entry is not told again as backlog.",
        WORK,
        (created("A"), wait(since_seq=BASE), idle(since_seq=LAST)),
    ),
    Scenario("told-once-omitted", "The same without cursors.", WORK, (created("A"), wait(), idle())),
)

CHOICES = (
    Scenario("for-me", "A ticket for this seat.", WORK, (created("A", assigned_to="ann"), wait(since_seq=BASE))),
    Scenario(
        "for-me-backlog",
        "The same, older than the cursor.",
        WORK,
        (created("A", assigned_to="ann"), wait(since_seq=HEAD)),
    ),
    Scenario(
        "for-other",
        "A ticket for another seat, which Central would not let this one claim.",
        WORK,
        (created("A", assigned_to="bob"), idle(since_seq=BASE)),
    ),
    Scenario(
        "for-other-backlog",
        "The same, older than the cursor.",
        WORK,
        (created("A", assigned_to="bob"), idle(since_seq=HEAD)),
    ),
    Scenario(
        "for-other-all",
        "A caller who wants everything gets it.",
        WORK,
        (created("A", assigned_to="bob"), wait(since_seq=BASE, only_mine=False)),
    ),
    Scenario("taken", "Somebody was faster.", WORK, (created("A"), claimed("bob", "A"), idle(since_seq=BASE))),
    Scenario(
        "taken-all",
        "A caller who wants everything gets it.",
        WORK,
        (created("A"), claimed("bob", "A"), wait(since_seq=BASE, only_mine=False)),
    ),
    Scenario("gone", "A ticket came and went.", WORK, (created("A"), canceled("A"), idle(since_seq=BASE))),
    Scenario(
        "parked",
        "A ticket was put aside, and taken up again.",
        WORK,
        (
            created("A"),
            parked("A"),
            idle(since_seq=BASE),
            unparked("A"),
            wait(since_seq=LAST),
        ),
    ),
    Scenario(
        "gone-all",
        "A caller who wants everything learns that it went.",
        WORK,
        (created("A"), canceled("A"), idle(since_seq=BASE, only_mine=False)),
    ),
    Scenario(
        "project",
        "Only tickets of one project, its name in any case and with blanks.",
        WORK,
        (
            created("A", target_url="alpha/one"),
            created("B", target_url="beta/two"),
            created("C", target_url="Beta:three"),
            wait(since_seq=BASE, project=" BETA "),
        ),
    ),
    Scenario("project-none", "No such ticket.", WORK, (created("A"), idle(since_seq=BASE, project="gamma"))),
    Scenario(
        "project-backlog",
        "Backlog keeps to the project.",
        WORK,
        (
            created("A", target_url="alpha/one"),
            created("B", target_url="beta/two"),
            wait(since_seq=HEAD, project="beta"),
        ),
    ),
    Scenario("project-blank", "A blank project is none.", WORK, (created("A"), wait(since_seq=BASE, project="  "))),
    Scenario(
        "view-by-name",
        "The view may be named, in any case.",
        WORK,
        (created("A"), wait(since_seq=BASE, wait_for=" Claimable ")),
    ),
)

SCENARIOS = CURSORS + BACKLOGS + CHOICES
