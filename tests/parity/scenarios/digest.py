"""The orchestrator's tools and the resource: what a lead is told of, acknowledges, and is notified of."""

from dataclasses import replace
from typing import Any

from parity.scenarios.acts import (
    BASE,
    HEAD,
    annotated,
    approved,
    canceled,
    claimed,
    created,
    on,
    rejected,
    submitted,
)
from parity.scenarios.identity import TROUBLE
from parity.script import (
    Again,
    Ask,
    Board,
    Call,
    Describe,
    Do,
    Heard,
    Json,
    Listen,
    Place,
    Scenario,
    Seq,
)

SECOND = "second"
URI = "board://{board}/digest"
UPDATED = "notifications/resources/updated"

LEAD = Place("lead-digest", "ann", seats=("bob", "rex"), follows=True)
JUDGE = Place("judge-digest", "rex", seats=("bob",), follows=True)
CHIEF = Place("chief-digest", "cora", variables={"PURSERS_ROLE": "orchestrator"}, seats=("bob",), follows=True)
MANY = Place("many-digest", "ann", seats=("bob",), further=(Board(SECOND),), follows=True)
NARROW = Place(
    "narrow-digest", "ann", seats=("bob",), further=(Board(SECOND),), follows=True, variables={"PURSERS_BOARDS": "home"}
)
MODERN = Place("modern-digest", "ann", seats=("bob",), follows=True, modern=True)

HERE = {"$board": BASE}
CURRENT = {"data_status": "current", "cursor_map.{board}": HEAD}


def read(until: dict[str, Any] | None = None, **arguments: Any) -> Again:
    """A digest from the beginning of the scenario that knows all that has happened, and more if it is asked to."""
    return Again("board_digest", {"since": HERE, **arguments}, {**CURRENT, **(until or {})})


def now(**arguments: Any) -> Call:
    """A digest of what is known by now."""
    return Call("board_digest", arguments)


def acknowledged(**arguments: Any) -> Call:
    """board_digest_ack."""
    return Call("board_digest_ack", arguments)


def asked(label: str) -> Do:
    """The holder asks a human."""
    fields = {"message": "Which one? " * 60, "kind": "decision", "requested_schema": SCHEMA}
    return Do("bob", "ticket_request_human", {"ticket_id": f"${label}", **fields}, keep={"R": "request_id"})


SCHEMA = {"type": "object", "properties": {"which": {"type": "string"}}, "required": ["which"]}

STORY = (
    Scenario("digest-nothing", "Nothing has happened.", LEAD, (read(), now(boards=["$board"]))),
    Scenario(
        "digest-story",
        "One ticket, all that happens to it, and as much of that as is asked for.",
        LEAD,
        (
            replace(created("A", tags=["red"]), who="ann"),
            claimed("bob", "A"),
            submitted("bob", "A", "branch_and_commit: linux/feature @ 0123\nseen = twice"),
            rejected("rex", "A"),
            claimed("bob", "A"),
            submitted("bob", "A", "Found it.\nbranch_and_commit: linux/feature @ 4567"),
            approved("rex", "A"),
            read({"tickets.0.status_now": "closed", "tickets.0.review.reviewer": None}),
            *[now(since=HERE, max_transitions_per_ticket=most) for most in (1, 2, 3, 50)],
            now(since=HERE, include_notes_keys=["seen", "summary", "nothing", "branch_and_commit"]),
            now(since=HERE, include_notes_keys=[], group_by="board"),
        ),
    ),
    Scenario(
        "digest-canceled",
        "A ticket that is canceled counts as such.",
        LEAD,
        (created("A"), canceled("A"), read({"tickets.0.status_now": "canceled"})),
    ),
    Scenario(
        "digest-old-ticket",
        "What happens to an old ticket does not make it a new one; annotations, also those of others.",
        JUDGE,
        (
            created("A"),
            read({"tickets.0.title": None}),
            acknowledged(),
            annotated("boss", "A"),
            Again("board_digest", {}, {**CURRENT, "tickets.0.annotation_count": 1}),
        ),
    ),
    Scenario(
        "digest-human",
        "What waits for a human is told until it is acknowledged.",
        LEAD,
        (
            created("A"),
            claimed("bob", "A"),
            asked("A"),
            read({"tickets.0.status_now": "needs_human"}),
            acknowledged(cursor_map={"$board": BASE}),
            now(since=HERE),
            acknowledged(cursor_map={}),
        ),
    ),
    Scenario(
        "digest-acknowledged",
        "What was acknowledged is not told again; places only move up.",
        LEAD,
        (
            created("A"),
            read({"tickets.0.title": None}),
            acknowledged(),
            now(),
            acknowledged(cursor_map={"$board": Seq("base", -1)}),
            created("B"),
            Again("board_digest", {}, {**CURRENT, "tickets.0.title": None}),
            now(since=0, boards="nowhere"),
            now(since=HEAD),
            now(since=Seq("head", 7)),
            now(since={"$board": HEAD, "nowhere": -5}, boards=["{board} ", "$board", "nowhere"]),
        ),
    ),
    Scenario(
        "digest-watched",
        "What is watched comes first, whatever its id is.",
        LEAD,
        (
            created("A", tags=["red"]),
            created("B", tags=["blue", "green"]),
            Call("board_watch", {"tags": "green, nobody ,", "ticket_ids": ["nothing", " more"]}),
            read({"tickets.1.title": None}),
            Call("board_unwatch", {"ticket_ids": "nothing, none"}),
            now(since=HERE),
            Call("board_watch", {"ticket_ids": " x ,y", "tags": [" z "]}),
            Call("board_watch"),
            Call("board_unwatch", {"tags": []}),
            Call("board_unwatch", {"tags": ["z"], "all": True}),
            Call("board_watch", {"tags": Json(["a", "b"])}),
            Call("board_unwatch"),
        ),
    ),
)

REFUSED = tuple(
    Scenario(f"digest-{name}", "An argument that it does not take.", LEAD, (Call(tool, arguments),))
    for name, tool, arguments in (
        ("no-transitions", "board_digest", {"max_transitions_per_ticket": 0}),
        ("no-boards", "board_digest", {"boards": []}),
        ("blank-board", "board_digest", {"boards": ["a", " "]}),
        ("boards-number", "board_digest", {"boards": 7}),
        ("since-text", "board_digest", {"since": "yesterday"}),
        ("since-map", "board_digest", {"since": {"a": "b"}}),
        ("ack-text", "board_digest_ack", {"cursor_map": {"a": "b"}}),
        ("watch-number", "board_watch", {"tags": 5}),
        ("unwatch-number", "board_unwatch", {"ticket_ids": [1], "all": "perhaps"}),
    )
)

PROJECTS = {
    "schema_version": 1,
    "projects": {"two": {"board_id": "$second", "work_dir": "/srv/two", "status": "active"}},
}
STORED = Do("boss", "board_state_update", {"key": "project_registry", "value": Json(PROJECTS)})
BOTH_HEADS = {"cursor_map.{second}": Seq("head", board=SECOND), "tickets.1.title": None}

BOARDS = (
    Scenario(
        "digest-many",
        "The boards that the registry names, from their places; new ones when it changes.",
        MANY,
        (
            created("A"),
            STORED,
            *on(SECOND, created("B")),
            Again(
                "board_digest",
                {"since": {"$board": BASE, "$second": Seq("base", board=SECOND)}},
                {**CURRENT, **BOTH_HEADS},
            ),
            acknowledged(),
            now(),
            now(since=0, boards=["$second"], include_notes_keys=[]),
            now(since=HERE, boards="{board}, {second}"),
        ),
    ),
    Scenario(
        "digest-narrow",
        "PURSERS_BOARDS keeps the registry's boards out.",
        NARROW,
        (created("A"), STORED, *on(SECOND, created("B")), read({"tickets.0.title": None})),
    ),
)

TEMPLATES = Ask("resources/templates/list")
READ = Ask("resources/read", {"uri": URI})

RESOURCE = (
    Scenario(
        "digest-resource",
        "The digest of one board as JSON text; a board that nobody knows is empty.",
        LEAD,
        (
            TEMPLATES,
            Ask("resources/list"),
            created("A"),
            read({"tickets.0.title": None}),
            acknowledged(cursor_map={"$board": BASE}),
            READ,
            Ask("resources/read", {"uri": "board://nowhere/digest"}),
            Ask("resources/read", {"uri": "board://{board}/journal"}),
            Ask("resources/subscribe", {"uri": URI}),
            acknowledged(),
        ),
    ),
    Scenario(
        "digest-told",
        "The host is told of news, without having asked for it.",
        LEAD,
        (read(), created("A"), read({"tickets.0.title": None}), Heard(UPDATED)),
    ),
    Scenario(
        "digest-told-chief",
        "An orchestrator is told without any call.",
        CHIEF,
        (created("A"), Heard(UPDATED), read({"tickets.0.title": None})),
    ),
    Scenario(
        "digest-modern",
        "The other era: tools, resource, and a subscription.",
        MODERN,
        (
            Listen((URI, "board://{board}/journal")),
            TEMPLATES,
            created("A"),
            read({"tickets.0.title": None}),
            Heard(UPDATED),
            acknowledged(cursor_map={"$board": BASE}),
            READ,
            Ask("resources/read", {"uri": "board://{board}/other"}),
            Ask("resources/subscribe", {"uri": URI}),
            now(max_transitions_per_ticket=-1),
            acknowledged(),
            Call("board_watch", {"tags": "a"}),
            Call("board_unwatch"),
        ),
    ),
)

ALONE = tuple(
    scenario
    for name, place in TROUBLE.items()
    if name != "no-board"
    for scenario in (
        Scenario(f"{name}-resource", "Without Central a digest says that it is stale.", place, (READ,)),
        Scenario(f"{name}-digest", "The same.", place, (now(boards="a", since=3),)),
        *(
            Scenario(f"{name}-{tool}", "Nobody knows yet whose record it is.", place, (Call(f"board_{tool}"),))
            for tool in ("digest_ack", "watch", "unwatch")
        ),
    )
)

DESCRIBED = tuple(
    Scenario(f"describe-{tool.replace('_', '-')}", "What the model reads of it.", LEAD, (Describe(f"board_{tool}"),))
    for tool in ("digest", "digest_ack", "watch", "unwatch")
)

SCENARIOS = (*STORY, *REFUSED, *BOARDS, *RESOURCE, *ALONE, *DESCRIBED)
