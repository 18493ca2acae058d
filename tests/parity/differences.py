"""Where we mean to differ from the bridge: each difference with its reason, and what ours gives in which scenario.

docs/compatibility.md tells the same to people; a test keeps the ids equal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from parity.compare import ABSENT, Has, Says

Fields = Mapping[str, Any]
"""Dotted paths into the outcomes of a scenario (the first part is the number of the outcome), and what ours has there."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One intended difference."""

    id: str
    reason: str
    ours: Mapping[str, Fields]
    """By scenario."""


def at(number: int, **fields: Any) -> dict[str, Any]:
    """Fields of the data of one outcome; two underscores stand for a dot."""
    return {f"{number}.data.{name.replace('__', '.')}": value for name, value in fields.items()}


def told(number: int, *events: Any, reason: str) -> dict[str, Any]:
    """Ours returns these events at its entry, where the bridge has nothing and waits."""
    return at(number, events=list(events), mode="poll", reason=reason, timed_out=False, waited_s="nothing")


def silent(number: int) -> dict[str, Any]:
    """Ours has nothing and waits, where the bridge returns events at its entry."""
    return at(number, events=[], mode="push", reason="timeout", timed_out=True, waited_s="all of timeout_s")


def both(**fields: Any) -> dict[str, Any]:
    """The same in the first and the second outcome."""
    return at(0, **fields) | at(1, **fields)


BACKLOG_A = Has(kind="ticket_backlog", ticket_id="<A>", status="open", reason="broadcast")
CANCELED_A = Has(kind="ticket_status_changed", ticket_id="<A>", status_to="canceled", reason="held_ticket_update")
CLOSED_A = Has(kind="ticket_status_changed", ticket_id="<A>", status_to="closed", reason="held_ticket_update")

NO_BOARD = Says("'<board>-mistyped' is not one of this credential's boards", "ONBOARD_BOARD_ID")
FAILED = {"mode": "error", "reason": "push_unavailable", "timed_out": False, "waited_s": "(some)"}

DIFFERENCES = (
    Difference(
        "live-at-once",
        "A live event ends a wait when it happens; the bridge notices it at its next round of upkeep, up to 30 s later.",
        dict.fromkeys(
            ("live-created", "live-omitted", "live-annotated", "live-canceled", "live-submitted", "cut"),
            at(0, waited_s="less than timeout_s"),
        ),
    ),
    Difference(
        "told-once",
        "What a live event told of is known: the bridge tells it again at once, as backlog of the next call.",
        {"live-created": silent(1)},
    ),
    Difference(
        "acknowledged-when-delivered",
        "Without since_seq an event counts as read when the host has it: a canceled call loses nothing, and what came live "
        "is not told twice; the bridge acknowledges history when it reads it, and live events never.",
        {
            "live-omitted": silent(1) | at(1, compacted=ABSENT, dropped=ABSENT, event_counts=ABSENT),
            "canceled-omitted": told(0, Has(kind="ticket_annotated", ticket_id="<A>"), reason="held_ticket_update")
            | at(0, compacted=True, dropped=0, event_counts={"ticket_annotated": 1}),
        },
    ),
    Difference(
        "end-of-my-work",
        "A worker or reviewer must learn that its ticket is finished; the bridge looks for it among the active ones only, "
        "unless the event comes while it waits.",
        {
            "held-canceled": told(0, CANCELED_A, reason="held_ticket_update"),
            "held-approved": told(0, CLOSED_A, reason="held_ticket_update"),
            "review-held-canceled": told(0, CANCELED_A, reason="held_ticket_update"),
        },
    ),
    Difference(
        "assigned-elsewhere",
        "A ticket assigned to another seat is no work for this one: Central would refuse the claim.",
        {
            "for-other": silent(0),
            "for-other-backlog": silent(0),
            "live-for-other": at(0, events=[], reason="timeout", timed_out=True),
        },
    ),
    Difference(
        "backlog-after-compaction",
        "Open work that a compacted result left out is told by the next call; the bridge counts it as told for 600 s.",
        {"backlog-compacted": told(1, BACKLOG_A, reason="broadcast")},
    ),
    Difference(
        "backlog-beside-other-events",
        "Open work is told at the entry whatever has happened; the bridge skips it when only irrelevant events came.",
        {"backlog-beside-others": told(0, BACKLOG_A, reason="broadcast")},
    ),
    Difference(
        "default-timeout",
        "A default that the caller did not choose gives way to the limit of the host instead of being refused.",
        {
            "host-limit-default": {
                "0.is_error": False,
                "0.text": "(the data)",
                "0.data": Has(events=[], timed_out=True, reason="timeout"),
            }
        },
    ),
    Difference(
        "largest-cursor",
        "A number that no journal can hold is a mistake and is refused as such; the bridge takes it for a cursor that is "
        "ahead.",
        {"cursor-huge": {"0.is_error": True, "0.data": None, "0.text": Says("since_seq", "at most", str(2**63 - 1))}},
    ),
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
            "no-board-registry": {
                "0.text": Says("board join failed (denied)", "is not one of this credential's boards")
            },
        },
    ),
    Difference(
        "instance-mismatch",
        "Another Central than the expected one is a matter of settings: trying again as it is cannot help.",
        {
            "other-instance-wait": both(error__cause_class="configuration", error__retryable=False)
            | at(1, error__action="repair_configuration_then_rearm_from_unchanged_cursor"),
        },
    ),
    Difference(
        "empty-name",
        "Central has the last word on every agent_name, the empty one included, and says what its rule is.",
        {"name-empty": at(0, error__cause_class="central")},
    ),
    Difference(
        "bad-settings",
        "A setting that is wrong is told in the answer to each call; the bridge ends before the handshake.",
        {
            "bad-role": {
                "0.ended": ABSENT,
                "0.capabilities": Has(),
                "0.protocolVersion": "2025-11-25",
                "0.serverInfo": Has(name="Pursers Wait Bridge"),
                "1.ended": ABSENT,
                "1.is_error": False,
                "1.text": "(the data)",
                "1.data": Has(
                    reason="push_unavailable", error=Has(cause_class="configuration", detail=Says("PURSERS_ROLE"))
                ),
            }
        },
    ),
    Difference(
        "error-detail",
        "The structured error of a wait says in `detail` what happened and what to do.",
        {
            "worker-submitted": at(0, error__detail=Says("wait_for='submitted' requires board:review")),
            "worker-submitted-exact": at(0, error__detail=Says("wait_for='submitted' requires board:review")),
            "no-token-wait": both(error__detail=Says("ONBOARD_CENTRAL_TOKEN is not set", "environment")),
            "wrong-token-wait": both(error__detail=Says("HTTP 401")),
            "outsider-wait": both(error__detail=Says("'<board>' is not one of this credential's boards")),
            "no-scope-wait": both(error__detail=Says("lacks board:review")),
            "no-central-wait": both(error__detail=Says("Central is unreachable at <closed url>")),
            "other-instance-wait": both(error__detail=Says("Central instance mismatch")),
            "name-empty": at(0, error__detail=Says("agent_name")),
            "name-bad": at(0, error__detail=Says("agent_name")),
            "name-long": at(0, error__detail=Says("agent_name")),
        },
    ),
    Difference(
        "exception-classes",
        "The structured error names the classes of our own exceptions.",
        {
            "no-token-wait": both(error__exception_classes__0="ConfigurationError"),
            "wrong-token-wait": both(error__exception_classes__0="Unauthenticated"),
            "outsider-wait": both(error__exception_classes__0="UnknownBoard"),
            "no-scope-wait": both(error__exception_classes__0="ToolFailed"),
            "no-central-wait": both(error__exception_classes=["ConnectError", "Unreachable"]),
            "other-instance-wait": both(error__exception_classes__0="InstanceMismatch"),
            "name-empty": at(0, error__exception_classes__0="ToolFailed"),
            "name-bad": at(0, error__exception_classes__0="ToolFailed"),
            "name-long": at(0, error__exception_classes__0="ToolFailed"),
        },
    ),
    Difference(
        "readable-errors",
        "The text of a tool error goes on with the cause and what to do; the bridge leaves it out or drops it altogether.",
        {
            "no-token-registry": {"0.text": Says("(configuration): ONBOARD_CENTRAL_TOKEN is not set", "environment")},
            "wrong-token-registry": {"0.text": Says("(auth): Central rejected ONBOARD_CENTRAL_TOKEN", "HTTP 401")},
            "outsider-registry": {"0.text": Says("(denied)", "is not one of this credential's boards")},
            "no-scope-registry": {"0.text": Says("(denied)", "lacks board:review")},
            "no-central-registry": {"0.text": Says("(unreachable): Central is unreachable at <closed url>")},
            "registry-missing": {"0.text": Says("has no project registry", "pursers-registry add")},
            "registry-not-json": {"0.text": Says("the document must be JSON")},
            "registry-no-projects": {"0.text": Says("projects is missing")},
            "registry-status": {"0.text": Says("project 'alpha', status must be active or paused")},
            "registry-folder": {"0.text": Says("project 'alpha', work_dir must be an absolute path")},
            "registry-version": {"0.text": Says("schema_version must be 1")},
        },
    ),
    Difference(
        "read-only-hint",
        "Tools that change nothing say so: some hosts run them beside other calls only then, or refuse them otherwise.",
        {name: {"0.annotations": {"readOnlyHint": True}} for name in ("describe-wait", "describe-registry")},
    ),
    Difference(
        "descriptions",
        "The descriptions of the tools are our own and tell the model how to go on.",
        {
            "describe-wait": {"0.description": Says("new_seq", "since_seq")},
            "describe-registry": {"0.description": Says("registry")},
        },
    ),
)
