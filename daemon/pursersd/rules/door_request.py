"""What can be said about `pursersctl join` without asking anybody: by pursersctl at once, by the daemon again."""

from dataclasses import replace

from pursersd.errors import DoorsError
from pursersd.rules import seat_name
from pursersd.rules.door import NAMED, Door, check_url, decode
from pursersd.rules.door_file import COORDINATING, SHARED

ROLES = (*SHARED.roles, *COORDINATING.roles)
"""Every role that a stored door can have."""


def requested(text: str, *, name: str | None, role: str | None, allow_remote: bool) -> Door:
    """The door of a string with the role of the seat to take: its own, or for a named one `role` or the natural one.

    Raises DoorsError for a string, URL, name or role that cannot be joined, in the bridge's words where it has words.
    """
    if name is not None and not seat_name.is_safe(name):
        raise DoorsError("--name must be a safe 1-80 character identifier")
    door = decode(text)
    check_url(door.url, allow_remote=allow_remote)
    if role is not None and role not in ROLES:
        raise DoorsError("--role must be worker, reviewer, coordinator, or orchestrator")
    if door.role == NAMED:
        return replace(door, role=role or door.natural_role)
    if role not in (None, door.role):
        raise DoorsError(f"--role is for named doors; this one is for the role {door.role}")
    return door
