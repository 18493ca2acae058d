"""Differences in what is refused, in errors and texts."""

from parity.compare import ABSENT, Has, Says
from parity.differences.difference import Difference, at, both, in_both_eras
from parity.differences.questions import READABLE

AUTO = Says("wait_for='auto' is available only to worker or reviewer seats")

ANSWERS = (
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
        "unknown-host",
        "A host that nobody knows may be the least patient one, so it gets the shortest limit of all; the bridge takes it for "
        "one that waits ten minutes.",
        {"host-unknown": {"0.text": Says("timeout_s must be an integer from 1 to 200")}},
    ),
    Difference(
        "largest-cursor",
        "A number that no journal can hold is a mistake and is refused as such; the bridge takes it for a cursor that is "
        "ahead.",
        {"cursor-huge": {"0.is_error": True, "0.data": None, "0.text": Says("since_seq", "at most", str(2**63 - 1))}},
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
            "lead-auto": both(error__detail=AUTO),
            "lead-auto-many": both(error__detail=AUTO) | at(2, error__detail=AUTO),
            "lead-submitted": both(error__detail=Says("wait_for='submitted' requires board:review")),
            "conductor-auto": both(error__detail=AUTO),
            "mixed-submitted": at(0, error__detail=Says("wait_for='submitted' requires board:review")),
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
            "other-instance-registry": {"0.text": Says("Central instance mismatch: ", "Expected was CI-", "is CI-")},
            "outsider-registry": {"0.text": Says("(denied)", "is not one of this credential's boards")},
            "no-scope-registry": {"0.text": Says("(denied)", "lacks board:review")},
            "no-central-registry": {"0.text": Says("(unreachable): Central is unreachable at <closed url>")},
            "broken-registry": {
                "0.data.registry_warning": Says("project_registry unavailable; using '<board>' only: ", "must be JSON"),
                "1.data.registry_warning": Says("using '<board>' only: ", "projects is missing"),
            },
            "registry-missing": {"0.text": Says("has no project registry", "pursers-registry add")},
            "registry-not-json": {"0.text": Says("the document must be JSON")},
            "registry-no-projects": {"0.text": Says("projects is missing")},
            "registry-status": {"0.text": Says("project 'alpha', status must be active or paused")},
            "registry-folder": {"0.text": Says("project 'alpha', work_dir must be an absolute path")},
            "registry-version": {"0.text": Says("schema_version must be 1")},
            "digest-no-transitions": {"0.text": Says("must be a positive integer; received 0")},
            "digest-no-boards": {"0.text": Says("boards must contain at least one board ID; received []")},
            "digest-blank-board": {"0.text": Says("boards must contain non-empty strings; received ['a', ' ']")},
            "digest-modern": {"8.text": Says("must be a positive integer; received -1")},
            **READABLE,
            **in_both_eras("ask-too-few", {"0.outcome.text": Says("human answer field many does not match")}),
            **in_both_eras(
                "ask-nothing", {"2.outcome.text": Says(": no pending human", "is not one of this credential's")}
            ),
            **in_both_eras("ask-denied", {"0.outcome.text": Says("human resolution requires board admin")}),
            **in_both_eras(
                "list-answer-refused",
                {
                    "6.outcome.text": Says("at least one non-empty board ID"),
                    "7.outcome.text": Says("only non-empty board"),
                },
            ),
            **in_both_eras("list-boards", {"2.outcome.text": Says("has no project registry")}),
        },
    ),
    Difference(
        "tool-hints",
        "Tools say whether they change something, and whether they put an end to something: some hosts run only those that do "
        "neither beside other calls, or without asking.",
        {
            name: {"0.annotations": {"readOnlyHint": changes_nothing, "destructiveHint": False}}
            for changes_nothing, names in (
                (True, ("describe-wait", "describe-registry", "describe-digest")),
                (False, ("describe-digest-ack", "describe-watch", "describe-unwatch")),
            )
            for name in names
        },
    ),
    Difference(
        "descriptions",
        "The descriptions of the tools are our own and tell the model how to go on.",
        {
            "describe-wait": {"0.description": Says("new_seq", "since_seq")},
            "describe-registry": {"0.description": Says("registry")},
            "describe-digest": {"0.description": Says("What has changed", "data_status")},
            "describe-digest-ack": {"0.description": Says("the next board_digest begins there")},
            "describe-watch": {"0.description": Says("Pin tickets")},
            "describe-unwatch": {"0.description": Says("all=true")},
            "digest-resource": {"0.result.resourceTemplates.0.description": Says("as JSON text")},
            "digest-modern": {"1.result.resourceTemplates.0.description": Says("as JSON text")},
        },
    ),
)
