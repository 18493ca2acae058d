"""What the editors of configuration files share: how a text is broken into lines, and what is wrong with one."""


class Broken(Exception):
    """A text that is not what its file should hold; the message says where and why."""


class TooClever(Exception):
    """A correct text in a form that we do not edit; the message says which."""


def newline(text: str) -> str:
    """How lines end in a text; a text of one line is taken for one of Unix."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def position(text: str, at: int) -> str:
    """An offset as people count."""
    before = text[:at]
    return f"line {before.count(chr(10)) + 1}, column {at - (before.rfind(chr(10)) + 1) + 1}"


def indentation(text: str, at: int) -> str:
    """The blanks at the beginning of the line in which `at` lies."""
    start = text.rfind("\n", 0, at) + 1
    end = start
    while end < at and text[end] in " \t":
        end += 1
    return text[start:end]
