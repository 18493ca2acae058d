"""Where a conversation comes from."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

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


KEPT = "processes"
"""Under this name a shim remembers what was found behind it, over the end of a daemon."""


def to_keep(lineage: Lineage) -> dict[str, object]:
    """What its shim shall remember. A host that ends while there is no daemon could not be found again above its wrapper:
    somebody else has adopted that by then."""
    if lineage.host is None:
        return {}
    return {KEPT: [[found.pid, found.started] for found in (lineage.shim, lineage.host, *lineage.wrappers)]}


def as_kept(
    kept: Mapping[str, object], shim: ProcessIdentity
) -> tuple[ProcessIdentity, tuple[ProcessIdentity, ...]] | None:
    """The host and the wrappers that an earlier daemon had found behind this shim.

    None if it had not, if that cannot be read, or if it saw the shim as another process: in another container the numbers
    mean others.
    """
    try:
        known, host, *wrappers = (ProcessIdentity(*x) for x in msgspec.convert(kept.get(KEPT), list[tuple[int, float]]))
    except (msgspec.ValidationError, ValueError):
        return None
    return (host, tuple(wrappers)) if known == shim else None
