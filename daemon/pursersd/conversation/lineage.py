"""Where a conversation comes from."""

from dataclasses import dataclass

from pursersd.conversation.identity import ProcessIdentity


@dataclass(frozen=True, slots=True)
class Lineage:
    """What the shim of a conversation told in `hello`, and the processes that were found behind it."""

    shim: ProcessIdentity
    host: ProcessIdentity | None
    """The program behind the shim; None when it cannot be known."""
    cwd: str
    shim_version: str
    wrappers: tuple[ProcessIdentity, ...] = ()
    """Shells and package runners between the two: with them the host is gone as well."""
