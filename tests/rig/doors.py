"""Doors for tests: with tokens that nobody accepts, and real ones, issued by the bridge's own door tool."""

import base64
import json
import subprocess
from pathlib import Path

import jwt

from rig import processes

DOOR_TOOL = str(processes.BIN / "pursers-door")
TOOL_TIMEOUT = 30.0
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

    def __init__(self, *, url: str, issuer: str, jwks: Path, keys: Path) -> None:
        self.url = url
        self._where = ["--central-url", url, "--issuer", issuer, "--keys-dir", str(keys)]
        self._jwks = ["--jwks", str(jwks)]

    def issue(self, board: str, role: str = "worker", *, verb: str = "issue") -> str:
        """A door for a board and role; the same key as long as it is not rotated."""
        return self._run(verb, "--board", board, "--role", role, *self._where, *self._jwks)

    def named(self, board: str, subject: str, scope: str) -> str:
        """A named door."""
        who = ["--board", board, "--named", "--sub", subject, "--scope", scope]
        return self._run("issue", *who, *self._where, *self._jwks)

    def rotate(self, board: str, role: str = "worker") -> str:
        """A door with a new key; the old one is refused from now on."""
        return self.issue(board, role, verb="rotate")

    def revoke(self, kid: str) -> None:
        """Let Central refuse the tokens of a key."""
        self._run("revoke-kid", kid, *self._jwks)

    @staticmethod
    def _run(*arguments: str) -> str:
        done = subprocess.run(
            [DOOR_TOOL, *arguments], env=processes.environment(), capture_output=True, text=True, timeout=TOOL_TIMEOUT
        )
        assert done.returncode == 0, f"pursers-door {arguments[0]}: {done.stderr}"
        return done.stdout.strip()


def kid_of(door: str) -> str:
    """Key id of a door's token."""
    fields = json.loads(base64.urlsafe_b64decode(door.partition(".")[2] + "=="))
    return str(jwt.get_unverified_header(fields["t"])["kid"])
