"""Names of seats that come through a door: which are safe, and which are made when none is given (bridge.md §9)."""

import re
from collections.abc import Container

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def is_safe(name: str) -> bool:
    """Whether a name can be used everywhere: 1 to 80 letters, digits, dots, underscores, hyphens, no mark in front."""
    return bool(_SAFE.fullmatch(name))


def automatic(role: str, hostname: str, taken: Container[str]) -> str:
    """`<role>-<short-host>-<n>` with the smallest n that is not taken."""
    stem = f"{role}-{short_host(hostname, 72 - len(role))}"
    number = 1
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"


def short_host(hostname: str, limit: int) -> str:
    """The first label of a host name as part of a seat's name, at most `limit` characters; `host` if nothing is left."""
    label = hostname.split(".", 1)[0].strip().lower() or "host"
    safe = (
        "".join(char if (char.isascii() and char.isalnum()) or char in "-_" else "-" for char in label).strip("-")
        or "host"
    )
    return safe[: max(1, limit)].rstrip("-") or "host"
