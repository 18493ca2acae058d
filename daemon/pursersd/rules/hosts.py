"""How long a host lets a tool call block, and what else depends on the kind of host (bridge.md §2.2)."""

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_HOST = "codex"
PROGRESS_EVERY_S = 300.0

TIMEOUTS_S: Mapping[str, int] = {
    "codex": 620,
    "codex-cli": 620,
    "zed": 620,
    "goose": 300,
    "claude-code": 21_600,
    "claude-desktop": 240,
    "headless": 21_600,
}
"""How long each known host waits for the answer of a tool call, in seconds."""


@dataclass(frozen=True, slots=True)
class HostProfile:
    """What a kind of host means for a wait."""

    name: str
    """As the host was named, for display; may be a name that we do not know."""
    timeout_s: int
    margin_s: int
    block_limit_s: int
    """The longest `timeout_s` that a wait may have."""
    progress_every_s: float | None
    """How often a wait reports progress; None for never."""
    platform: str | None
    """The `agent_platform` of a join; None to send none."""

    @property
    def keeps_closed_windows(self) -> bool:
        """Whether its servers outlive the windows of their conversations, so that a live one proves nothing."""
        return self.name in ("codex", "codex-cli")

    @property
    def known_name(self) -> str:
        """The name to tell Central, which expects one of those that the bridge knows."""
        return self.name if self.name in TIMEOUTS_S else DEFAULT_HOST


def profile(host: str | None, timeout_override: str | None) -> tuple[HostProfile, str | None]:
    """The profile for PURSERS_HOST and PURSERS_HOST_TIMEOUT_S, and a note about what of them was ignored.

    A host that we do not know may be the least patient one: it gets the shortest block limit that we know.
    """
    notes = []
    name = (host or "").strip().lower() or DEFAULT_HOST
    limits = name
    timeout_s = _override(timeout_override)
    if timeout_s is None:
        if name not in TIMEOUTS_S:
            limits = _strictest()
            notes.append(f"PURSERS_HOST names no known host; using the limits of {limits}, the shortest")
        timeout_s = TIMEOUTS_S[limits]
        if (timeout_override or "").strip():
            notes.append(f"PURSERS_HOST_TIMEOUT_S must be an integer above 1; using {timeout_s}")
    return (
        HostProfile(
            name=name,
            timeout_s=timeout_s,
            margin_s=_margin_s(limits, timeout_s),
            block_limit_s=_block_limit_s(limits, timeout_s),
            progress_every_s=PROGRESS_EVERY_S if name == "claude-code" else None,
            platform="zed" if name == "zed" else None,
        ),
        "; ".join(notes) or None,
    )


def _strictest() -> str:
    """The known host that lets a call block for the shortest time."""
    return min(TIMEOUTS_S, key=lambda name: _block_limit_s(name, TIMEOUTS_S[name]))


def _block_limit_s(name: str, timeout_s: int) -> int:
    return max(1, timeout_s - _margin_s(name, timeout_s))


def _override(raw: str | None) -> int | None:
    try:
        value = int((raw or "").strip())
    except ValueError:
        return None
    return value if value > 1 else None


def _margin_s(name: str, timeout_s: int) -> int:
    margin_s = min(60, max(30, -(-timeout_s // 10)))
    if name == "claude-desktop":
        margin_s = max(margin_s, 40)
    return min(timeout_s - 1, margin_s)
