"""Change a configuration text, in whatever format, and make sure that nothing else changes."""

import copy
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pursersctl import hosts_jsonc, hosts_toml, hosts_yaml
from pursersctl.hosts_known import Format, Path
from pursersctl.hosts_text import Broken, TooClever

_EDITORS: dict[Format, ModuleType] = {"json": hosts_jsonc, "toml": hosts_toml, "yaml": hosts_yaml}


@dataclass(frozen=True, slots=True)
class Edit:
    """One value to set or, if `gone`, to remove."""

    keys: Path
    value: Any = None
    gone: bool = False


def load(kind: Format, text: str) -> Any:
    """The value of a text. Raises hosts_text.Broken or hosts_text.TooClever."""
    return _EDITORS[kind].load(text)


def at(value: Any, keys: Path) -> Any:
    """What stands at `keys`, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def changed(kind: Format, text: str, edits: list[Edit]) -> str:
    """The text after the edits. Raises Broken, or TooClever if it cannot be done without changing something else.

    With what is removed an object around it may go that holds nothing else: TOML has no empty ones.
    """
    editor = _EDITORS[kind]
    for edit in edits:
        wanted = _applied(editor.load(text), edit)
        text = editor.drop(text, edit.keys) if edit.gone else editor.put(text, edit.keys, edit.value)
        found = editor.load(text)
        if found != wanted and not (edit.gone and _pruned(found, edit.keys) == _pruned(wanted, edit.keys)):
            raise TooClever(f"{'.'.join(edit.keys)} cannot be changed alone")
    return text


def outermost_missing(data: Any, keys: Path) -> Path:
    """The first part of `keys` at which there is nothing: what would be made for a value there."""
    return next((keys[:depth] for depth in range(1, len(keys) + 1) if at(data, keys[:depth]) is None), keys)


def is_without(kind: Format, text: str, data: Any, keys: Path) -> bool:
    """Whether a text holds `data` without what stands at `keys`, and perhaps without the objects that are empty then."""
    try:
        found = load(kind, text)
    except (Broken, TooClever):
        return False
    return at(found, keys) is None and _pruned(found, keys) == _pruned(data, keys)


def is_hollow(value: Any) -> bool:
    """Whether there is nothing but empty objects within one another."""
    return isinstance(value, dict) and all(is_hollow(inner) for inner in value.values())


def _pruned(data: Any, keys: Path) -> Any:
    """The value without what stands at `keys` and without what is empty above it."""
    data = _applied(data, Edit(keys, gone=True))
    for depth in range(len(keys) - 1, 0, -1):
        if not at(data, keys[:depth]):
            data = _applied(data, Edit(keys[:depth], gone=True))
    return data


def undone(data: Any, edits: list[Edit]) -> list[Edit]:
    """The edits that bring back what `data` holds now, in the order in which they must be made."""
    back: list[Edit] = []
    for edit in edits:
        value = at(data, edit.keys)
        if value is None:
            back.insert(0, Edit(outermost_missing(data, edit.keys), gone=True))
        else:
            back.insert(0, Edit(edit.keys, value))
        data = _applied(data, edit)
    return back


def _applied(data: Any, edit: Edit) -> Any:
    """The value after an edit. What is null on the way counts as missing, as it does for YAML."""
    data = copy.deepcopy(data)
    inner = data
    for key in edit.keys[:-1]:
        if not isinstance(inner, dict):
            raise TooClever(f"{key} stands in something that is no object")
        if inner.get(key) is None:
            if edit.gone:
                return data
            inner[key] = {}
        inner = inner[key]
    if not isinstance(inner, dict):
        raise TooClever(f"{'.'.join(edit.keys[:-1])} is not an object")
    if edit.gone:
        inner.pop(edit.keys[-1], None)
    else:
        inner[edit.keys[-1]] = edit.value
    return data
