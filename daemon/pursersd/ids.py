"""Identifiers: how they are derived and how a credential is named without showing it."""

import functools
import hashlib
import json
import secrets

RequestId = str | int
"""What names a request of JSON-RPC; 1 and "1" are two ids."""


def agent_id(board_id: str, principal_id: str, agent_name: str) -> str:
    """Central's id of a seat: `AI-` and the SHA-256 of the compact JSON array (bridge.md §10)."""
    triple = json.dumps([board_id, principal_id, agent_name], separators=(",", ":"))
    return "AI-" + hashlib.sha256(triple.encode("ascii")).hexdigest()


def journal_uri(board_id: str) -> str:
    """The resource that is cued for each journal event of a board (central.md §4.2)."""
    return f"board://{board_id}/journal"


@functools.lru_cache(4096)
def agent_uri(board_id: str, agent: str) -> str:
    """The resource that is cued when the seat is a recipient; listening to it makes the seat live for offers."""
    return f"board://{board_id}/agent/{agent}"


def instance_uri(instance_id: str) -> str:
    """The resource that pins a stream to one Central instance."""
    return f"pursers-instance://binding/{instance_id}"


def fingerprint(secret: str) -> str:
    """A short name for a credential: twelve hex digits of its SHA-256."""
    return hashlib.sha256(secret.encode()).hexdigest()[:12]


def new_conversation_id() -> str:
    """A conversation id: short enough to type, unlikely enough to be unique for one user."""
    return "c-" + secrets.token_hex(6)


def digest_uri(board_id: str) -> str:
    """The resource that is the digest of a board (bridge.md §1.2)."""
    return f"board://{board_id}/digest"
