"""What pursersctl and the daemon say to one another about the local board."""

from typing import Literal

import msgspec

from pursersd.api.schema import SCHEMA

LocalState = Literal["none", "down", "starting", "running", "failing"]


class LocalStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `local`, and part of `status`: the local board and the Central that serves it."""

    state: LocalState
    """`none`: there is no local board. `down`: there is one, and nobody wants it served. `failing`: it is wanted and not
    served; it is tried again."""
    board: str | None
    url: str | None
    port: int | None
    pid: int | None
    """Process id of its Central; None while there is none."""
    up_s: float | None
    """Seconds that it has answered; None while it does not."""
    restarts: int
    """How often it was started again since this daemon began, because it had ended by itself or had not come up."""
    folder: str
    """Where all its files lie."""
    log: str
    """What its Central printed."""
    last_error: str | None
    """Why it ended last, or did not come up; None when that never happened to this daemon."""
    last_error_s: float | None
    next_try_s: float | None
    """Seconds until it is started again; None when nothing is waited for."""
    schema: int = SCHEMA


class LocalUp(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `local_up`: serve a local board from now on, and keep a door for each role."""

    folder: str
    """Where doors are kept."""
    board: str | None = None
    """Its name; None for the one that there is, or the usual one."""
    port: int | None = None
    """None for the one that it has, or any that is free."""


class LocalDoor(msgspec.Struct, frozen=True, kw_only=True):
    """A door of the local board."""

    board: str
    role: str
    kid: str
    """Key id of its token."""
    is_new: bool
    """Whether it was issued and stored now; False for one that was stored already and that Central accepts."""
    token_file: str
    """The same token in a file, for a connector that gives models Central's own tools."""


class LocalBoard(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `local_up`: Central serves the board, and has accepted each door that is stored."""

    local: LocalStatus
    doors: list[LocalDoor]
    notes: list[str]
    """What else the user should know."""
    schema: int = SCHEMA


class LocalDown(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `local_down`: do not serve the local board any more."""

    reset: bool = False
    """Delete it, too, and the doors that `local_up` stored."""


class LocalGone(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `local_down`: no Central serves the local board any more."""

    local: LocalStatus
    removed: list[str]
    """Files, folders and doors that were deleted."""
    kept: list[str]
    """What lies in its folder and was not made by us."""
    schema: int = SCHEMA


class LocalTicket(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `local_ticket`: a ticket by the board's owner, for whoever takes it."""

    title: str
    description: str


class LocalTicketMade(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `local_ticket`."""

    ticket: str
    board: str
    schema: int = SCHEMA
