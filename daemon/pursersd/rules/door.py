"""Doors: the strings that pack Central's URL, a board, a role and a token (bridge.md §9).

The checks, their order and their texts are the bridge's, so that a string is refused by both in the same words. Nothing
here tells whether Central accepts the token: its signature and its expiry are Central's to judge.
"""

import base64
import ipaddress
import json
import re
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

import jwt

from pursersd.errors import DoorsError
from pursersd.secret import Secret

SEAT_ROLES = ("worker", "reviewer")
"""The roles of ordinary doors."""

NAMED = "named"
"""What a named door has in the place of a role: its token says what the holder may do."""

_PREFIX = "prs1"
_FIELDS = frozenset("ubrt")
_PAYLOAD = re.compile(r"[A-Za-z0-9_-]+")
_NO_CHECKS: Any = {"verify_signature": False, "verify_exp": False, "verify_aud": False}
_COORDINATE, _WRITE, _REVIEW = "board:coordinate", "board:write", "board:review"


@dataclass(frozen=True, slots=True)
class Door:
    """One door; a stored one is what an entry of `doors.json` says (bridge.md §7.1)."""

    url: str
    board: str
    role: str
    """The role of its seats; NAMED as long as a named door has none."""
    token: Secret
    kid: str
    """Key id of the token: it may be shown."""
    expires: int
    """Seconds since 1970; nobody checks it here, Central does."""
    joined_at: str = ""
    """Empty as long as the door is not stored."""
    seat_names_used: tuple[str, ...] = ()

    @property
    def is_confined(self) -> bool:
        """Whether the token is for this board only: Central then founds no board for it (central.md §1.4)."""
        return _claims(self.token.reveal()).get("pursers_board") == self.board

    @property
    def natural_role(self) -> Literal["worker", "reviewer", "coordinator"]:
        """What the holder of the token may be, as the token says itself: the first of work, review, coordinate."""
        scope = _claims(self.token.reveal()).get("scope")
        scopes = scope.split() if isinstance(scope, str) else []
        if _WRITE not in scopes and _REVIEW in scopes:
            return "reviewer"
        if _WRITE not in scopes and _COORDINATE in scopes:
            return "coordinator"
        return "worker"


def decode(text: str, *, roles: tuple[str, ...] = (*SEAT_ROLES, NAMED)) -> Door:
    """The door that a string packs, not stored yet. Raises DoorsError with the bridge's text, for whatever input.

    `roles` are the roles that are taken (D11: the bridge takes no named door).
    """
    prefix, _, encoded = text.partition(".")
    if prefix != _PREFIX or not encoded or "." in encoded:
        raise DoorsError("door must use the prs1.<base64url-json> format")
    payload = _json_object(encoded)
    if not _PAYLOAD.fullmatch(encoded):
        raise DoorsError("door string payload is not valid base64url")
    return from_fields(payload, roles=roles)


def from_fields(payload: dict[str, object], *, roles: tuple[str, ...]) -> Door:
    """The door with these fields: u, b, r and t, and nothing else. Raises DoorsError with the bridge's text."""
    if payload.keys() != _FIELDS:
        raise DoorsError("door string JSON must contain exactly u, b, r, and t")
    fields = {name: value for name, value in payload.items() if isinstance(value, str) and value}
    if len(fields) != len(_FIELDS):
        raise DoorsError("door string fields must be non-empty strings")
    kid, expires, bound_to = _token_facts(fields["t"])
    if bound_to is not None and bound_to != fields["b"]:
        raise DoorsError("door board does not match its token board restriction")
    if not kid.strip():
        raise DoorsError("door token header must contain kid")
    url, board, role, token = (fields[name].strip() for name in "ubrt")
    if not (url and board and role and token):
        raise DoorsError("door fields must be non-empty strings")
    if role.lower() not in roles:
        raise DoorsError("door role is not supported")
    return Door(url, board, role.lower(), Secret(token), kid, expires)


def check_url(url: str, *, allow_remote: bool) -> None:
    """Raise DoorsError unless a door may send its token there: to this machine, or elsewhere if that was confirmed."""
    parts = usable(url)
    if parts is None:
        raise DoorsError("door URL must be an http or https URL")
    if "@" in parts.netloc:
        raise DoorsError("door URL must not include user information")
    if not allow_remote and not _is_loopback(parts.hostname or ""):
        raise DoorsError("remote door URL requires --allow-remote confirmation")


def usable(url: str) -> SplitResult | None:
    """The parts of a URL that could be Central's; None for anything else. User information is not looked at."""
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            return None
    except ValueError:
        return None
    return parts if url.isprintable() and " " not in url else None


def _json_object(encoded: str) -> dict[str, object]:
    """What the payload says, read as leniently as the bridge reads it first."""
    try:
        raw = base64.urlsafe_b64decode((encoded + "=" * (-len(encoded) % 4)).encode("ascii"))
        payload = json.loads(raw)
    except (ValueError, RecursionError):
        # `from None`: the error of json carries the whole text, and with it the token.
        raise DoorsError("door is not valid base64url JSON") from None
    if not isinstance(payload, dict):
        raise DoorsError("door payload must be a JSON object")
    return payload


def _token_facts(token: str) -> tuple[str, int, object]:
    """Key id, expiry and the board that the token is confined to (None: to none)."""
    try:
        header = jwt.get_unverified_header(token)
        claims = jwt.decode(token, options=_NO_CHECKS, algorithms=["RS256"])
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise DoorsError("door string contains a malformed token") from None
    kid, expires = header.get("kid"), claims.get("exp")
    if not isinstance(kid, str) or not kid or type(expires) is not int:
        raise DoorsError("door token must contain kid and integer exp")
    return kid, expires, claims.get("pursers_board")


def _claims(token: str) -> dict[str, Any]:
    return jwt.decode(token, options=_NO_CHECKS, algorithms=["RS256"])


def _is_loopback(host: str) -> bool:
    name = host.rstrip(".").casefold()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
