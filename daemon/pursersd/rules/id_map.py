"""Full seat and principal ids in ticket reads: Central abbreviates them and appends a table (central.md §2.5)."""

import re
from collections.abc import Mapping

_ALIAS = re.compile(r"\b(?:AI|PR)-[0-9a-f]{8,64}\b")
_FULL = re.compile(r"(?:AI|PR)-[0-9a-f]{64}")


def expand_ids(result: Mapping[str, object]) -> dict[str, object]:
    """A copy of a ticket_get or ticket_list result in which every abbreviated id is whole again, in every string.

    Entries of the table that do not belong together are ignored, so that a wrong table cannot give a ticket away.
    """
    raw = result.get("id_map")
    full = {short: whole for short, whole in raw.items() if _pair(short, whole)} if isinstance(raw, dict) else {}
    if not full:
        return dict(result)
    return {key: value if key == "id_map" else _expanded(value, full) for key, value in result.items()}


def _pair(short: object, whole: object) -> bool:
    return (
        isinstance(short, str)
        and isinstance(whole, str)
        and _ALIAS.fullmatch(short) is not None
        and _FULL.fullmatch(whole) is not None
        and whole.startswith(short)
    )


def _expanded(value: object, full: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return _ALIAS.sub(lambda found: full.get(found[0], found[0]), value)
    if isinstance(value, dict):
        return {key: _expanded(nested, full) for key, nested in value.items()}
    if isinstance(value, list):
        return [_expanded(nested, full) for nested in value]
    return value
