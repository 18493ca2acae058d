"""Change one member of a JSON text with comments and keep every other byte (docs/decisions/0026-host-files.md).

`parse` is a tokenizer and parser that remembers where each object's members begin and end. `put` and `drop` cut and insert
at these offsets. Comments and trailing commas are understood wherever they stand; none is added.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from pursersctl.hosts_known import Extra
from pursersctl.hosts_text import Broken, TooClever, indentation, newline, position

DEPTH_LIMIT = 200
"""Objects and lists within one another; hosts have about five."""

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[-+.\w]+")


@dataclass(slots=True)
class Member:
    """One `"key": value` of an object."""

    key: str
    start: int
    """Where the key begins."""
    value: "Node"
    comma: int | None = None
    """Where the comma behind it stands."""


@dataclass(slots=True)
class Node:
    """A value and where it stands; members only of an object."""

    start: int
    end: int
    value: Any
    members: list[Member] | None = None

    def member(self, key: str) -> Member | None:
        """The member of that name; of several the last one, which is the one that counts."""
        return next((found for found in reversed(self.members or []) if found.key == key), None)


@dataclass(slots=True)
class _Parser:
    text: str
    at: int = 0
    depth: int = 0
    extras: set[Extra] = field(default_factory=set)
    """What was found so far that JSON does not have."""
    line_comments: list[tuple[int, int]] = field(default_factory=list)
    """Where those begin and end that last to the end of their line."""

    def broken(self, what: str) -> Broken:
        return Broken(f"{position(self.text, self.at)}: {what}")

    def skip(self) -> None:
        """Move to the next token."""
        while True:
            self.at = _matched(_SPACE, self.text, self.at)
            if not self.text.startswith(("//", "/*"), self.at):
                return
            found = _COMMENT.match(self.text, self.at)
            if not found:
                raise self.broken("a comment has no end")
            self.extras.add("comment")
            if found[0].startswith("//"):
                self.line_comments.append(found.span())
            self.at = found.end()

    def peek(self) -> str:
        self.skip()
        return self.text[self.at : self.at + 1]

    def node(self) -> Node:
        match self.peek():
            case "":
                raise self.broken("the text ends where a value should stand")
            case "{":
                return self.nested(self.members)
            case "[":
                return self.nested(self.items)
            case '"':
                start, value = self.at, self.string()
                return Node(start, self.at, value)
            case _:
                return self.word()

    def nested(self, content: Any) -> Node:
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise self.broken("objects are nested too deeply")
        start = self.at
        self.at += 1
        value, members = content()
        self.at += 1
        self.depth -= 1
        return Node(start, self.at, value, members)

    def members(self) -> tuple[dict[str, Any], list[Member]]:
        found: list[Member] = []
        while self.peek() != "}":
            if found and found[-1].comma is None:
                raise self.broken("a comma or } is missing")
            if self.peek() != '"':
                raise self.broken("a name in quotes is missing")
            start, key = self.at, self.string()
            if self.peek() != ":":
                raise self.broken("a colon is missing")
            self.at += 1
            found.append(Member(key, start, self.node(), self.comma("}")))
        return {member.key: member.value.value for member in found}, found

    def items(self) -> tuple[list[Any], None]:
        found: list[Any] = []
        comma: int | None = 0
        while self.peek() != "]":
            if comma is None:
                raise self.broken("a comma or ] is missing")
            found.append(self.node().value)
            comma = self.comma("]")
        return found, None

    def comma(self, end: str) -> int | None:
        if self.peek() != ",":
            return None
        where = self.at
        self.at += 1
        if self.peek() == end:
            self.extras.add("trailing comma")
        return where

    def string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if not found:
            raise self.broken("a string has no end")
        try:
            value: str = json.loads(found[0])
        except ValueError:
            raise self.broken("a string has an unknown escape") from None
        self.at = found.end()
        return value

    def word(self) -> Node:
        start = self.at
        found = _WORD.match(self.text, start)
        try:
            value = json.loads(found[0], parse_constant=_no_constant) if found else None
        except ValueError:
            found = None
        if not found:
            raise self.broken("this is no value")
        self.at = found.end()
        return Node(start, self.at, value)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text that was understood."""

    root: Node
    extras: set[Extra]
    line_comments: list[tuple[int, int]]


def parse(text: str) -> Parsed:
    """The value of a text, with offsets. Raises Broken."""
    parser = _Parser(text)
    node = parser.node()
    if parser.peek():
        raise parser.broken("something follows the end")
    return Parsed(node, parser.extras, parser.line_comments)


def load(text: str) -> Any:
    """The value of a text; a blank one counts as an empty object. Raises Broken."""
    return parse(text).root.value if text.strip() else {}


def extras(text: str) -> set[Extra]:
    """What stands in a text, which `load` takes, that JSON does not have."""
    return parse(text).extras if text.strip() else set()


def put(text: str, keys: tuple[str, ...], value: Any) -> str:
    """The text with the member at `keys` set to `value`; objects on the way are made where they are missing.

    Raises Broken, or TooClever where something else than an object stands on the way.
    """
    if not text.strip():
        end = newline(text)
        return text + _Style("  ", end).written(_nest(keys, value), "") + end
    root = parse(text).root
    style = _style(text, root)
    node = root
    for depth, key in enumerate(keys):
        if node.members is None:
            raise TooClever(f"{'.'.join(keys[:depth]) or 'the top'} is not an object")
        member = node.member(key)
        if member is None:
            return _insert(text, node, key, _nest(keys[depth + 1 :], value), style)
        node = member.value
    if node.members is not None and "\n" not in text[node.start : node.end]:
        style = _Style(None, style.end)
    return text[: node.start] + style.written(value, indentation(text, node.start)) + text[node.end :]


def drop(text: str, keys: tuple[str, ...]) -> str:
    """The text without the member at `keys`, its comma and the blanks before it; as it is if there is no such member."""
    if not text.strip():
        return text
    while True:
        parsed = parse(text)
        node = parsed.root
        for key in keys[:-1]:
            member = node.member(key)
            if member is None:
                return text
            node = member.value
        member = node.member(keys[-1])
        if member is None:
            return text
        text = _cut(text, parsed, node, member)


@dataclass(frozen=True, slots=True)
class _Style:
    """How a text writes objects."""

    unit: str | None
    """One level of indentation; None: all on one line."""
    end: str

    def written(self, value: Any, base: str) -> str:
        text = json.dumps(value, indent=self.unit, ensure_ascii=False)
        return text.replace("\n", self.end + base)

    def pair(self, key: str, value: Any, base: str) -> str:
        return f"{json.dumps(key, ensure_ascii=False)}: {self.written(value, base)}"


def _style(text: str, root: Node) -> _Style:
    """The indentation is that of the first member at the top."""
    first = root.members[0].start if root.members else 0
    unit = indentation(text, first) if _begins_line(text, first) else ""
    return _Style(unit or "  ", newline(text))


def _cut(text: str, parsed: Parsed, node: Node, member: Member) -> str:
    members = node.members or []
    if len(members) == 1 and not text[node.start + 1 : member.start].strip():
        inside = text[member.value.end : node.end - 1]
        if inside.removeprefix(",") == newline(text) + indentation(text, node.start):
            return text[: node.start] + "{}" + text[node.end :]  # as `put` makes it of an empty object
    index = next(i for i, found in enumerate(members) if found is member)
    if index + 1 < len(members) and text[member.value.end : members[index + 1].start].strip() == ",":
        return text[: member.start] + text[members[index + 1].start :]
    start, end = member.start, member.value.end
    while text[start - 1] in " \t\r\n":
        start -= 1
    comma = member.comma if member.comma is not None else members[index - 1].comma if index else None
    follows = comma is not None and comma >= end and not text[end:comma].strip()
    in_comment = any(first < start <= last for first, last in parsed.line_comments)
    if in_comment and not _ends_line(text, comma + 1 if comma is not None and follows else end):
        start = text.index("\n", start) + 1  # the end of that line belongs to the comment
    cuts = [(start, end)] if comma is None else sorted([(start, end), (comma, comma + 1)])
    for first, last in reversed(cuts):
        text = text[:first] + text[last:]
    return text


def _insert(text: str, node: Node, key: str, value: Any, style: _Style) -> str:
    """The text with a new last member of the object `node`."""
    members = node.members or []
    outer = indentation(text, node.start)
    if members and "\n" not in text[node.start : node.end]:
        return _after(text, members[-1], " " + _Style(None, style.end).pair(key, value, ""))
    if members:
        own_line = _begins_line(text, members[-1].start)
        indent = indentation(text, members[-1].start) if own_line else outer + (style.unit or "")
        return _after(text, members[-1], style.end + indent + style.pair(key, value, indent))
    indent = outer + (style.unit or "")
    at = node.end - 1
    while text[at - 1] in " \t\r\n":
        at -= 1  # behind a comment, if there is one
    if text[at - 1] == "{":
        at = node.start + 1
    rest = "" if "\n" in text[at : node.end] else style.end + outer
    return text[:at] + style.end + indent + style.pair(key, value, indent) + rest + text[at:]


def _after(text: str, last: Member, pair: str) -> str:
    """The text with `pair` behind the object's last member and the comment that follows it on its line."""
    if last.comma is not None:
        at = _line_rest(text, last.comma + 1)
        return text[:at] + pair + "," + text[at:]
    at = _line_rest(text, last.value.end)
    return text[: last.value.end] + "," + text[last.value.end : at] + pair + text[at:]


def _line_rest(text: str, at: int) -> int:
    """Behind the comments that follow `at` on the same line."""
    while True:
        end = at
        while text[end : end + 1] in (" ", "\t"):
            end += 1
        found = _COMMENT.match(text, end)
        if not found or "\n" in found[0]:
            return at
        at = found.end() - found[0].endswith("\r")


def _begins_line(text: str, at: int) -> bool:
    return text[text.rfind("\n", 0, at) + 1 : at].strip(" \t") == ""


def _ends_line(text: str, at: int) -> bool:
    """Whether nothing but blanks follows on this line."""
    end = text.find("\n", at)
    return end >= 0 and not text[at:end].strip()


def _nest(keys: tuple[str, ...], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _matched(pattern: "re.Pattern[str]", text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _no_constant(name: str) -> None:
    raise ValueError(name)
