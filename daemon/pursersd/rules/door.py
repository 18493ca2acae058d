"""Doors: the strings that pack Central's URL, a board, a role and a token (bridge.md §9)."""

from dataclasses import dataclass

from pursersd.secret import Secret


@dataclass(frozen=True, slots=True)
class Door:
    """One stored door: what one entry of `doors.json` says (bridge.md §7.1)."""

    url: str
    board: str
    role: str
    token: Secret
    kid: str
    """Key id of the token: it may be shown."""
    expires: int
    """Seconds since 1970; nobody checks it here, Central does."""
    joined_at: str
    seat_names_used: tuple[str, ...]
