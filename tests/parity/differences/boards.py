"""Differences in waits on many boards, and in which boards they are."""

from typing import Any

from parity.compare import ABSENT, Has, Says
from parity.differences.difference import FAILED, Difference, at, both
from parity.differences.questions import UNKNOWN_BOARD

NO_BOARD = Says("'<board>-mistyped' is not one of this credential's boards", "ONBOARD_BOARD_ID")

STRANGER = Says("is not one of this credential's boards", "ask its admin")
NOWHERE = Has(
    cause_class="authorization", retryable=False, detail=Says("into none of the boards", "Ask the boards' admin")
)


def skipped(number: int, board: str) -> dict[str, Any]:
    """Ours leaves out a board, where the bridge founds it and waits on it."""
    return {
        f"{number}.data.mode_by_board.{board}": ABSENT,
        f"{number}.data.new_seq.{board}": 0,
        f"{number}.data.skipped_boards.{board}": STRANGER,
    }


def polled(board: str) -> dict[str, str]:
    """The warning of a board whose journal is denied."""
    text = f"subscription denied: principal is not authorized for resource board://<{board}>/journal"
    return {"code": "push_unavailable", "detail": text}


UNREAD = {"<shut>": STRANGER}


def unread(number: int) -> dict[str, Any]:
    """Ours names a board that it could not read."""
    return {f"{number}.outcome.data.skipped_boards": UNREAD}


BOARDS = (
    Difference(
        "unknown-board",
        "A board that this credential does not belong to is refused without asking Central, which would found it.",
        {
            "no-board-wait": {
                "2.{board}-mistyped": False,
                **both(**FAILED, mode_by_board={"<board>-mistyped": "error"}, skipped_boards={}),
                **at(0, new_seq=None, error=Has(cause_class="authorization", retryable=False, detail=NO_BOARD)),
                **at(1, error=Has(cause_class="authorization", retryable=False, detail=NO_BOARD), warnings=ABSENT),
                **at(1, new_seq="base+7"),
            },
            "unknown": skipped(0, "<board>-mistyped") | {"1.{board}-mistyped": False},
            "unknown-alone": {
                **at(0, **FAILED, new_seq=None, resynced=False, error=NOWHERE),
                "0.data.mode_by_board.<board>-nowhere": "error",
                "0.data.skipped_boards.<board>-nowhere": STRANGER,
                "1.{board}-nowhere": False,
            },
            "boards-unknown": skipped(0, "<board>-elsewhere") | {"1.{board}-elsewhere": False},
            "no-board-registry": {
                "0.text": Says("board join failed (denied)", "is not one of this credential's boards")
            },
            **UNKNOWN_BOARD,
        },
    ),
    Difference(
        "closed-board",
        "That a credential does not belong to a board is known without asking for it; the refusal says what to do.",
        {name: {"0.data.skipped_boards.<shut>": STRANGER} for name in ("skipped", "skipped-live", "denied-remembered")},
    ),
    Difference(
        "no-board-left",
        "A wait that no board lets in fails. The bridge says at once that its time is up, and whoever calls again at once, as "
        "it is told to, does so for ever.",
        {
            "all-denied": {
                path: value
                for number in (0, 1, 2)
                for path, value in {
                    **at(number, **FAILED, error=NOWHERE),
                    f"{number}.data.mode_by_board.<shut>": "error",
                    f"{number}.data.skipped_boards.<shut>": STRANGER,
                }.items()
            }
            | at(0, new_seq=None, resynced=False),
        },
    ),
    Difference(
        "board-lost",
        "A board that takes the membership back is left out from then on, and the wait goes on with the others; the bridge's "
        "fails.",
        {
            "removed": {
                **at(0, error=ABSENT, mode="push", reason="timeout", timed_out=True, waited_s="all of timeout_s"),
                "0.data.mode_by_board.<board>": "push",
                "0.data.mode_by_board.<second>": ABSENT,
                "0.data.skipped_boards.<second>": Says("board access denied"),
            }
        },
    ),
    Difference(
        "journal-alone",
        "Where Central denies the subscription with a seat, the board's journal alone wakes it; the bridge polls.",
        {"many-denied-seat": {"0.data.mode": "push", "0.data.mode_by_board.<board>": "push"}},
    ),
    Difference(
        "why-it-polls",
        "A board that is polled although the caller wants push warns of it and says why; the bridge tells its log only, and "
        "in its single-board form begins to poll at its next round of upkeep.",
        {
            "denied-stream": at(
                0,
                events=[Has(kind="ticket_created", ticket_id="<B>")],
                new_seq="base+2",
                reason="journal",
                timed_out=False,
                waited_s="less than timeout_s",
                warnings=[polled("board")],
            ),
            "many-denied-stream": both(warnings={"<second>": [polled("second")]}),
        },
    ),
    Difference(
        "nothing-for-seats",
        "When the registry takes away all events, because no seat could ever claim their work, there is no reason to return: "
        "the wait goes on. The bridge says before its time that it is up.",
        {
            "routes-nothing-left": {
                **at(0, mode="push", waited_s="all of timeout_s"),
                **{f"0.data.mode_by_board.<{board}>": "push" for board in ("board", "second")},
            },
            "routes-live-nothing-left": at(0, waited_s="all of timeout_s"),
        },
    ),
    Difference(
        "held-without-route",
        "News of work that the seat has are told whether the registry knows its target or not; the bridge takes them away with "
        "what nobody could claim.",
        {
            "routes-held": at(
                0,
                events=[
                    Has(
                        kind="ticket_annotated",
                        reason="held_ticket_update",
                        routing_error=Has(code="project_route_not_registered"),
                    )
                ],
                reason="held_ticket_update",
                timed_out=False,
            )
        },
    ),
    Difference(
        "unread-boards",
        "Boards whose questions could not be read are named, with the reason; the bridge says that nothing is pending there.",
        {
            "list-unread-legacy": unread(0) | unread(1) | unread(2),
            "list-unread-modern": unread(0) | unread(2) | {"1.asked.0.meta.skipped_boards": UNREAD},
        },
    ),
)
