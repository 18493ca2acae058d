"""The pages: their links lead somewhere, and the commands, targets and files that they name exist."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from pursersctl.__main__ import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TOP: Any = get_command(app)
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

WHERE = ("", "daemon/pursersd", "shim", "shim/pursers_shim", "cli", "cli/pursersctl", "tests")
"""Where a file may lie that a page names."""

page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


def anchors(path: Path) -> set[str]:
    """What links can point to in a page, as GitHub names it."""
    headings = re.findall(r"^#+ (.*)$", _prose(path), re.MULTILINE)
    given = re.findall(r'<a id="([^"]+)">', _prose(path))
    return {*given, *(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)}


def command_lines(path: Path) -> list[str]:
    """Every `pursersctl …` of a page: in examples, and in the text where it is set as code."""
    text = path.read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    quoted = re.findall(r"`([^`\n]+)`", _prose(path))
    found = re.findall(
        r"(?:^|[ /(])pursersctl ((?:(?! +#| \||[;&>)\"]).)+)", "\n".join([examples, *quoted]), re.MULTILINE
    )
    return [line for line in found if line[0].islower() or line[0] == "-"]


def complaint(words: list[str]) -> str | None:
    """What is wrong with a command line; None for one that could be typed."""
    command = TOP
    while words and hasattr(command, "commands"):
        if words[0].startswith("-"):
            break
        name = words.pop(0)
        alternatives = name.split("|")
        if any(alternative not in command.commands for alternative in alternatives):
            return f"no command {name}"
        command = command.commands[alternatives[0]]
    known = {"-h", "--help", *(option for parameter in command.params for option in parameter.opts)}
    typed = [re.split(r"[=…]", word)[0] for word in words if re.match(r"--?[a-z]", word)]
    unknown = [option for option in typed if option not in known]
    return f"no option {unknown[0]}" if unknown else None


@page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@page
def test_commands_that_are_named_could_be_typed(page: Path) -> None:
    wrong = {line: found for line in command_lines(page) if (found := complaint(line.split()))}
    assert wrong == {}


@page
def test_targets_that_are_named_are_in_the_makefile(page: Path) -> None:
    named = re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert [target for target in named if target not in TARGETS] == []


@page
def test_files_that_are_named_exist(page: Path) -> None:
    folders = "tests|docs|bench|shim|daemon|cli|systemd|launchd"
    named = re.findall(rf"`((?:{folders})/[\w/.-]*|(?:[\w-]+/)*\w+\.py)`", page.read_text(encoding="utf-8"))
    assert [path for path in named if not any((ROOT / where / path).exists() for where in WHERE)] == []


def test_a_wrong_command_is_noticed() -> None:
    assert complaint(["frobnicate"]) == "no command frobnicate"
    assert complaint(["local", "upp"]) == "no command upp"
    assert complaint(["ps", "--bord", "x"]) == "no option --bord"
    assert complaint(["service", "install|uninstall|status"]) is None
    assert len([line for path in PAGES for line in command_lines(path)]) > 100


def _prose(path: Path) -> str:
    """A page without its examples."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
