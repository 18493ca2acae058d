"""What a seat declares for dispatch when it joins (bridge.md §6.1).

One declared seat makes its whole board hand out work by offers (central.md §10), so nothing is declared by default.
"""

from collections.abc import Mapping

from pursersd.rules.environment import Reader
from pursersd.rules.hosts import HostProfile

_VARIABLES = ("TIER_MAX", "SKILLS", "CAN_REVIEW", "CAN_WORK", "MODEL", "PROVIDER")
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def capabilities(found: Reader, host: HostProfile) -> dict[str, object] | None:
    """The declared capabilities, or None for a seat that declares nothing."""
    declared: dict[str, object] = {}
    given = [f"PURSERS_{name}" for name in _VARIABLES if found.value(f"PURSERS_{name}")]
    if given:
        declared = {"host": host.known_name, "max_parallel": 1}
        declared |= _tier(found)
        if found.value("PURSERS_SKILLS"):
            declared["skills"] = sorted({skill.strip() for skill in found.value("PURSERS_SKILLS").split(",")} - {""})
        declared |= _flag(found, "PURSERS_CAN_REVIEW", "can_review") | _flag(found, "PURSERS_CAN_WORK", "can_work")
        texts = (("PURSERS_MODEL", "model"), ("PURSERS_PROVIDER", "provider"))
        declared |= {key: found.value(name) for name, key in texts if found.value(name)}
    if found.environ.get("PURSERS_LEGACY_TOOLS") == "1":
        declared["legacy_tools"] = True
        given.append("PURSERS_LEGACY_TOOLS")
    if given:
        found.came("capabilities", *given)
    return declared or None


def newcomer_capabilities(found: Reader, host: HostProfile, role: str) -> dict[str, object]:
    """What a seat declares that joins through a door: always something, and that it does what its role says."""
    declared = capabilities(found, host) or {}
    does = {"can_work": role == "worker", "can_review": role == "reviewer"}
    return {"host": host.known_name, "max_parallel": 1} | declared | does


def frozen(declared: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    """A declaration as something that can be compared and used as a key."""
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in sorted(declared.items()))


def _tier(found: Reader) -> dict[str, object]:
    raw = found.value("PURSERS_TIER_MAX")
    if raw in ("1", "2", "3"):
        return {"tier_max": int(raw)}
    if raw:
        found.problem("PURSERS_TIER_MAX must be 1, 2, or 3", "Set it to one of these, or unset it.")
    return {}


def _flag(found: Reader, name: str, key: str) -> dict[str, object]:
    raw = found.value(name).lower()
    if raw in _TRUE or raw in _FALSE:
        return {key: raw in _TRUE}
    if raw:
        found.problem(f"{name} must be true or false", "Set it to true or false, or unset it.")
    return {}
