"""`pursersctl hosts` as a program, and how its answers look."""

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from pursersctl import hosts, hosts_render
from pursersctl.hosts_report import HostChange, HostList
from pursersctl.render import plain
from pursersctl.table import Line
from rig import processes
from rig.daemon import Home
from unit.ctl_hosts_samples import ADDED, LIST, MIGRATED
from unit.test_ctl_docs import first_column, section

DATA = Path(__file__).parents[1] / "data"
SHIM = str(processes.BIN / "pursers-shim")


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        (home.folder / "user" / ".cursor").mkdir(parents=True)
        yield home


def cursor(home: Home) -> Path:
    return home.folder / "user" / ".cursor" / "mcp.json"


def same_as(name: str, lines: list[Line], width: int) -> None:
    text = plain(lines)
    assert text == (DATA / name).read_text(encoding="utf-8")
    assert all(cell_len(line) <= width for line in text.splitlines() if "/" not in line)


@pytest.mark.parametrize("width", [80, 120])
def test_list_looks(width: int) -> None:
    same_as(f"ctl_hosts_list_{width}.txt", hosts_render.listed(LIST, width), width)


@pytest.mark.parametrize("width", [80, 120])
def test_add_looks(width: int) -> None:
    same_as(f"ctl_hosts_add_{width}.txt", hosts_render.changed(ADDED, width), width)


@pytest.mark.parametrize("width", [80, 120])
def test_migrate_looks(width: int) -> None:
    same_as(f"ctl_hosts_migrate_{width}.txt", hosts_render.changed(MIGRATED, width), width)


def test_names_from_files_are_harmless() -> None:
    entry = msgspec.structs.replace(ADDED.entries[0], entry="\x1b[31mred")
    assert "\x1b" not in plain(hosts_render.changed(msgspec.structs.replace(ADDED, entries=[entry]), 80))


def test_no_host_at_all() -> None:
    none = msgspec.structs.replace(LIST, hosts=[row for row in LIST.hosts if not row.installed])
    assert plain(hosts_render.listed(none, 80)) == "No host is found on this machine.\n\nNot found: Cursor, VS Code.\n"


def test_add_and_remove(home: Home) -> None:
    cursor(home).write_text('{\n  "mcpServers": {}\n}\n')
    done = home.ctl("hosts", "add", "cursor", "--env", "ONBOARD_BOARD_ID=b")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("pursers added for cursor (user)\n")
    assert json.loads(cursor(home).read_text())["mcpServers"]["pursers"] == {
        "command": SHIM,
        "args": [],
        # A private instance: its shims must find it without the variable of this terminal.
        "env": {"PURSERS_HOST": "cursor", "PURSERSD_HOME": str(home.folder), "ONBOARD_BOARD_ID": "b"},
    }
    listed = home.ctl("hosts", "list")
    assert re.search(r"^cursor +pursers +shim +user +\S+mcp\.json$", listed.stdout, re.MULTILINE)
    done = home.ctl("hosts", "remove", "cursor")
    assert done.returncode == 0
    assert cursor(home).read_text() == '{\n  "mcpServers": {}\n}\n'
    state = home.folder / "state" / "hosts"
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in state.iterdir())
    assert home.daemons() == []


def test_where_there_is_nothing_to_do(home: Home) -> None:
    done = home.ctl("hosts", "remove", "cursor")
    assert done.returncode == 0
    assert (
        done.stdout
        == f"pursers: nothing was changed\n  file           {cursor(home)}\n  There is no such entry of the shim.\n"
    )
    home.ctl("hosts", "add", "cursor")
    assert "It is right already." in home.ctl("hosts", "add", "cursor").stdout


def test_the_json_is_what_the_docs_say(home: Home) -> None:
    done = home.ctl("hosts", "list", "--json", PATH=str(home.folder))
    found = msgspec.json.decode(done.stdout, type=HostList, strict=True)
    assert json.loads(done.stdout) == msgspec.to_builtins(found)
    assert found.shim == SHIM
    assert [row.host for row in found.hosts if row.installed] == ["cursor"]
    for arguments in (["add", "cursor"], ["remove", "cursor", "--dry-run"], ["remove", "cursor"]):
        done = home.ctl("hosts", *arguments, "--json")
        change = msgspec.json.decode(done.stdout, type=HostChange, strict=True)
        assert json.loads(done.stdout) == msgspec.to_builtins(change)
        assert change.dry_run == ("--dry-run" in arguments)
    assert not cursor(home).exists()


def test_migrate_and_back(home: Home) -> None:
    text = (
        '{"mcpServers": {"w": {"command": "uvx", "args": ["pursers-wait-bridge"], "env": {"PURSERS_ROLE": "worker"}}}}'
    )
    cursor(home).write_text(text)
    dry = home.ctl("hosts", "migrate", "cursor", "--dry-run")
    assert dry.stdout.startswith("w would be migrated for cursor (user)\n")
    assert cursor(home).read_text() == text
    assert home.ctl("hosts", "migrate", "cursor").stdout.startswith("w migrated for cursor (user)\n")
    migrated = text.replace('"uvx"', json.dumps(SHIM)).replace('["pursers-wait-bridge"]', "[]")
    private = f'"worker", "PURSERSD_HOME": {json.dumps(str(home.folder))}'
    assert cursor(home).read_text() == migrated.replace('"worker"', private)
    assert home.ctl("hosts", "migrate", "cursor", "--undo").stdout.startswith("w restored for cursor (user)\n")
    assert cursor(home).read_text() == text


@pytest.mark.parametrize(
    ("assignment", "shown"),
    [
        ("ONBOARD_CENTRAL_TOKEN=abcdefgh", "abcdefgh"),
        ("MY_SECRET=abcdefgh", "abcdefgh"),
        ("ONBOARD_BOARD_ID=prs1.eyJiIjoiYiJ9", "eyJ"),
        ("X=Bearer abcdefghijkl", "abcdefghijkl"),
    ],
)
def test_a_credential_is_refused_and_not_repeated(home: Home, assignment: str, shown: str) -> None:
    done = home.ctl("hosts", "add", "cursor", "--env", assignment, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "secret"
    assert "pursersctl join -" in done.stderr
    assert "ONBOARD_CENTRAL_TOKEN_FILE" in done.stderr
    assert shown not in done.stdout + done.stderr
    assert not cursor(home).exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["add", "emacs"], "'emacs' is not one of claude-code, claude-desktop, codex"),
        (["add", "goose", "--scope", "project"], "Goose has only: user."),
        (["add", "cursor", "--scope", "local"], "Cursor has only: user, project."),
        (["add", "cursor", "--env", "novalue"], "give it as NAME=VALUE."),
        (["add", "cursor", "--env", "a b=c"], "give it as NAME=VALUE."),
        (["add"], "Missing argument"),
    ],
)
def test_wrong_usage(home: Home, arguments: list[str], error: str) -> None:
    done = home.ctl("hosts", *arguments)
    assert done.returncode == 2
    assert error in " ".join(done.stderr.replace("│", " ").split())
    assert not cursor(home).exists()


def test_a_failure_names_the_file_the_place_and_what_to_do(home: Home) -> None:
    cursor(home).write_text('{\n  "mcpServers": {\n')
    done = home.ctl("hosts", "add", "cursor", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "broken"
    assert f"{cursor(home)} is not understood: line 3, column 1: a name in quotes is missing." in done.stderr
    assert cursor(home).read_text() == '{\n  "mcpServers": {\n'


def test_list_with_a_broken_file_is_no_failure(home: Home) -> None:
    cursor(home).write_text("{")
    done = home.ctl("hosts", "list")
    assert done.returncode == 0
    assert "is not understood" in done.stdout


@pytest.mark.parametrize("name", ["list", "add", "remove", "migrate"])
def test_docs_have_every_option_and_example(name: str) -> None:
    from typer.main import get_command

    command = get_command(hosts.app).commands[name]  # type: ignore[attr-defined]
    text = section("cli.md", f"`hosts {name}`")
    for parameter in command.params:
        if parameter.param_type_name == "option":
            assert all(option in text for option in parameter.opts), parameter.opts
    for example in re.findall(r"^  (pursersctl .*)$", command.help, re.MULTILINE):
        assert example.strip() in text


@pytest.mark.parametrize(("heading", "kind"), [("`hosts list`", HostList), ("`hosts add`", HostChange)])
def test_the_examples_in_json_md_are_true(heading: str, kind: type[msgspec.Struct]) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", section("json.md", heading), re.DOTALL)
    assert msgspec.to_builtins(msgspec.json.decode(example, type=kind)) == msgspec.json.decode(example)


def test_the_codes_of_problems_are_listed() -> None:
    source = (Path(hosts.__file__).parent / "hosts_check.py").read_text() + (
        Path(hosts.__file__).parent / "hosts_target.py"
    ).read_text()
    source += (Path(hosts.__file__).parent / "hosts_files.py").read_text()
    listed = first_column(section("json.md", "Codes of host problems"))
    for code in listed:
        assert f'"{code.strip("`")}"' in source
    for code in re.findall(r'_(?:warning|problem)\(\s*"(\w+)"', source):
        assert f"`{code}`" in listed
