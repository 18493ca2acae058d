"""Differences of the coordinator questions, in both eras."""

from collections.abc import Mapping

from parity.compare import Has, Says
from parity.differences.difference import Difference, Fields, at

CALLS = range(5)
"""Of a scenario that calls each of the five tools."""

NEGATIVE = Says("since_seq must be an integer from 0 to", "received -1")
AHEAD = Says("is ahead of the journal of board <board>, which ends at", "Call again with")
ANSWERED = Has(question_id="<Q>", state="answered", answer="A warm one.")
OURS = Says("pursersd-")


def in_both_eras(ours: Mapping[str, Fields]) -> dict[str, Fields]:
    """The same for the scenarios of the other era."""
    return {name + era: fields for name, fields in ours.items() for era in ("", "-other")}


def everywhere(*phrases: str) -> Fields:
    """Each of the five texts says this."""
    return {f"{number}.text": Says(*phrases) for number in CALLS}


READABLE = {
    "no-token-questions": everywhere("(configuration): ONBOARD_CENTRAL_TOKEN is not set", "environment"),
    "wrong-token-questions": everywhere("(auth): Central rejected ONBOARD_CENTRAL_TOKEN", "HTTP 401"),
    "outsider-questions": everywhere("(denied)", "is not one of this credential's boards"),
    "no-scope-questions": everywhere("(denied)", "lacks board:review"),
    "no-central-questions": everywhere("(unreachable): Central is unreachable at <closed url>"),
    "other-instance-questions": everywhere("Central instance mismatch: ", "Expected was CI-", "is CI-"),
    **in_both_eras({name: {"0.text": NEGATIVE, "1.text": AHEAD} for name in ("reply-cursor", "arrival-cursor")}),
}
"""Texts of errors, by scenario."""

UNKNOWN_BOARD = {
    "no-board-questions": everywhere("(denied)", "'<board>-mistyped' is not one of this credential's boards")
}
"""The same on a board that does not exist."""

QUESTIONS = (
    Difference(
        "question-keys",
        "Each question has a message_id, ours when the caller gave none, so that it is asked once whatever is lost on the way.",
        in_both_eras(
            {
                "ask": at(0, question__message_id=OURS) | at(1, question__message_id=OURS),
                "ask-in-reply": at(0, question__message_id=OURS),
                "critic-asks": at(1, question__message_id=OURS),
            }
        ),
    ),
    Difference(
        "questions-one-by-one",
        "new_seq stands right behind the question that is returned, so that the next wait brings the next one; the bridge's is "
        "at the end of what it has read, and the questions between are never told.",
        in_both_eras(
            {
                "arrival": at(0, new_seq="base+3")
                | at(
                    1,
                    new_seq="base+4",
                    timed_out=False,
                    delivery="protocol_delivered",
                    event=Has(question_id="<R>", seq="base+4"),
                    question=Has(question_id="<R>", state="open"),
                )
            }
        ),
    ),
    Difference(
        "waits-for-nothing",
        "A wait for an answer that is there already brings it, and one for an answer that cannot come any more ends and says "
        "why; the bridge waits until the time is up.",
        in_both_eras(
            {
                "reply": at(1, timed_out=False, delivery="protocol_delivered", question=ANSWERED),
                "reply-ended": at(
                    0,
                    timed_out=False,
                    ended=Has(code="ticket_ended"),
                    event=Has(kind="ticket_status_changed", ticket_id="<A>", status_to="canceled"),
                    question=Has(question_id="<Q>", state="open"),
                ),
            }
        ),
    ),
)
