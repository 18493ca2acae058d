"""Doors as a test stores them, for us and, in their file, for the bridge."""

import json
from pathlib import Path

import jwt

from pursersd.rules.door import Door
from pursersd.secret import Secret

URL = "http://127.0.0.1:9001/mcp"


def door(board: str, role: str = "worker", *, url: str = URL, names: tuple[str, ...] = (), serial: int = 1) -> Door:
    """A door with a token of its own; nobody signed it, which only Central would notice."""
    kid, expires = f"door-{board}-{role}-v{serial}", 2_000_000_000
    claims = {"sub": f"door:{board}:{role}", "exp": expires}
    token = jwt.encode(claims, "no secret, but long enough to sign with", "HS256", headers={"kid": kid})
    return Door(url, board, role, Secret(token), kid, expires, "2026-11-01T00:00:00+00:00", names)


def write(folder: Path, *doors: Door) -> None:
    """The file in which the bridge keeps them (bridge.md §7.1)."""
    entries = [
        {
            "u": door.url,
            "b": door.board,
            "r": door.role,
            "t": door.token.reveal(),
            "kid": door.kid,
            "exp": door.expires,
            "joined_at": door.joined_at,
            "seat_names_used": list(door.seat_names_used),
        }
        for door in doors
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "doors.json").write_text(json.dumps({"schema_version": 1, "doors": entries}))
