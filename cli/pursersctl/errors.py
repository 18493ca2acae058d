"""Why a command did not succeed, and the exit code that says so. docs/cli.md lists the codes for people."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every pursersctl command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_RUNNING = 3
    BUSY = 4
    REFUSED = 5


class CommandError(Exception):
    """A command ends here. The text says what is wrong and what to do next; `code` is stable, for scripts."""

    status = Exit.FAILED
    code = "failed"

    def __init__(self, text: str, *, code: str | None = None) -> None:
        super().__init__(text)
        if code is not None:
            self.code = code


class Failed(CommandError):
    """The daemon, or the machine, could not do what was asked."""


class NotRunning(CommandError):
    """There is no daemon."""

    status = Exit.NOT_RUNNING
    code = "not_running"


class Busy(CommandError):
    """There is a daemon, but it did not answer in time."""

    status = Exit.BUSY
    code = "busy"


class Refused(CommandError):
    """One side will not talk to the other: version, owner or folder."""

    status = Exit.REFUSED
    code = "refused"
