"""docs/json.md names every field of the control structs, docs/cli.md every command, option and exit code: no more, no less."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from typer.main import get_command

from pursersctl import found, hosts_report, printed
from pursersctl.__main__ import app
from pursersctl.errors import Exit
from pursersd import api
from pursersd.api import events

DOCS = Path(__file__).parents[2] / "docs"
SNAPSHOT = DOCS.parent / "shim" / "pursers_shim" / "snapshot.json"
STRUCTS = [
    kind
    for module in (api, events, printed, found, hosts_report)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
]


TOP = get_command(app).commands  # type: ignore[attr-defined]
COMMANDS = {**TOP, **{f"local {name}": command for name, command in TOP["local"].commands.items()}}


def section(file: str, heading: str) -> str:
    """The text below a heading, up to the next one of any level."""
    text = (DOCS / file).read_text(encoding="utf-8")
    match = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f"docs/{file} has no section {heading!r}"
    return match[1]


def first_column(text: str) -> list[str]:
    return re.findall(r"^\| (?!Field|Code|Option|Command|---)(.*?) \|", text, re.MULTILINE)


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
def test_every_field_is_described(kind: type[msgspec.Struct]) -> None:
    assert first_column(section("json.md", f"`{kind.__name__}`")) == [f"`{name}`" for name in kind.__struct_fields__]


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("`ps`", api.Ps),
        ("`ps --ended`", api.Ended),
        ("`reap`", api.Reap),
        ("`status`", api.Status),
        ("`status --conversation`", api.ConversationStatus),
        ("`stats`", printed.Stats),
        ("`doors`", printed.DoorList),
        ("`doctor`", found.Doctor),
        ("`sweep`", found.Sweep),
        ("`metrics`", api.Metrics),
        ("`events`", events.Woke),
        ("`service status`", printed.ServiceStatus),
        ("`config show`", api.Config),
        ("`reload`", api.Reloaded),
        ("`local up`", api.LocalBoard),
        ("`local down`", api.LocalGone),
        ("`local status`", api.LocalStatus),
        ("`local ticket`", api.LocalTicketMade),
    ],
)
def test_the_examples_are_true(heading: str, kind: type[msgspec.Struct]) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", section("json.md", heading), re.DOTALL)
    shown = msgspec.json.decode(example)
    assert msgspec.to_builtins(msgspec.json.decode(example, type=kind)) == shown


def test_schema_is_the_one_in_the_code() -> None:
    assert f"Every document has `schema`, now `{api.SCHEMA}`" in (DOCS / "json.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [kind for kind in STRUCTS if "schema" in kind.__struct_fields__])
def test_every_document_is_of_that_schema(kind: type[msgspec.Struct]) -> None:
    (field,) = [field for field in msgspec.structs.fields(kind) if field.name == "schema"]
    assert field.default == api.SCHEMA


def test_every_exit_code_is_listed_once() -> None:
    assert first_column(section("cli.md", "Exit codes")) == [str(code.value) for code in Exit]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_section_with_every_option_and_the_examples_of_its_help(name: str) -> None:
    text = section("cli.md", f"`{name}`")
    for parameter in COMMANDS[name].params:
        assert all(option in text for option in parameter.opts)
    examples = re.findall(r"^  (\S.*?)(?:    .*)?$", COMMANDS[name].help.partition("Examples:\n")[2], re.MULTILINE)
    assert examples
    for example in examples:
        assert example in text


def test_no_other_commands_are_promised() -> None:
    overview = first_column((DOCS / "cli.md").read_text(encoding="utf-8").partition("\n## ")[0])
    assert overview == [f"[`{name}`](#{name})" for name in TOP]


def test_the_readme_lists_every_page_command_and_tool() -> None:
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    listed = text.partition("\n## Read on\n")[2]
    assert [page.name for page in sorted(DOCS.glob("*.md")) if f"](docs/{page.name})" not in listed] == []
    assert [name for name in TOP if name not in ("help", "completion") and f"`{name}`" not in text] == []
    tools = {tool["name"] for tool in json.loads(SNAPSHOT.read_bytes())["tools/list"]["modern"]["tools"]}
    assert [name for name in sorted(tools) if f"`{name}`" not in text] == []


def test_the_quick_start_is_five_commands_that_exist() -> None:
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8").partition("\n## Quick start\n")[2]
    commands = [line for line in text.split("```")[1].splitlines() if line]
    assert len(commands) <= 5
    ours = [match[1].split() for line in commands if (match := re.match(r"\S*pursersctl (.*)", line))]
    assert ours
    for first, second, *_ in ours:
        group = TOP[first]
        assert second in group.commands
