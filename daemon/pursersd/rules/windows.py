"""The named lossy windows: where something can be lost, what that is, and what brings it back (RB-LSE-001).

Docs: docs/reliability.md has them too, with those that cannot happen any more. Texts for a caller name the window.
"""

from dataclasses import dataclass

LW_STDIO = "LW-STDIO"
LW_LINK = "LW-LINK"
LW_CALL = "LW-CALL"
LW_RESYNC = "LW-RESYNC"
LW_COMPACT = "LW-COMPACT"
LW_KEEPALIVE = "LW-KEEPALIVE"
LW_PRESENCE = "LW-PRESENCE"
LW_OVERFLOW = "LW-OVERFLOW"
LW_DIGEST = "LW-DIGEST"
LW_ELICIT = "LW-ELICIT"


@dataclass(frozen=True, slots=True)
class Window:
    """One of them. `counter` is its name in `pursersctl status --json`."""

    name: str
    counter: str
    lost: str
    """What may be lost."""
    recovery: str
    """What brings it back all the same."""


WINDOWS = {
    window.name: window
    for window in (
        Window(
            LW_STDIO,
            "results_undelivered",
            "results that were ready when their conversation ended",
            "Nobody is left to ask for them. Events that were in one come again to the seat's next wait without since_seq.",
        ),
        Window(
            LW_LINK,
            "links_cut",
            "answers on their way to a shim that took nothing, and whose link was cut",
            "The shim asks for them again when its host reads; one that changed something is then looked up, or unknown.",
        ),
        Window(
            LW_CALL,
            "calls_unknown_outcome",
            "what became of a call that changes something, when its answer was lost",
            "The error names the tool, what it was about, and how to check.",
        ),
        Window(
            LW_RESYNC,
            "resyncs",
            "events between a caller's cursor and the end of a journal that was compacted, set back or replaced",
            "The wait says resynced; open work and offers are looked at at once, and again by the next wait.",
        ),
        Window(
            LW_COMPACT,
            "events_compacted",
            "all but the newest event of each ticket in a long catch-up",
            "The result says dropped and event_counts; a ticket's own history has the rest.",
        ),
        Window(
            LW_KEEPALIVE,
            "leases_let_go",
            "a lease that is not renewed any more: nobody is at work, or it is somebody else's, or the renewal was refused",
            "The next wait of its conversation is told; Central gives the ticket to somebody else.",
        ),
        Window(
            LW_PRESENCE,
            "cues_unheard",
            "an offer to a seat whose last conversation had just ended",
            "Central lets the offer expire and offers the work to somebody else.",
        ),
        Window(
            LW_OVERFLOW,
            "streams_overflowed",
            "cues that Central dropped because a stream was read too slowly",
            "Every seat of the stream is read from its cursor: no event is lost.",
        ),
        Window(
            LW_DIGEST,
            "digests_incomplete",
            "events between the place that a digest begins at and the oldest that is kept for digests",
            "The digest names the board in warnings; a ticket's own history has them.",
        ),
        Window(
            LW_ELICIT,
            "forms_cancelled",
            "what a human had typed into a form whose link ended before the answer came",
            "The shim takes the form back and calls again: a question that is still pending is asked anew.",
        ),
    )
}


def resync_warning(board: str) -> dict[str, object]:
    """What a caller reads whose place in the journal is gone."""
    return {
        "code": "lossy_window",
        "window": LW_RESYNC,
        "board_id": board,
        "message": (
            f"{LW_RESYNC}: the journal of {board} no longer has your place (it was compacted, set back or replaced). Events "
            "may be missing. Go on from new_seq; open work is listed by the next a2a_wait, held tickets by ticket_list."
        ),
    }


def digest_warning(board: str) -> dict[str, object]:
    """What a caller reads whose digest cannot go back as far as it asks."""
    return {
        "code": "lossy_window",
        "window": LW_DIGEST,
        "board_id": board,
        "message": (
            f"{LW_DIGEST}: events of {board} after the place that this digest begins at are no longer kept: more than 5,000 "
            "have come since, or its journal was compacted. Transitions may be missing, the state of each ticket is not; "
            "ticket_history_list has the rest."
        ),
    }
