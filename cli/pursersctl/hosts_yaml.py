"""Change one entry below one key of a YAML text and keep every other byte (docs/decisions/0026-host-files.md).

Not YAML as a whole: the block mappings that Goose writes, in which a line belongs to the last key above it that is indented
less. What stands below other keys, in whatever form, is kept as lines and not understood. Anchors, tabs and flow mappings on
the way to the entry are refused.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from pursersctl.hosts_text import Broken, TooClever, newline

_KEY = re.compile(
    r"""(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s'"#&*!|>%@`\[\]{},?:-][^#\n]*?|-?[\w./-]+)\s*:(?=\s|$)"""
)
_PLAIN = re.compile(r"[A-Za-z/][\w./+-]*(?: [\w./+-]+)*")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_EMPTY = ("", "~", "null", "{}")


@dataclass(frozen=True, slots=True)
class _Item:
    """One key of a block mapping."""

    key: str
    first: int
    """The line of the key."""
    last: int
    """Behind the last line that belongs to it; blank lines and comments at its end that are indented as the key do not."""
    colon: int
    """Behind the colon on that line."""
    rest: str
    """What follows there, without a comment."""


def load(text: str) -> Any:
    """The top of a text: of each key its lines, but for mappings of mappings of simple values, which are read.

    Raises Broken, TooClever.
    """
    lines = _lines(text)
    return {item.key: _value(lines, item, 2) for item in _items(lines, 0, len(lines), 0)}


def put(text: str, keys: tuple[str, ...], value: Any) -> str:
    """The text with the value at `keys` set; mappings on the way are made where they are missing. Raises as `load`."""
    lines, end = _lines(text), newline(text)
    first, last, indent = 0, len(lines), 0
    at: int | None = None
    for depth, key in enumerate(keys):
        items = _items(lines, first, last, indent)
        item = next((item for item in items if item.key == key), None)
        final = depth == len(keys) - 1
        if item is None or final:
            new = [line + end for line in _written(keys[depth:], value, indent)]
            if item is not None:
                return "".join(lines[: item.first] + new + lines[item.last :])
            at = at if at is not None else items[-1].last if items else last
            return _joined(lines[:at], new, lines[at:], end)
        first, last = item.first + 1, item.last
        below = next((_depth(line) for line in lines[first:last] if _says(line)), None)
        if below is None:
            if item.rest not in _EMPTY:
                raise TooClever(f"{key} is not a block of keys")
            if item.rest:
                line = lines[item.first]
                lines[item.first] = line[: item.colon] + line[item.colon :].replace(f" {item.rest}", "", 1)
            at = first
        elif item.rest:
            raise TooClever(f"{key} is not a block of keys")
        indent = below if below is not None else indent + 2
        if below == 0:
            raise TooClever(f"{key} is not a block of keys")
    raise AssertionError("no keys")


def drop(text: str, keys: tuple[str, ...]) -> str:
    """The text without the value at `keys`; a mapping that becomes empty is written `{}`. Raises as `load`."""
    lines = _lines(text)
    first, last, indent = 0, len(lines), 0
    parent: _Item | None = None
    for depth, key in enumerate(keys):
        items = _items(lines, first, last, indent)
        item = next((item for item in items if item.key == key), None)
        if item is None:
            return text
        if depth == len(keys) - 1:
            if len(items) == 1 and parent is not None:
                line = lines[parent.first]
                lines[parent.first] = line[: parent.colon] + " {}" + line[parent.colon :]
            return "".join(lines[: item.first] + lines[item.last :])
        parent, first, last = item, item.first + 1, item.last
        indent = next((_depth(line) for line in lines[first:last] if _says(line)), indent + 2)
    raise AssertionError("no keys")


def _lines(text: str) -> list[str]:
    """The lines with their ends; only \\n ends one here, as for the offsets of an editor."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _says(line: str) -> bool:
    """Whether a line is more than blanks and a comment."""
    bare = line.strip()
    return bool(bare) and not bare.startswith("#")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _items(lines: list[str], first: int, last: int, indent: int) -> list[_Item]:
    """The keys of the block mapping in these lines, whose keys are indented by `indent`."""
    found: list[_Item] = []
    for number in range(first, last):
        line = lines[number]
        depth = _depth(line)
        if not _says(line):
            if found and depth > indent and line.strip():  # may be the end of a text
                found[-1] = replace(found[-1], last=number + 1)
            continue
        if line[depth] == "\t":
            raise TooClever(f"line {number + 1}: a tab where YAML wants blanks")
        if found and (depth > indent or (depth == indent and line[depth:].startswith(("- ", "-\n", "-\r")))):
            found[-1] = replace(found[-1], last=number + 1)
            continue
        if indent == 0 and line.startswith("---") and not found and not line[3:].strip():
            continue
        match = _KEY.match(line, depth)
        if depth != indent or not match:
            raise Broken(f"line {number + 1}: a key and a colon should stand here")
        rest = _uncommented(line[match.end() :])
        found.append(_Item(_scalar_text(match["key"]), number, number + 1, match.end(), rest))
    if len({item.key for item in found}) < len(found):
        raise Broken("a key stands there twice")
    return found


def _value(lines: list[str], item: _Item, levels: int) -> Any:
    """The value of a key: of mappings down to `levels` their values, else the lines as they are."""
    inner = lines[item.first + 1 : item.last]
    depth = next((_depth(line) for line in inner if _says(line)), None)
    if depth is None and levels < 2:
        return _scalar(item.rest)
    if depth is None:
        return {} if levels and item.rest in _EMPTY else item.rest
    if item.rest:
        text = item.rest + "\n" + "".join(inner)
        # Of a text that keeps its last line end, it is part of the value.
        return text if item.rest[0] in "|>" and "-" not in item.rest else text.rstrip("\r\n")
    if all(line.lstrip(" ").startswith("-") for line in inner if _says(line)):
        return [_scalar(_uncommented(line.strip()[1:])) for line in inner if _says(line)]
    if levels < 0:
        return "".join(inner).rstrip("\r\n")
    try:
        return {
            below.key: _value(lines, below, levels - 1) for below in _items(lines, item.first + 1, item.last, depth)
        }
    except (Broken, TooClever):
        return "".join(inner).rstrip("\r\n")


def _uncommented(text: str) -> str:
    """A value on one line without the comment behind it."""
    quote = ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote and not (quote == '"' and text[at - 1] == "\\") else quote
        elif char in "\"'" and text[:at].strip(" [,{") == "":
            quote = char
        elif char == "#" and (at == 0 or text[at - 1] in " \t"):
            return text[:at].strip()
    return text.strip()


def _scalar(text: str) -> Any:
    """A value on one line. What is neither quoted nor a list is taken as YAML 1.2 takes it."""
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(part.strip()) for part in _parts(text[1:-1])]
    if text in _EMPTY:
        return {} if text == "{}" else None
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?\d{1,15}", text) else _scalar_text(text)


def _scalar_text(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return text


def _parts(text: str) -> list[str]:
    found = re.findall(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]+?)\s*(?:,|$)""", text)
    return [part for part in found if part]


def _written(keys: tuple[str, ...], value: Any, indent: int) -> list[str]:
    """The lines of `value` below `keys`, two blanks for each level."""
    if len(keys) > 1:
        return [" " * indent + _plain(keys[0]) + ":", *_written(keys[1:], value, indent + 2)]
    begin = " " * indent + _plain(keys[0]) + ":"
    if isinstance(value, dict) and value:
        return [begin, *(line for key, inner in value.items() for line in _written((key,), inner, indent + 2))]
    if isinstance(value, list) and value:
        return [begin, *(" " * indent + "- " + _plain(item) for item in value)]
    return [f"{begin} {_plain(value)}"]


def _plain(value: Any) -> str:
    """A simple value; JSON is YAML, too."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


def _joined(before: list[str], new: list[str], after: list[str], end: str) -> str:
    """The lines one behind the other; one that had no end gets one, and the end of the text stays as it was."""
    if before and not before[-1].endswith("\n"):
        before = [*before[:-1], before[-1] + end]
        if not after:
            new = [*new[:-1], new[-1].rstrip("\r\n")]
    return "".join(before + new + after)
