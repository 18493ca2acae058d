"""What it means to send a call again after its link or its Central connection broke (design, §6).

One table for all tools; it also says which tools change nothing (`readOnlyHint`) and which can put an end to something
(`destructiveHint`). The decisions below it serve a lost daemon and a lost Central alike: what counts is whether an earlier
sending may have been carried out.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from pursersd.errors import CentralError, ConfigurationError, Overloaded, ProtocolRefused, ToolFailed, Unreachable
from pursersd.rules.windows import LW_CALL


class Resend(StrEnum):
    """What a second sending of the same call means."""

    READ = "read"
    """Nothing: send it freely."""
    WAIT = "wait"
    """Resume with the time that remains and the same cursor."""
    KEYED = "keyed"
    """Nothing, because the call carries an idempotency key: one that we add, or its own arguments."""
    VERIFY = "verify"
    """Look at Central first, then answer."""
    MUTATING = "mutating"
    """A second effect: never, once bytes were sent."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One line of the table."""

    resend: Resend
    why: str
    """Why the class is the right one."""
    target: tuple[str, ...] = ()
    """The arguments that name what a call is about, for a caller who must look at it; `a.b` is the member b of a."""
    check: str = "Look at the board before you call it again."
    """How a caller finds out what became of a call whose outcome is unknown."""
    destructive: bool = False
    """Whether it can put an end to something that others made (`destructiveHint`)."""


_QUESTION = ("ticket_id", "question_id")
_HUMAN = ("board_id", "ticket_id", "request_id")
_WATCHED = "board_watch with tags=[] lists what is watched."
_STILL_WAITING = "board_human_requests lists what still waits for a human: call it again only for what stands there."

TOOLS: Mapping[str, Tool] = {
    "project_registry_get": Tool(Resend.READ, "reads one state key"),
    "board_digest": Tool(Resend.READ, "shows what has been read already", ("boards",)),
    "board_digest_ack": Tool(
        Resend.KEYED,
        "cursors only move up; the key, kept beside them, tells a repeated acknowledgement from a later one",
        ("cursor_map",),
        "board_digest without since begins where the last acknowledgement was.",
    ),
    "board_watch": Tool(
        Resend.KEYED,
        "adds to a set: its own arguments are the key",
        ("ticket_ids", "tags"),
        _WATCHED,
    ),
    "board_unwatch": Tool(
        Resend.KEYED,
        "takes out of a set: its own arguments are the key",
        ("ticket_ids", "tags"),
        _WATCHED,
    ),
    "board_human_request": Tool(
        Resend.VERIFY,
        "a request is resolved once: its record says by whom and how",
        _HUMAN,
        _STILL_WAITING,
        destructive=True,  # its ticket may be canceled by the answer
    ),
    "board_human_requests": Tool(
        Resend.VERIFY,
        "a request is resolved once: its record says by whom and how",
        ("boards", "answer.board_id", "answer.ticket_id", "answer.request_id"),
        _STILL_WAITING,
        destructive=True,
    ),
    "ticket_question_ask": Tool(
        Resend.KEYED,
        "Central knows a question by its message_id; we add one when the caller gave none",
        ("ticket_id", "message_id"),
        "ticket_get shows the questions of the ticket in coordinator_questions.",
    ),
    "board_question_inbox": Tool(
        Resend.READ, "reads; that it counts as activity of the seat is as true of the second one", ("ticket_id",)
    ),
    "ticket_question_answer": Tool(
        Resend.VERIFY,
        "a second answer is recognised, a second accept writes another event: the question says what it has",
        _QUESTION,
        "board_question_inbox shows the state of the question.",
    ),
    "board_question_wait": Tool(Resend.WAIT, "reads from its cursor", ("ticket_id",)),
    "ticket_question_wait": Tool(Resend.WAIT, "reads from its cursor", _QUESTION),
    "a2a_wait": Tool(Resend.WAIT, "reads from its cursor; what it acknowledges, it acknowledges after delivery"),
}

UNKNOWN_TOOL = Tool(Resend.MUTATING, "nothing is known about it", destructive=True)


def tool(name: str) -> Tool:
    """The line of a tool; one that the table does not know is treated as the most dangerous."""
    return TOOLS.get(name, UNKNOWN_TOOL)


def read_only(name: str) -> bool:
    """Whether the tool changes nothing on the board, so that a host may run other calls beside it."""
    return tool(name).resend in (Resend.READ, Resend.WAIT)


class Step(Enum):
    """What to do next with a request to Central."""

    SEND = auto()
    LOOK = auto()
    """Ask Central whether it has been carried out; send it only if not."""
    FAIL = auto()
    """Tell the caller what went wrong: nothing was carried out, or Central's answer says what was."""
    UNKNOWN = auto()
    """Tell the caller that it may have been carried out."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is sent, and the pauses between: seconds, the first and the longest (see rules.backoff)."""

    attempts: int
    first: float
    cap: float


PATIENCE: Mapping[Resend, Patience] = {
    Resend.READ: Patience(3, 0.25, 2.0),
    Resend.WAIT: Patience(3, 0.25, 2.0),
    Resend.KEYED: Patience(3, 0.5, 4.0),
    Resend.VERIFY: Patience(3, 0.5, 4.0),
    Resend.MUTATING: Patience(2, 0.25, 0.25),
}


LONGEST_PAUSE = 30.0
"""Seconds that Central may ask us to wait before a call is sent again."""


def first_step(resend: Resend, *, sent_before: bool) -> Step:
    """How to begin with a call; `sent_before`: an earlier daemon, or this one on an earlier link, may have carried it out."""
    if not sent_before or resend in (Resend.READ, Resend.WAIT, Resend.KEYED):
        return Step.SEND
    return Step.LOOK if resend is Resend.VERIFY else Step.UNKNOWN


def is_loss(error: CentralError) -> bool:
    """Whether Central gave no answer that can be understood; every other error is one."""
    return isinstance(error, Unreachable | Overloaded) or (isinstance(error, ProtocolRefused) and not error.is_answer)


def has_been_waited_for(error: CentralError) -> bool:
    """Whether the call was kept back from a silent Central, for as long as its probe may take: there is nothing to try."""
    return isinstance(error, Unreachable) and error.silent and not error.sent


def next_step(resend: Resend, error: CentralError, *, attempt: int, sent_before: bool) -> Step:
    """What to do after sending number `attempt` (from 1) failed.

    `sent_before`: an earlier sending of the same call may have been carried out, not counting this one.
    """
    if not is_loss(error):
        # Central may refuse a repetition because the first one was carried out, or, before it knows the key again, because
        # what allowed the first one is over.
        return Step.LOOK if resend in (Resend.VERIFY, Resend.KEYED) and sent_before else Step.FAIL
    may_have_run = sent_before or error.sent
    if may_have_run and resend is Resend.MUTATING:
        return Step.UNKNOWN
    if attempt < PATIENCE[resend].attempts and not has_been_waited_for(error):
        return Step.LOOK if may_have_run and resend is Resend.VERIFY else Step.SEND
    changes = resend not in (Resend.READ, Resend.WAIT)
    return Step.UNKNOWN if may_have_run and changes else Step.FAIL


def leaves_open(resend: Resend, error: BaseException | None, *, sent_before: bool) -> bool:
    """Whether a call that failed so before it could be looked into may have been carried out by an earlier sending.

    A refusal of what was asked is an answer; that nobody could be asked, or not as the seat that had called, is none.
    """
    if not sent_before or resend in (Resend.READ, Resend.WAIT):
        return False
    match error:
        case ToolFailed():
            return error.tool == "board_join"
        case ProtocolRefused():
            return not error.is_answer
    return isinstance(error, CentralError | ConfigurationError)


def pause(error: CentralError, usual: float) -> float:
    """Seconds until the next sending: at least as long as Central asked for, though no longer than LONGEST_PAUSE."""
    asked = error.retry_after_s if isinstance(error, Overloaded) else None
    return usual if asked is None else max(usual, min(asked, LONGEST_PAUSE))


def key(conversation: str, request: str | int, name: str, arguments: Mapping[str, object], nth: int = 0) -> str:
    """The idempotency key of a call: the same for a resent one, also from the next daemon, and no other call's.

    `nth` counts the earlier calls of the conversation with this very id, for hosts that use one again. Fits Central's
    grammar of ids (central.md §3).
    """
    parts = [conversation, type(request).__name__, request, name, arguments, nth]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return "pursersd-" + hashlib.sha256(text.encode()).hexdigest()[:40]


def target(name: str, arguments: Mapping[str, object]) -> dict[str, object]:
    """What a call is about: those of its arguments that name it and were given."""
    found = {part: _argument(part, arguments) for part in tool(name).target}
    return {part: value for part, value in found.items() if value is not None}


def unknown_text(name: str, arguments: Mapping[str, object], why: str) -> str:
    """What the model reads when nobody can tell whether its call was carried out."""
    about = target(name, arguments)
    on = f" on {json.dumps(about, ensure_ascii=False)}" if about else ""
    return f"The outcome of {name}{on} is unknown ({LW_CALL}): {why}. Do not just repeat it. {tool(name).check}"


def _argument(part: str, arguments: Mapping[str, object]) -> object:
    name, _, member = part.partition(".")
    value = arguments.get(name)
    if not member:
        return value
    return value.get(member) if isinstance(value, dict) else None
