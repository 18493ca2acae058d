"""Change one table of a TOML text and keep every other byte (docs/decisions/0026-host-files.md).

The text is broken into statements, headers and `key = value`, whose offsets are known; tables are cut, filled and added
there. What is written comes from tomlkit, and tomlkit changes tables that stand on one line or have dotted keys. It does not
change the others: it moves tables whose parents stand in several places, and counts the comment above a table to the one
before it.
"""

import re
import tomllib
from dataclasses import dataclass
from typing import Any, cast

from pursersctl.hosts_text import Broken, TooClever, newline

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]|\n|[^"\'#\[\]{}\n]+',
    re.DOTALL,
)
Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A header or a key with its value."""

    start: int
    end: int
    """Behind its line, comment and newline included."""
    keys: Keys
    """From the top of the document."""
    header: bool
    value: tuple[int, int] = (0, 0)
    """Where the value stands; not of a header."""


def load(text: str) -> Any:
    """The value of a text. Raises Broken."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Broken(str(error)) from None


def put(text: str, keys: Keys, value: Any) -> str:
    """The text with the value at `keys` set; a table that is missing comes at the end. Raises Broken, TooClever."""
    parent = _at(load(text), keys[:-1])
    statements = _statements(text)
    end = newline(text)
    if isinstance(value, dict) and not (isinstance(parent, dict) and keys[-1] in parent):
        if _allows_table(text, keys):
            new = "".join(_tables(keys, value)).replace("\n", end)
            return _lined(text) + (end if text.strip() else "") + new
    elif parent is not None and not isinstance(value, dict):
        for found in statements:
            if found.keys == keys and not found.header:
                return text[: found.value[0]] + _value(value) + text[found.value[1] :]
        section = _section(statements, keys[:-1])
        if section and keys[-1] not in parent:
            at = section[-1].end
            return _lined(text[:at]) + f"{_name(keys[-1])} = {_value(value)}" + end + text[at:]
    return _edited(text, keys, value)


def drop(text: str, keys: Keys) -> str:
    """The text without the value at `keys`, and without the tables below it. Raises Broken, TooClever."""
    if keys[-1] not in (_at(load(text), keys[:-1]) or {}):
        return text
    statements = _statements(text)
    gone = [found for found in statements if found.keys[: len(keys)] == keys]
    if not gone:
        return _edited(text, keys, None)
    for found in reversed(_runs(statements, gone)):
        text = _cut(text, *found)
    return text


def _runs(statements: list[_Statement], gone: list[_Statement]) -> list[tuple[int, int]]:
    """Where statements stand that follow one another: one cut for each run."""
    runs: list[tuple[int, int]] = []
    last = -2
    for index, found in enumerate(statements):
        if found not in gone:
            continue
        runs = [*runs[:-1], (runs[-1][0], found.end)] if index == last + 1 else [*runs, (found.start, found.end)]
        last = index
    return runs


def _cut(text: str, start: int, end: int) -> str:
    """Without this part, and without the blank line before it if nothing or another one follows."""
    before, after = text[:start], text[end:]
    blank = before.endswith(("\n\n", "\n\r\n"))
    if blank and (not after or after.startswith(("\n", "\r\n"))):
        before = before[: -2 if before.endswith("\r\n") else -1]
    return before + after


def _section(statements: list[_Statement], keys: Keys) -> list[_Statement]:
    """The header of a table with the statements below it; empty if there is no such header."""
    section: list[_Statement] = []
    for found in statements:
        if found.header and section:
            break
        if section or (found.header and found.keys == keys):
            section.append(found)
    return section


def _statements(text: str) -> list[_Statement]:
    """The statements of a text that `load` has taken."""
    found: list[_Statement] = []
    at = 0
    table: Keys = ()
    while at < len(text):
        start = at
        depth, equals, stop, comment = 0, -1, -1, -1
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                raise TooClever(f"offset {at} is not understood")
            word = token[0]
            if word == "\n" and depth == 0:
                at = token.end()
                break
            if word in "[{" or word in "]}":
                depth += 1 if word in "[{" else -1
            elif depth == 0 and equals < 0 and word[0] not in "\"'#" and "=" in word:
                equals = at + word.index("=")
            elif word[0] == "#" and depth == 0 and comment < 0:
                comment = at
            at = token.end()
        stop = comment if comment >= 0 else at
        body = text[start:stop].strip()
        if not body:
            continue
        if equals < 0:
            table = _keys(body.strip("[]"))
            found.append(_Statement(start, at, table, True))
        else:
            value = text[equals + 1 : stop]
            first = equals + 1 + len(value) - len(value.lstrip())
            keys = (*table, *_keys(text[start:equals]))
            found.append(_Statement(start, at, keys, False, (first, first + len(value.strip()))))
    return found


def _keys(text: str) -> Keys:
    """A dotted key as its parts."""
    keys: list[str] = []
    value = tomllib.loads(f"{text.strip()} = 0")
    while isinstance(value, dict):
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)


def _at(value: Any, keys: Keys) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _edited(text: str, keys: Keys, value: Any) -> str:
    """What tomlkit makes of it; None removes."""
    import tomlkit  # here, because it costs as much time as the rest of a command
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        parent = cast(Any, document)
        for key in keys[:-1]:
            parent = parent[key]
        if value is None:
            del parent[keys[-1]]
        else:
            parent[keys[-1]] = value
        return tomlkit.dumps(document)
    except (TOMLKitError, KeyError, TypeError, ValueError) as error:
        raise TooClever(f"tomlkit cannot change {'.'.join(keys)}: {error}") from None


def _allows_table(text: str, keys: Keys) -> bool:
    """Whether a table may come at the end: not if the one above it stands on one line or has dotted keys."""
    try:
        tomllib.loads(_lined(text) + f"[{'.'.join(_name(key) for key in keys)}]\n")
    except tomllib.TOMLDecodeError:
        return False
    return True


def _tables(keys: Keys, value: dict[str, Any]) -> list[str]:
    """A table with its simple values, then the tables in it."""
    lines = [f"[{'.'.join(_name(key) for key in keys)}]\n"]
    lines += [f"{_name(key)} = {_value(inner)}\n" for key, inner in value.items() if not isinstance(inner, dict)]
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            lines += ["\n", *_tables((*keys, key), inner)]
    return lines


def _name(key: str) -> str:
    import tomlkit

    return tomlkit.key(key).as_string()


def _value(value: Any) -> str:
    import tomlkit

    return str(tomlkit.item(value).as_string())


def _lined(text: str) -> str:
    return text if text.endswith("\n") or not text else text + newline(text)
