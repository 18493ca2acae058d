"""What went wrong with Central, in the bridge's classes (bridge.md §1.6, §1.7, §2.8)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pursersd.errors import (
    CentralError,
    ConfigurationError,
    Forbidden,
    InstanceMismatch,
    ProtocolRefused,
    PursersError,
    ToolFailed,
    Unauthenticated,
    UnknownBoard,
    Unreachable,
    WaitPolicyError,
)

Cause = Literal["authentication", "authorization", "configuration", "transport", "central", "runtime"]

DENIAL_MARKERS = (
    "invite required",
    "lacks board:",
    "board role not authorized",
    "access denied",
    "not authorized",
    "forbidden",
)
"""Found in a refusal of Central that another try with the same credential cannot change."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, understood."""

    cause: Cause
    join_class: str
    """The class that the text of a failed join names."""
    summary: str
    """The bridge's fixed text for that class; empty where the bridge shows the cause itself."""
    detail: str
    """What happened and what to do, for people and models. Never a credential."""
    classes: tuple[str, ...]
    """The names of all exception classes in the chain, sorted."""
    policy: bool
    """Whether the caller chose a view that the seat cannot have."""

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later without a repair."""
        return self.cause in ("transport", "central", "runtime")


def understood(error: BaseException) -> Failure:
    """Classify an error by the first of our own errors in its chain, or else by what kind of fault it is."""
    chain = list(_chain(error))
    ours = next((link for link in chain if isinstance(link, PursersError)), None)
    cause = _cause(ours) if ours is not None else _foreign_cause(chain)
    join_class, summary = _join(ours, cause)
    return Failure(
        cause=cause,
        join_class=join_class,
        summary=summary,
        detail=str(ours) if ours is not None else _foreign_detail(error, cause),
        classes=tuple(sorted({type(link).__name__ for link in chain})),
        policy=isinstance(ours, WaitPolicyError),
    )


def is_denial(text: str) -> bool:
    """Whether a refusal is a decision about rights, so that asking again is useless."""
    folded = text.casefold()
    return any(marker in folded for marker in DENIAL_MARKERS)


def join_failure_text(error: BaseException) -> str:
    """The text of every tool but a2a_wait when the conversation has no seat: the bridge's words, then the cause."""
    failure = understood(error)
    if failure.join_class == "instance_mismatch":
        return failure.detail
    # The cause may begin with the very words, as that of an unreachable Central does.
    repeats = failure.detail.startswith(failure.summary)
    words = failure.detail if repeats else f"{failure.summary}. {failure.detail}"
    return f"board join failed ({failure.join_class}): {words}"


def _cause(error: PursersError) -> Cause:
    match error:
        case WaitPolicyError() | ConfigurationError() | InstanceMismatch():
            return "configuration"
        case Unauthenticated():
            return "authentication"
        case Forbidden() | UnknownBoard():
            return "authorization"
        case Unreachable():
            return "transport"
        case ToolFailed() | ProtocolRefused():
            return "authorization" if is_denial(str(error)) else "central"
        case CentralError():
            return "central"
        case _:
            return "runtime"


def _foreign_cause(chain: list[BaseException]) -> Cause:
    broken = any(isinstance(link, ConnectionError | TimeoutError) for link in chain)
    return "transport" if broken else "runtime"


def _foreign_detail(error: BaseException, cause: Cause) -> str:
    # The text of an error that is not ours may hold anything, a credential too; its class may not.
    name = type(error).__name__
    if cause == "transport":
        return f"The connection to Central broke ({name}). Re-arm; if it happens again, look at: pursersctl status"
    return f"The daemon could not finish this call ({name}). Its log says more: pursersctl logs"


def _join(ours: PursersError | None, cause: Cause) -> tuple[str, str]:
    if isinstance(ours, InstanceMismatch):
        return "instance_mismatch", ""
    match cause:
        case "configuration":
            return "configuration", ""
        case "authentication":
            return "auth", "Central rejected ONBOARD_CENTRAL_TOKEN"
        case "authorization":
            return "denied", (
                "Central denied this credential the configured board or role; "
                "fix PURSERS_ROLE/token scope or the board invite before retrying"
            )
        case "transport":
            return "unreachable", "Central is unreachable"
        case _:
            return "board", "Central rejected board join"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, what it groups, and what led to it, the nearest first."""
    seen: set[int] = set()
    pending: list[BaseException] = [error]
    while pending:
        link = pending.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        if isinstance(link, BaseExceptionGroup):
            pending.extend(link.exceptions)
        if link.__cause__ is not None:
            pending.append(link.__cause__)
        elif link.__context__ is not None and not link.__suppress_context__:
            pending.append(link.__context__)
