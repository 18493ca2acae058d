"""Who is there for nobody: what `pursersctl reap` may end, and why. Never anything whose host lives."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["shim", "conversation"]


@dataclass(frozen=True, slots=True)
class Subject:
    """A conversation, present or past, and the processes behind it."""

    has_ended: bool
    is_detached: bool
    shim_lives: bool
    host_lives: bool | None
    """None when it is not known who the host is."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """What would be ended, and why."""

    kind: Kind
    """A shim's process, with the conversation if that still is there; or only what the daemon keeps of a conversation."""
    why: str


def orphan(subject: Subject) -> Orphan | None:
    """Whether nobody is behind this; None when somebody is, may be, or when nothing of it is left.

    The absence of activity proves nothing: an idle conversation of a living host is no orphan, nor is one whose host
    cannot be told as long as its link stands.
    """
    if subject.shim_lives and subject.host_lives is False:
        return Orphan("shim", "its host has ended, but the shim still runs")
    if subject.has_ended:
        return None
    if not subject.shim_lives:
        return Orphan("conversation", "its shim has ended, so nobody can come back to it")
    if subject.is_detached and subject.host_lives is None:
        return Orphan("conversation", "its link is lost, and nobody knows a host behind it")
    return None
