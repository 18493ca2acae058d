"""The errors of the daemon, chosen by what the one who catches them will do.

Each has a stable `code`; its text ends with what to do next. Texts never contain a credential.
"""


class PursersError(Exception):
    """Something a person or a model should be told about."""

    code = "internal"


class ConfigurationError(PursersError):
    """A setting of one conversation is missing or wrong; only the user can repair it."""

    code = "configuration"


class DoorsError(ConfigurationError):
    """A door, or the file that keeps them, cannot be used. Rules give the bridge's text alone, the file's keeper more."""

    code = "doors"


class KeyringError(ConfigurationError):
    """The keys that seal a question between its rounds cannot be used; the text names their file and the repair."""

    code = "request_state_keys"


class ArgumentError(PursersError):
    """A tool was called with an argument that it does not take; the text says what it takes and what it got."""

    code = "arguments"


class StateError(PursersError):
    """A file of ours cannot be used, and guessing what was in it would hide something; the text names it and the repair."""

    code = "state"


class WaitPolicyError(PursersError):
    """A wait asks for a view that the joined seat cannot have; the caller must choose another one."""

    code = "wait_configuration"


class NotAllowed(PursersError):
    """What a tool was asked for is not this seat's to do; the text says whose it is."""

    code = "not_allowed"


class LocalBoardError(PursersError):
    """The local board cannot be served, made or deleted; `code` says what stands in the way."""

    code = "local"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class OwnershipError(PursersError):
    """This process may not be the daemon: another one is, or the folder is not safe."""

    code = "ownership"


class LostOwnership(OwnershipError):
    """This process was the daemon and is not any more, or nobody reaches it: another one may follow at once."""


class CentralError(PursersError):
    """A request to Central did not succeed. `sent` is False when it certainly was not carried out."""

    code = "central"

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class Unreachable(CentralError):
    """No answer from Central: refused, reset, timed out or not speaking HTTP. Worth another try.

    `silent`: nothing came at all, so that the next one that asks has to wait as long.
    """

    code = "unreachable"

    def __init__(self, message: str, *, sent: bool = True, silent: bool = False) -> None:
        super().__init__(message, sent=sent)
        self.silent = silent


class Unauthenticated(CentralError):
    """Central does not accept the credential (HTTP 401)."""

    code = "auth"


class Forbidden(CentralError):
    """The credential lacks the scope for any call at all (HTTP 403)."""

    code = "denied"


class Overloaded(CentralError):
    """Central answered 5xx or 429, or a proxy answered in its place.

    Worth another try, not before `retry_after_s` seconds if it named some.
    """

    code = "overloaded"

    def __init__(self, message: str, *, sent: bool = True, retry_after_s: float | None = None) -> None:
        super().__init__(message, sent=sent)
        self.retry_after_s = retry_after_s


class Exhausted(Overloaded):
    """It was us who had no connection or descriptor left; nothing says that Central does not answer."""


class ProtocolRefused(CentralError):
    """Central refused the request itself: a JSON-RPC error, such as a denied subscription.

    `is_answer` is False when nothing can be made of what Central said, so that what it did is unknown.
    """

    code = "protocol"

    def __init__(self, message: str, *, rpc_code: int = 0, is_answer: bool = True) -> None:
        super().__init__(message)
        self.rpc_code = rpc_code
        self.is_answer = is_answer


class ToolFailed(CentralError):
    """A Central tool answered with isError. `kind` is Central's typed code, None for the untyped failures."""

    code = "board"

    def __init__(self, tool: str, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.tool = tool
        self.kind = kind


class UnknownBoard(CentralError):
    """The credential's principal is a member of no board of that name. Central is not asked: that would found it."""

    code = "denied"


class InstanceMismatch(CentralError):
    """The Central at this URL is not the one that the conversation was told to expect."""

    code = "instance_mismatch"


class OutcomeUnknown(PursersError):
    """A call that changes something may have been carried out, and nobody can tell. It must not be repeated blindly.

    The text says why; which call, what it was about and how to check is added where it is shown (tools/call.py).
    """

    code = "outcome_unknown"


class RegistryError(PursersError):
    """The project registry of a board is stored but not valid; the text names the place and the repair."""

    code = "registry"


def let_go(error: BaseException) -> None:
    """The error has been told: let go of what its tracebacks, and those of its causes, hold on to.

    A call that failed leaves its frames with all that it had read, in circles that only the next full collection would free.
    """
    seen: set[int] = set()
    told: BaseException | None = error
    while told is not None and id(told) not in seen:
        seen.add(id(told))
        told.__traceback__ = None
        told = told.__cause__ or told.__context__
