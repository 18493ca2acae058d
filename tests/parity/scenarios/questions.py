"""Coordinator questions: asked by a worker or a reviewer, answered by the coordinator, waited for by both; in both eras."""

from dataclasses import replace
from typing import Any

from parity.scenarios.acts import (
    BASE,
    HEAD,
    LAST,
    approved,
    canceled,
    claimed,
    created,
    review_claimed,
    stirred,
    submitted,
    unclaimed,
)
from parity.scenarios.identity import TROUBLE
from parity.scenarios.review import REVIEW
from parity.script import Blocking, Call, Cancel, Do, Finish, Json, Place, Scenario, Seq, Start, Step

ASKER = Place("asker", seats=("cora", "bob"), modern=True)
CRITIC = Place("critic", member="moe", variables={"PURSERS_ROLE": "reviewer"}, seats=("cora", "ann"))
COORDINATOR = Place("coordinator", member="cora", seats=("ann",))


def owner(*seats: str) -> Do:
    """These coordinate the board's project from now on."""
    value = Json({"$board": [f"{{seat {seat}}}" for seat in seats]})
    return Do("boss", "board_state_update", {"key": "project_coordinators", "value": value})


OWNED = owner("cora")
HELD = (OWNED, created("A"), claimed("ann", "A"))
"""A ticket whose holder may ask, and a coordinator to be asked."""

QUESTION = {"ticket_id": "$A", "message": "Which greeting?", "kind": "decision"}
ONE = {"ticket_id": "$A", "question_id": "$Q"}


def asked(label: str, who: str = "ann", ticket: str = "A", seat: str | None = None, **fields: Any) -> Do:
    """Somebody asks a question, to be named by its label."""
    question = {**QUESTION, "ticket_id": f"${ticket}", **fields}
    return Do(who, "ticket_question_ask", question, seat, keep={label: "question_id"})


def answered(label: str = "Q", ticket: str = "A", **fields: Any) -> Do:
    """The coordinator answers, or does what the fields say."""
    binding = {"host_binding": "{binding cora}"}
    answer = {"ticket_id": f"${ticket}", "question_id": f"${label}", "message": "A warm one."}
    return Do("cora", "ticket_question_answer", {**answer, **binding, **fields})


def ask(**arguments: Any) -> Call:
    return Call("ticket_question_ask", {**QUESTION, **arguments})


def inbox(**arguments: Any) -> Call:
    return Call("board_question_inbox", arguments)


def answer(**arguments: Any) -> Call:
    return Call("ticket_question_answer", {**ONE, **arguments})


def arrival(since_seq: Seq | int = BASE, **arguments: Any) -> Call:
    return Call("board_question_wait", {"since_seq": since_seq, "timeout_s": 5, **arguments})


def reply(since_seq: Seq | int = BASE, **arguments: Any) -> Call:
    return Call("ticket_question_wait", {**ONE, "since_seq": since_seq, "timeout_s": 5, **arguments})


def started(call: Call) -> Start:
    return Start(call.tool, call.arguments)


NOTHING = {"timeout_s": 1}
"""For a wait that has nothing to return."""

OVERRIDES = ("token", "host_binding", "agent_name", "board_id", "project")


def undeclared(call: Call) -> tuple[Call, ...]:
    """The call with each of the arguments by which somebody might want to be somebody else."""
    return tuple(replace(call, arguments={**call.arguments, name: "x"}) for name in OVERRIDES)


def asker(name: str, about: str, *steps: Step) -> Scenario:
    return Scenario(name, about, ASKER, steps)


def coordinator(name: str, about: str, *steps: Step) -> Scenario:
    return Scenario(name, about, COORDINATOR, steps)


ASKING = (
    asker("ask", "The question is at Central, and the ticket goes on.", *HELD, ask(), ask(message="And to whom?")),
    asker("ask-key", "A message_id of the caller's makes a repetition none.", *HELD, *[ask(message_id="m-1")] * 2),
    asker(
        "ask-key-of-others",
        "It is the key of whoever used it first.",
        *HELD,
        unclaimed("ann", "A"),
        claimed("bob", "A"),
        asked("Q", "bob", message_id="m-1"),
        unclaimed("bob", "A"),
        claimed("ann", "A"),
        ask(message_id="m-1"),
    ),
    asker("ask-in-reply", "One question leads to another.", *HELD, asked("Q"), ask(in_reply_to="$Q")),
    asker(
        "ask-refused",
        "Central says what is wrong.",
        *HELD,
        created("B"),
        ask(ticket_id="$B"),
        ask(ticket_id="TK-none"),
        ask(ticket_id="no id"),
        ask(message=""),
        ask(message="x" * 5000),
        ask(message_id="no id"),
        ask(message_id=""),
        ask(in_reply_to="CQ-none"),
        canceled("A"),
        ask(),
    ),
    asker("ask-nobody", "Nobody coordinates the project.", *HELD, owner(), ask(), OWNED),
    asker(
        "ask-arguments",
        "What the schema says is checked first.",
        ask(ticket_id="TK-none", kind="gossip"),
        ask(ticket_id="TK-none", kind=None),
        ask(ticket_id="TK-none", message_id=5),
        Call("ticket_question_ask"),
        ask(ticket_id="TK-none", kind="gossip", token="x"),
    ),
    asker("ask-undeclared", "Nobody asks in another name.", *undeclared(ask(ticket_id="TK-none"))),
    asker(
        "asker-is-none",
        "A worker answers no questions.",
        inbox(),
        answer(ticket_id="TK-none", question_id="CQ-none"),
        arrival(ticket_id="TK-none"),
        *undeclared(inbox())[:1],
        *undeclared(arrival())[:1],
    ),
    Scenario(
        "critic-asks",
        "A reviewer asks with its lease, and gets the answer.",
        CRITIC,
        (
            Do("boss", "board_member_set_role", {"principal_id": "{principal moe}", "role": "reviewer"}),
            *HELD,
            submitted("ann", "A"),
            ask(),
            review_claimed("moe", "A"),
            ask(),
            asked("Q", "moe", message="Really?"),
            answered(),
            reply(),
            approved("moe", "A"),
            ask(),
        ),
    ),
)

WAITING_FOR_ANSWERS = (
    asker("reply", "The answer is in the history.", *HELD, asked("Q"), answered(), reply(), reply(HEAD, **NOTHING)),
    asker(
        "reply-live",
        "The answer comes while the wait blocks.",
        *HELD,
        asked("Q"),
        started(reply(HEAD)),
        Blocking(),
        answered(),
        Finish(),
    ),
    asker(
        "reply-none",
        "An acceptance is no answer, nor is the answer to another question; the cursor moves all the same.",
        *HELD,
        asked("Q"),
        asked("R", message="And to whom?"),
        answered(action="accept"),
        answered("R"),
        reply(**NOTHING),
        reply(LAST, timeout_s=0),
    ),
    asker(
        "reply-ended",
        "The ticket is canceled while its asker waits.",
        *HELD,
        asked("Q"),
        started(reply(HEAD, timeout_s=3)),
        Blocking(),
        canceled("A"),
        Finish(),
    ),
    asker(
        "reply-not-mine",
        "Only the very seat that asked waits for the answer.",
        *HELD,
        Do("ann", "board_join", {"role": "worker", "allow_takeover": True}, "ann-2"),
        created("B"),
        claimed("ann", "B", "ann-2"),
        asked("Q", ticket="B", seat="ann-2"),
        reply(ticket_id="$B"),
        reply(question_id="CQ-none"),
        reply(ticket_id="TK-none"),
        reply(ticket_id="no id"),
    ),
    asker(
        "reply-cursor",
        "A cursor that no journal has.",
        *HELD,
        asked("Q"),
        reply(-1),
        reply(Seq("head", 100)),
        Call("ticket_question_wait", {"ticket_id": "TK-none", "question_id": "CQ-none"}),
        *undeclared(reply())[:1],
    ),
    asker(
        "reply-canceled",
        "The host wants no answer any more; the next call has it.",
        *HELD,
        asked("Q"),
        started(reply(HEAD)),
        Blocking(),
        Cancel(),
        answered(),
        reply(),
    ),
)

ANSWERING = (
    coordinator(
        "inbox",
        "The questions of the coordinator's project.",
        *HELD,
        asked("Q"),
        asked("R", kind="approval"),
        asked("S", kind="information"),
        answered("R"),
        answered("S", action="accept", message=None),
        inbox(),
        inbox(state="open"),
        inbox(state="accepted"),
        inbox(state="answered"),
        inbox(ticket_id="$A", limit=1),
        inbox(ticket_id="TK-none"),
        inbox(limit=0),
    ),
    coordinator(
        "answer",
        "A question is accepted, then answered, and that stays.",
        *HELD,
        asked("Q"),
        answer(action="accept"),
        answer(message="A warm one."),
        answer(message="A cold one."),
        answer(action="accept"),
    ),
    coordinator(
        "answer-refused",
        "Central says what is wrong.",
        *HELD,
        asked("Q"),
        answer(),
        answer(message=""),
        answer(message="x" * 5000),
        answer(question_id="CQ-none", message="No."),
        answer(ticket_id="TK-none", message="No."),
        answer(ticket_id="no id", message="No."),
    ),
    coordinator(
        "coordinator-of-nothing",
        "Others own the project.",
        *HELD,
        asked("Q"),
        owner("boss"),
        inbox(),
        answer(message="Not mine."),
        arrival(**NOTHING),
        OWNED,
    ),
    coordinator(
        "answer-arguments",
        "What the schema says is checked first; nobody answers in another name.",
        Call("ticket_question_answer", {"ticket_id": "TK-none"}),
        Call("ticket_question_answer", {"ticket_id": "TK-none", "question_id": "CQ-none", "action": "release"}),
        inbox(state="lost"),
        inbox(limit="many"),
        *undeclared(inbox()),
        *undeclared(Call("ticket_question_answer", {"ticket_id": "TK-none", "question_id": "CQ-none"})),
    ),
    coordinator(
        "coordinator-is-none",
        "A coordinator holds no ticket.",
        ask(ticket_id="TK-none"),
        reply(ticket_id="TK-none", question_id="CQ-none"),
        *undeclared(reply(ticket_id="TK-none", question_id="CQ-none"))[:1],
    ),
)

WAITING_FOR_QUESTIONS = (
    coordinator(
        "arrival",
        "Questions one by one, also answered ones, then none.",
        *HELD,
        asked("Q"),
        asked("R", message="And to whom?"),
        answered(),
        arrival(),
        arrival(LAST),
        arrival(LAST, **NOTHING),
    ),
    coordinator(
        "arrival-live",
        "A question comes while the wait blocks.",
        *HELD,
        *stirred(),
        started(arrival(HEAD)),
        Blocking(),
        asked("Q"),
        Finish(),
    ),
    coordinator(
        "arrival-ticket",
        "Those of one ticket.",
        *HELD,
        created("B"),
        claimed("ann", "B"),
        asked("Q"),
        asked("R", ticket="B"),
        arrival(ticket_id="$B"),
        arrival(ticket_id="TK-none", timeout_s=0),
    ),
    coordinator(
        "arrival-cursor",
        "A cursor that no journal has.",
        *HELD,
        arrival(-1),
        arrival(Seq("head", 100)),
        Call("board_question_wait"),
        *undeclared(arrival())[:1],
    ),
    coordinator(
        "arrival-canceled",
        "The host wants no answer any more; the next call has it.",
        *HELD,
        *stirred(),
        started(arrival(HEAD)),
        Blocking(),
        Cancel(),
        asked("Q"),
        arrival(),
    ),
)

SHORT_OF_SCOPES = Scenario(
    "ask-without-scope",
    "A reviewer whose credential may only read and review asks nothing.",
    REVIEW,
    (OWNED, created("A"), claimed("ann", "A"), submitted("ann", "A"), review_claimed("rex", "A"), ask()),
)

TROUBLED = tuple(
    Scenario(
        f"{name}-questions",
        "What is wrong.",
        place,
        (
            ask(ticket_id="TK-none"),
            inbox(),
            answer(ticket_id="TK-none", question_id="CQ-none"),
            arrival(0),
            reply(0, ticket_id="TK-none", question_id="CQ-none"),
        ),
    )
    for name, place in TROUBLE.items()
)

OFTEN = {
    *("ask", "ask-key", "ask-refused", "ask-undeclared", "asker-is-none"),
    *("reply", "reply-live", "reply-ended", "reply-cursor"),
    *("inbox", "answer", "answer-refused", "coordinator-is-none"),
    *("arrival", "arrival-live", "arrival-cursor"),
}
"""What the suite plays, too: each tool, and what it refuses, in one era. The bridge is slow with these tools."""

HERE = tuple(
    replace(scenario, extended=scenario.id not in OFTEN)
    for scenario in (*ASKING, *WAITING_FOR_ANSWERS, *ANSWERING, *WAITING_FOR_QUESTIONS)
)


def in_the_other_era(scenario: Scenario) -> Scenario:
    """The same with a host of the other era."""
    place = replace(scenario.place, name=f"{scenario.place.name}-other", modern=not scenario.place.modern)
    return replace(scenario, id=f"{scenario.id}-other", place=place, extended=True)


SCENARIOS = (*HERE, *map(in_the_other_era, HERE), SHORT_OF_SCOPES, *TROUBLED)
