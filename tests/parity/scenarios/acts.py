"""What the cast does and what the conversation under test calls, in one word each."""

from dataclasses import replace
from typing import Any

from parity.script import HOME, Call, Do, Seq, Start

BASE = Seq("base")
HEAD = Seq("head")
LAST = Seq("last")

TICKET = {
    "title": "Say hello",
    "description": "Made for a comparison.",
    "scope": "READ-ONLY",
    "required_fields": ["summary"],
    "target_url": "alpha/greeting",
}


def wait(**arguments: Any) -> Call:
    """a2a_wait that has something to return at once."""
    return Call("a2a_wait", {"timeout_s": 5, **arguments})


def idle(**arguments: Any) -> Call:
    """a2a_wait that has nothing to return, at least on one side. The bridge begins slowly with many boards."""
    return Call("a2a_wait", {"timeout_s": 4 if "boards" in arguments else 2, **arguments})


def start_wait(**arguments: Any) -> Start:
    """a2a_wait that blocks while the script goes on."""
    return Start("a2a_wait", {"timeout_s": 3, **arguments})


def created(label: str, **fields: Any) -> Do:
    """The admin creates a ticket, to be named by its label."""
    return Do("boss", "ticket_create", {**TICKET, **fields}, keep={label: "ticket.ticket_id"})


def claimed(who: str, label: str, seat: str | None = None) -> Do:
    """A worker claims the ticket."""
    return Do(who, "ticket_claim", {"ticket_id": f"${label}"}, seat)


def unclaimed(who: str, label: str) -> Do:
    """The claim is given up by its holder, or taken away by the admin."""
    return Do(who, "ticket_unclaim", {"ticket_id": f"${label}"})


def submitted(who: str, label: str, notes: str = "No surprises.") -> Do:
    """The holder submits the ticket."""
    return Do(who, "ticket_submit", {"ticket_id": f"${label}", "summary": "Done.", "notes": notes})


def annotated(who: str, label: str) -> Do:
    """Somebody leaves a note on the ticket."""
    return Do(who, "ticket_annotate", {"ticket_id": f"${label}", "text": "Have a look."})


def canceled(label: str) -> Do:
    """The admin cancels the ticket."""
    return Do("boss", "ticket_cancel", {"ticket_id": f"${label}", "reason": "Not needed."})


def parked(label: str) -> Do:
    """The admin parks the ticket."""
    return Do("boss", "ticket_update", {"ticket_id": f"${label}", "parked": True})


def unparked(label: str) -> Do:
    """The admin takes it up again."""
    return Do("boss", "ticket_update", {"ticket_id": f"${label}", "parked": False})


def review_claimed(who: str, label: str) -> Do:
    """A reviewer takes the submission."""
    return Do(who, "ticket_review_claim", {"ticket_id": f"${label}"})


def review_released(who: str, label: str) -> Do:
    """The reviewer gives the submission back."""
    return Do(who, "ticket_review_release", {"ticket_id": f"${label}", "reason": "No time."})


def approved(who: str, label: str) -> Do:
    """A reviewer approves: the ticket is closed."""
    return Do(who, "ticket_review", {"ticket_id": f"${label}", "verdict": "approve", "review_notes": "Good."})


def rejected(who: str, label: str) -> Do:
    """A reviewer sends the ticket back: it is open again."""
    verdict = {"verdict": "reject", "review_notes": "Not yet.", "fix_instructions": "Greet everybody."}
    return Do(who, "ticket_review", {"ticket_id": f"${label}", **verdict})


def remembered(times: int = 1) -> Do:
    """The admin writes project memories: events for everybody that no wait returns."""
    memory = {"title": "A thought", "content": "For everybody.", "scope": "project"}
    return Do("boss", "memory_write", memory, times=times)


def caught_up(who: str, board: str = HOME) -> Do:
    """The seat acknowledges all that has happened."""
    return Do(who, "board_catchup", {"cursor": Seq("head", -1, board), "limit": 1, "ack": True}, board=board)


def on(board: str, *acts: Do) -> tuple[Do, ...]:
    """The same on another board."""
    return tuple(replace(act, board=board) for act in acts)


def stirred(*boards: str) -> tuple[Do, ...]:
    """Something has happened on these boards, nothing is to be done."""
    return tuple(replace(remembered(), board=board) for board in boards or (HOME,))
