"""What pursersctl and the daemon say to one another about stored doors."""

from typing import Literal

import msgspec

from pursersd.api.schema import SCHEMA


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `join`: take a seat through a door, and keep the door."""

    door: str
    """The string, with its token."""
    folder: str
    """Where doors are kept."""
    name: str | None = None
    """Name of the seat; None for an automatic one."""
    role: str | None = None
    """Role of the seat of a named door; None for what its token says."""
    rotate: bool = False
    allow_remote: bool = False
    env: dict[str, str] = {}
    """JOIN_VARIABLES of the caller's environment."""

    def __repr__(self) -> str:
        return f"<Join name={self.name} folder={self.folder}>"


JOIN_VARIABLES = (
    "ONBOARD_CENTRAL_INSTANCE_ID",
    "PURSERS_HOST",
    "PURSERS_LEGACY_TOOLS",
    "PURSERS_MODEL",
    "PURSERS_PROVIDER",
    "PURSERS_SKILLS",
    "PURSERS_TIER_MAX",
)
"""Variables that decide what a join declares, and to which Central."""


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `join`: Central took the seat in, and the door is kept."""

    board: str
    role: str
    seat_name: str
    push: bool
    """Whether Central gave the seat a subscription stream."""
    verifier: Literal["accepted"] = "accepted"
    schema: int = SCHEMA


class DoorsNoted(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `doors_changed`: the daemon looked at the stored doors again."""

    conversations: int
    """How many conversations it gave other settings."""
    schema: int = SCHEMA
