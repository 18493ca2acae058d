"""Doors for tests: with tokens that nobody accepts, and real ones, issued by the bridge's own door tool."""

import base64
import contextlib
import io
import json

import door_admin
import jwt

from rig import canary
from rig.central import Central

URL = "http://127.0.0.1:8766/mcp"
KEY = "not a secret, and long enough for what signs with it"


def token(kid: object = "door-b-worker-v1", exp: object = 2000000000, **claims: object) -> str:
    """A JWT that is well formed and that no Central accepts."""
    headers = {} if kid is None else {"kid": kid}
    body = {"scope": "board:read board:write", **claims} | ({} if exp is None else {"exp": exp})
    segments = ({"alg": "HS256", "typ": "JWT", **headers}, body)
    encoded = ".".join(segment(json.dumps(part)) for part in segments)
    return f"{encoded}.{segment(KEY)}"


def segment(text: str | bytes) -> str:
    """Unpadded base64url."""
    raw = text.encode() if isinstance(text, str) else text
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def packed(u: object = URL, b: object = "b", r: object = "worker", t: object = None, **more: object) -> str:
    """A door string with these fields, also with wrong ones."""
    fields = {"u": u, "b": b, "r": r, "t": token() if t is None else t, **more}
    return "prs1." + segment(json.dumps(fields))


class Issuer:
    """The operator of a Central who issues doors for it with `pursers-door`."""

    def __init__(self, central: Central) -> None:
        self._central = central
        self._jwks = ["--jwks", str(central.instance / "jwks.json")]
        where = {"--central-url": central.url, "--issuer": central.issuer, "--keys-dir": str(central.folder / "keys")}
        self._where = [word for pair in where.items() for word in pair]

    def admit(self, board: str, role: str = "worker") -> None:
        """Make the holders of the board's doors for this role members of the board."""
        subject, client = f"door:{board}:{role}", f"door-{board}-{role}"
        membership = "reviewer" if role == "reviewer" else "member"
        self._central.admit(board, subject, membership, client)

    def issue(self, board: str, role: str = "worker", *, verb: str = "issue") -> str:
        """A door for a board and role; the same key as long as it is not rotated."""
        return self._door(verb, "--board", board, "--role", role, *self._where, *self._jwks)

    def named(self, board: str, subject: str, scope: str, *, verb: str = "issue") -> str:
        """A named door; a board has one key for all of them."""
        who = ["--board", board, "--named", "--sub", subject, "--scope", scope]
        return self._door(verb, *who, *self._where, *self._jwks)

    def rotate(self, board: str, role: str = "worker") -> str:
        """A door with a new key; the old one is refused from now on."""
        return self.issue(board, role, verb="rotate")

    def revoke(self, kid: str) -> None:
        """Let Central refuse the tokens of a key."""
        self._run("revoke-kid", kid, *self._jwks)

    def _door(self, *arguments: str) -> str:
        door = self._run(*arguments)
        canary.watch(door)
        canary.watch(token_of(door))
        return door

    @staticmethod
    def _run(*arguments: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = door_admin.main(arguments)
        assert status == 0, f"pursers-door {arguments[0]}"
        return printed.getvalue().strip()


def token_of(door: str) -> str:
    """The token in a door."""
    return str(json.loads(base64.urlsafe_b64decode(door.partition(".")[2] + "=="))["t"])


def kid_of(door: str) -> str:
    """Key id of a door's token."""
    return str(jwt.get_unverified_header(token_of(door))["kid"])
