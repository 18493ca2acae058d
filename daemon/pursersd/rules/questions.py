"""Coordinator questions: who may ask and answer, what has become of one, and what a wait for one returns (bridge.md §4.1)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from pursersd.errors import ArgumentError, NotAllowed
from pursersd.rules.arguments import MAX_CURSOR
from pursersd.rules.events import FINISHED, TICKET_STATUS_CHANGED, kind_of, text, ticket_of

Json = dict[str, object]

ASKERS = frozenset({"worker", "reviewer"})
COORDINATORS = frozenset({"coordinator"})

ASKED = "coordinator_question_asked"
ACCEPTED = "coordinator_question_accepted"
RELEASED = "coordinator_question_released"
ANSWERED = "coordinator_question_answered"


class Verdict(IntEnum):
    """What has become of a question, the strongest last: of several things that are true the strongest counts
    (RB-AUX-009). That the asker's turn or call ended is none of them."""

    UNCHANGED = 0
    PENDING = 1
    ACCEPTED = 2
    WITHDRAWN = 3
    TICKET_ENDED = 4
    ANSWERED = 5

    @property
    def is_final(self) -> bool:
        """Whether nothing is left to wait for."""
        return self >= Verdict.WITHDRAWN


_SAID = {ASKED: Verdict.PENDING, RELEASED: Verdict.PENDING, ACCEPTED: Verdict.ACCEPTED, ANSWERED: Verdict.ANSWERED}
_STATES = {"open": Verdict.PENDING, "accepted": Verdict.ACCEPTED, "answered": Verdict.ANSWERED}


@dataclass(frozen=True, slots=True)
class Asked:
    """One question by its ids."""

    ticket_id: str
    question_id: str


def verdict(events: Iterable[Mapping[str, object]], asked: Asked) -> Verdict:
    """The strongest of what a batch of journal events says of the question, in whatever order they came."""
    return max((_said(event, asked) for event in events), default=Verdict.UNCHANGED)


def standing(ticket: Mapping[str, object] | None, asked: Asked) -> Verdict:
    """What the ticket, as it is now, says of the question; None: there is no such ticket any more."""
    if ticket is None:
        return Verdict.TICKET_ENDED
    question = question_of(ticket, asked.question_id)
    of_question = Verdict.WITHDRAWN if question is None else _STATES.get(str(question.get("state")), Verdict.PENDING)
    has_ended = ticket.get("status") in FINISHED
    return max(of_question, Verdict.TICKET_ENDED) if has_ended else of_question


def first(events: Iterable[Mapping[str, object]], asked: Asked, wanted: Verdict) -> Mapping[str, object] | None:
    """The first event that says this of the question."""
    return next((event for event in events if _said(event, asked) is wanted), None)


def question_of(ticket: Mapping[str, object], question_id: str) -> Json | None:
    """A question of a ticket, as its asker and its coordinator may see it."""
    questions = ticket.get("coordinator_questions")
    return question_in(questions if isinstance(questions, list) else (), question_id)


def question_in(questions: Iterable[object], question_id: str) -> Json | None:
    """The question with this id."""
    found = (public(one) for one in questions if isinstance(one, dict) and one.get("question_id") == question_id)
    return next(found, None)


def asked_with(ticket: Mapping[str, object], message_id: object, agent_id: str) -> Json | None:
    """The question that this seat asked with this key."""
    questions = ticket.get("coordinator_questions")
    for one in questions if isinstance(questions, list) else ():
        if isinstance(one, dict) and one.get("message_id") == message_id and is_by(one, agent_id):
            return public(one)
    return None


def public(question: Mapping[str, object]) -> Json:
    """A question without what binds it to a credential."""
    return {name: value for name, value in question.items() if name != "binding"}


def is_by(question: Mapping[str, object] | None, agent_id: str) -> bool:
    """Whether this seat asked the question."""
    asked_by = question.get("asked_by") if question is not None else None
    return isinstance(asked_by, dict) and asked_by.get("agent_id") == agent_id


def require_role(role: str, allowed: frozenset[str], operation: str) -> None:
    """Raise NotAllowed with the bridge's text unless the seat has one of these roles (bridge.md §1.5)."""
    if role not in allowed:
        raise NotAllowed(f"{operation} requires role {' or '.join(sorted(allowed))}")


def check_cursor(since_seq: int) -> None:
    """Raise ArgumentError unless the number can be a place in a journal."""
    if not 0 <= since_seq <= MAX_CURSOR:
        raise ArgumentError(f"since_seq must be an integer from 0 to {MAX_CURSOR}; received {since_seq}")


def ahead(since_seq: int, board: str, head: int) -> ArgumentError:
    """The refusal of a cursor that the journal has not reached."""
    return ArgumentError(
        f"since_seq {since_seq} is ahead of the journal of board {board}, which ends at {head}. "
        f"Call again with a new_seq of that board, or with since_seq={head} for what comes from now on."
    )


def clamped(timeout_s: int, block_limit_s: int) -> int:
    """How long a wait may block: the caller's wish, within what the host allows (bridge.md §4.1)."""
    return max(1, min(timeout_s, block_limit_s))


def repeated(question: Json) -> Json:
    """What Central answers to a repeated question or answer: nothing happened this time (central.md §8)."""
    return {
        "ok": True,
        "duplicate": True,
        "question": question,
        "event": None,
        "release_events": [],
        "implicitly_renewed": [],
        "scrub_audit": None,
    }


def has_been_done(question: Mapping[str, object] | None, action: str, agent_id: str) -> bool:
    """Whether the question is as `action` of this seat would leave it, so that sending it again would be too much."""
    if question is None:
        return False
    accepted_by = question.get("accepted_by")
    is_accepted = isinstance(accepted_by, dict) and accepted_by.get("agent_id") == agent_id
    return question.get("state") == "answered" or (
        action == "accept" and question.get("state") == "accepted" and is_accepted
    )


def wait_result(
    new_seq: int,
    *,
    event: Mapping[str, object] | None = None,
    question: Json | None = None,
    ended: Verdict | None = None,
    warnings: Iterable[Json] = (),
) -> Json:
    """What a question wait returns (bridge.md §4.1). With neither a question nor `ended` its time was up.

    `ended` is ours: why no answer can come any more.
    """
    is_over = ended is not None
    result: Json = {
        "ok": True,
        "timed_out": question is None and not is_over,
        "new_seq": new_seq,
        "event": None if event is None else dict(event),
        "question": question,
        "delivery": "no_matching_event" if question is None or is_over else "protocol_delivered",
        "model_continuation": "host_managed",
    }
    if ended is not None:
        result["ended"] = {"code": ended.name.lower(), "message": _ENDED[ended]}
    told = list(warnings)
    return result | ({"warnings": told} if told else {})


_ENDED = {
    Verdict.TICKET_ENDED: "The ticket was finished before the question was answered. Go on without the answer.",
    Verdict.WITHDRAWN: "The ticket has this question no more. Ask again if you still need the answer.",
}


def _said(event: Mapping[str, object], asked: Asked) -> Verdict:
    if ticket_of(event) != asked.ticket_id:
        return Verdict.UNCHANGED
    kind = kind_of(event)
    if kind == TICKET_STATUS_CHANGED and event.get("status_to") in FINISHED:
        return Verdict.TICKET_ENDED
    if text(event.get("question_id")) != asked.question_id:
        return Verdict.UNCHANGED
    return _SAID.get(kind, Verdict.UNCHANGED)
