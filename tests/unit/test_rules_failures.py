"""rules/failures: causes, join classes and readable texts (bridge.md §1.6, §1.7, §2.8)."""

import pytest

from pursersd import errors
from pursersd.rules.failures import is_denial, join_failure_text, understood

DENIED = (
    "Central denied this credential the configured board or role; "
    "fix PURSERS_ROLE/token scope or the board invite before retrying"
)


@pytest.mark.parametrize(
    ("error", "cause", "join_class", "retryable"),
    [
        (errors.WaitPolicyError("x"), "configuration", "configuration", False),
        (errors.ConfigurationError("x"), "configuration", "configuration", False),
        (errors.InstanceMismatch("x"), "configuration", "instance_mismatch", False),
        (errors.Unauthenticated("x"), "authentication", "auth", False),
        (errors.Forbidden("x"), "authorization", "denied", False),
        (errors.UnknownBoard("x"), "authorization", "denied", False),
        (errors.Unreachable("x"), "transport", "unreachable", True),
        (errors.Overloaded("x"), "central", "board", True),
        (errors.ProtocolRefused("x"), "central", "board", True),
        (errors.ProtocolRefused("subscription not authorized"), "authorization", "denied", False),
        (errors.ToolFailed("board_join", "seat name already active"), "central", "board", True),
        (errors.ToolFailed("board_join", "board access denied: invite required"), "authorization", "denied", False),
        (errors.ToolFailed("ticket_get", "ticket 401-403 not found"), "central", "board", True),
        (errors.CentralError("x"), "central", "board", True),
        (errors.OwnershipError("x"), "runtime", "board", True),
        (ConnectionResetError("x"), "transport", "unreachable", True),
        (BrokenPipeError("x"), "transport", "unreachable", True),
        (TimeoutError("x"), "transport", "unreachable", True),
        (ValueError("x"), "runtime", "board", True),
        (PermissionError("x"), "runtime", "board", True),
    ],
)
def test_classes(error: BaseException, cause: str, join_class: str, retryable: bool) -> None:
    failure = understood(error)
    assert (failure.cause, failure.join_class, failure.retryable) == (cause, join_class, retryable)
    assert failure.policy == isinstance(error, errors.WaitPolicyError)


@pytest.mark.parametrize(
    "text",
    [
        "an Invite Required by the board",
        "board access denied: principal is not a member",
        "authenticated principal lacks board:review authorization",
        "Board Role Not Authorized",
        "token is not authorized for this board",
        "403 Forbidden",
    ],
)
def test_denial_markers(text: str) -> None:
    assert is_denial(text)
    assert not is_denial("seat name already active under this principal")


def test_the_nearest_error_of_ours_decides_and_all_classes_are_named() -> None:
    try:
        try:
            raise ConnectionResetError("peer")
        except ConnectionResetError as low:
            raise errors.Unauthenticated("Central does not accept the token.") from low
    except errors.Unauthenticated as high:
        group = ExceptionGroup("tasks", [RuntimeError("noise"), high])
    failure = understood(group)
    assert failure.cause == "authentication"
    assert failure.detail == "Central does not accept the token."
    assert failure.classes == ("ConnectionResetError", "ExceptionGroup", "RuntimeError", "Unauthenticated")


def test_a_suppressed_context_is_not_part_of_the_story() -> None:
    error = errors.Unreachable("No answer.")
    error.__context__ = KeyError("inner")
    assert understood(error).classes == ("KeyError", "Unreachable")
    error.__suppress_context__ = True
    assert understood(error).classes == ("Unreachable",)


def test_a_chain_that_bites_its_tail_ends() -> None:
    one, two = ValueError("1"), ValueError("2")
    one.__cause__, two.__cause__ = two, one
    assert understood(one).classes == ("ValueError",)


@pytest.mark.parametrize("error", [ValueError("Bearer s3cret at /home/me"), ConnectionResetError("s3cret")])
def test_the_text_of_a_foreign_error_is_not_shown(error: BaseException) -> None:
    detail = understood(error).detail
    assert "s3cret" not in detail
    assert type(error).__name__ in detail
    assert "pursersctl" in detail
    assert ("connection to Central broke" in detail) == isinstance(error, ConnectionError)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            errors.ConfigurationError("ONBOARD_CENTRAL_TOKEN is not set. Set it."),
            "board join failed (configuration): ONBOARD_CENTRAL_TOKEN is not set. Set it.",
        ),
        (errors.InstanceMismatch("Central instance mismatch: other"), "Central instance mismatch: other"),
        (
            errors.Unreachable("Nobody answers."),
            "board join failed (unreachable): Central is unreachable. Nobody answers.",
        ),
        (
            errors.Unreachable("Central is unreachable at http://127.0.0.1:1/mcp: refused"),
            "board join failed (unreachable): Central is unreachable at http://127.0.0.1:1/mcp: refused",
        ),
        (
            errors.Unauthenticated("Token expired."),
            "board join failed (auth): Central rejected ONBOARD_CENTRAL_TOKEN. Token expired.",
        ),
        (errors.UnknownBoard("No board x."), f"board join failed (denied): {DENIED}. No board x."),
        (
            errors.ToolFailed("board_join", "seat name already active"),
            "board join failed (board): Central rejected board join. seat name already active",
        ),
    ],
)
def test_join_failure_text(error: BaseException, text: str) -> None:
    assert join_failure_text(error) == text
