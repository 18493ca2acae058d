"""Which stored door fills in what the environment of a conversation leaves open (bridge.md §6.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pursersd.errors import DoorsError
from pursersd.rules.door import Door
from pursersd.rules.environment import Reader

LoadDoors = Callable[[], Sequence[Door]]
"""Gives the stored doors, none if there is no file, or raises DoorsError."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The stored door to take values from, None for none; `failed` if there should be one and a problem says why not."""

    door: Door | None = None
    failed: bool = False


NO_DOOR = Choice()


def no_doors() -> Sequence[Door]:
    """Nothing is stored."""
    return ()


def choose(found: Reader, load_doors: LoadDoors, *, role: str | None) -> Choice:
    """The door for an environment, its declared role having been read already.

    Doors are looked at when any of URL, token, board and role is missing. Where several could be meant none is taken: the
    problem names the variable that decides. A caller with a token of its own needs no door, so that one for another board
    is no obstacle (the bridge refuses it).
    """
    board = found.value("ONBOARD_BOARD_ID")
    has_token = bool(found.value("ONBOARD_CENTRAL_TOKEN") or found.value("ONBOARD_CENTRAL_TOKEN_FILE"))
    if found.value("ONBOARD_CENTRAL_URL") and has_token and board and role:
        return NO_DOOR
    try:
        doors = load_doors()
    except DoorsError as error:
        found.problems.append(str(error))
        return Choice(failed=True)
    if not doors:
        return NO_DOOR
    if role is None and found.value("PURSERS_ROLE"):
        return Choice(failed=True)  # nobody knows which role was meant, and a problem says so
    return _choose(found, doors, board, role, has_token)


def _choose(found: Reader, doors: Sequence[Door], board: str, role: str | None, has_token: bool) -> Choice:
    stored = "Stored are the doors " + ", ".join(f"{door.board} ({door.role})" for door in doors)
    fitting = [door for door in doors if door.board == board] if board else list(doors)
    if len({door.board for door in fitting}) > 1:
        found.problem("multiple stored boards; set ONBOARD_BOARD_ID", f"{stored}.")
        return Choice(failed=True)
    fitting = [door for door in fitting if door.role == role] if role else fitting
    if len({door.role for door in fitting}) > 1:
        found.problem("multiple stored roles; set PURSERS_ROLE", f"{stored}.")
        return Choice(failed=True)
    if len(fitting) > 1:
        found.problem("stored door selection is ambiguous", f"{stored}. Set ONBOARD_BOARD_ID and PURSERS_ROLE.")
        return Choice(failed=True)
    if not fitting and not has_token:
        found.problem(
            "no stored door matches the selected board and role",
            f"{stored}. Set ONBOARD_BOARD_ID and PURSERS_ROLE to one of them, or add one with: pursersctl join",
        )
        return Choice(failed=True)
    return Choice(fitting[0] if fitting else None)
