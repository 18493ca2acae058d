"""What is found on a machine, on Linux and macOS, and what is said to be wrong with it."""

import json
from pathlib import Path

import pytest

from pursersctl import hosts_check, hosts_work
from pursersctl.errors import Failed
from pursersctl.hosts_known import HOSTS
from pursersctl.hosts_report import HostRow
from unit.hosts_rig import Desk


def rows(desk: Desk) -> dict[str, HostRow]:
    return {row.host: row for row in hosts_check.check(desk.machine)}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def cursor(desk: Desk, entry: object, name: str = "pursers") -> HostRow:
    desk.write("cursor", json.dumps({"mcpServers": {name: entry}}))
    return rows(desk)["cursor"]


def codes(row: HostRow) -> list[str]:
    return [problem.code for problem in row.problems]


LINUX = {
    "claude-code": [".claude.json"],
    "claude-desktop": [".config/Claude/claude_desktop_config.json"],
    "codex": [".codex/config.toml"],
    "gemini-cli": [".gemini/settings.json"],
    "zed": [".config/zed/settings.json"],
    "goose": [".config/goose/config.yaml"],
    "cursor": [".cursor/mcp.json"],
    "vscode": [".config/Code/User/mcp.json"],
    "opencode": [".config/opencode/opencode.json"],
}
MAC = {
    **LINUX,
    "claude-desktop": ["Library/Application Support/Claude/claude_desktop_config.json"],
    "vscode": ["Library/Application Support/Code/User/mcp.json"],
}


@pytest.mark.parametrize("mac", [False, True])
def test_where_files_lie(tmp_path: Path, mac: bool) -> None:
    desk = Desk(tmp_path, mac=mac)
    found = {
        row.host: [str(Path(file.path).relative_to(desk.home)) for file in row.files if file.scope == "user"]
        for row in rows(desk).values()
    }
    assert found == (MAC if mac else LINUX)


@pytest.mark.parametrize(
    ("variable", "value", "host", "file"),
    [
        ("CLAUDE_CONFIG_DIR", "/c", "claude-code", "/c/.claude.json"),
        ("CODEX_HOME", "/c", "codex", "/c/config.toml"),
        ("GEMINI_CLI_HOME", "/g", "gemini-cli", "/g/.gemini/settings.json"),
        ("GOOSE_PATH_ROOT", "/g", "goose", "/g/config/config.yaml"),
        ("XDG_CONFIG_HOME", "/x", "goose", "/x/goose/config.yaml"),
        ("XDG_CONFIG_HOME", "/x", "zed", "/x/zed/settings.json"),
        ("XDG_CONFIG_HOME", "/x", "opencode", "/x/opencode/opencode.json"),
        ("OPENCODE_CONFIG", "/o.json", "opencode", "/o.json"),
        ("XDG_CONFIG_HOME", "relative", "goose", "HOME/.config/goose/config.yaml"),
    ],
)
def test_variables_that_move_them(tmp_path: Path, variable: str, value: str, host: str, file: str) -> None:
    desk = Desk(tmp_path, environ={variable: value})
    assert rows(desk)[host].files[0].path == file.replace("HOME", str(desk.home))


def test_flatpak_and_variants_are_found(desk: Desk) -> None:
    for folder in (".var/app/dev.zed.Zed/config/zed", ".config/VSCodium/User", ".config/Code - Insiders/User"):
        (desk.home / folder).mkdir(parents=True)
    found = rows(desk)
    assert found["zed"].files[0].path.endswith(".var/app/dev.zed.Zed/config/zed/settings.json")
    users = [file.path for file in found["vscode"].files if file.scope == "user"]
    assert [Path(path).parts[-3] for path in users] == ["Code - Insiders", "VSCodium"]


def test_nothing_is_there(desk: Desk) -> None:
    found = rows(desk)
    assert list(found) == [known.name for known in HOSTS]
    assert not any(row.installed or row.program or row.problems for row in found.values())
    assert {row.found for row in found.values()} == {"none"}
    assert desk.files() == {}


@pytest.mark.parametrize("known", HOSTS, ids=lambda known: known.name)
def test_a_host_is_there_by_its_program(desk: Desk, known: object) -> None:
    from pursersctl.hosts_known import Known

    assert isinstance(known, Known)
    for program in known.programs:
        path = desk.program(program)
        row = rows(desk)[known.name]
        assert (row.installed, row.program) == (True, str(path))
        path.unlink()


@pytest.mark.parametrize("name", ["Claude", "Zed", "Goose", "Cursor", "Visual Studio Code"])
def test_a_host_is_there_by_its_application(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path, mac=True)
    (tmp_path / "Applications" / f"{name}.app").mkdir(parents=True)
    assert [row.title for row in rows(desk).values() if row.installed] == [
        {"Claude": "Claude Desktop", "Visual Studio Code": "VS Code"}.get(name, name)
    ]


def test_the_shim_is_right(desk: Desk) -> None:
    for known in HOSTS:
        hosts_work.add(desk.wish(known.name, force=True))
    for row in rows(desk).values():
        assert (row.installed, row.found, row.command_exists, row.problems) == (True, "shim", True, [])
        ((file, entry),) = [(file, entry) for file in row.files for entry in file.entries]
        assert (file.exists, entry.name, entry.command) == (True, "pursers", desk.machine.shim())
        assert "PURSERS_HOST" in entry.env


def test_the_bridge(desk: Desk) -> None:
    row = cursor(desk, {"command": "uvx", "args": ["pursers-wait-bridge"]}, "w")
    assert row.found == "bridge"
    assert codes(row) == ["bridge", "command_missing"]
    assert {problem.action for problem in row.problems} == {"pursersctl hosts migrate cursor --entry w"}
    desk.program("uvx")
    assert codes(rows(desk)["cursor"]) == ["bridge"]


def test_something_else_of_our_name_is_no_problem(desk: Desk) -> None:
    row = cursor(desk, {"url": "http://127.0.0.1:8766/mcp"})
    assert (row.found, row.command_exists, row.problems) == ("other", True, [])


def test_a_shim_that_is_gone(desk: Desk) -> None:
    row = cursor(desk, {"command": "/gone/pursers-shim"})
    assert not row.command_exists
    (problem,) = row.problems
    assert (problem.code, problem.severity, problem.action) == (
        "command_missing",
        "fail",
        "pursersctl hosts add cursor",
    )
    assert "/gone/pursers-shim" in problem.text


def test_the_shim_behind_env_is_looked_for(desk: Desk) -> None:
    row = cursor(desk, {"command": "env", "args": ["A=b", "/gone/pursers-shim"]})
    assert codes(row) == ["command_missing"]
    assert row.files[0].entries[0].command == "/gone/pursers-shim"


def test_a_shim_without_its_path(desk: Desk) -> None:
    desk.program("pursers-shim")
    assert codes(cursor(desk, {"command": "pursers-shim"})) == ["command_relative"]


@pytest.mark.parametrize("extra", [{"disabled": True}, {"enabled": False}])
def test_an_entry_that_is_switched_off(desk: Desk, extra: dict[str, bool]) -> None:
    assert codes(cursor(desk, {"command": desk.machine.shim(), **extra})) == ["disabled"]


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("ONBOARD_CENTRAL_TOKEN", "eyJhbGciOiJI.eyJzdWIi.c2ln", True),
        ("PURSERS_BOARD_CONNECTOR_TOKEN", "x", True),
        ("MY_API_KEY", "x", True),
        ("ONBOARD_CENTRAL_TOKEN", "${env:TOKEN}", False),
        ("ONBOARD_CENTRAL_TOKEN", "$TOKEN", False),
        ("ONBOARD_CENTRAL_TOKEN_FILE", "/x", False),
        ("PURSERS_BOARD_CONNECTOR_TOKEN_SHA256", "abc", False),
        ("PURSERS_REQUIRE_TOKEN_MATCH", "1", False),
        ("PURSERS_ALLOW_ENV_TOKEN", "1", False),
        ("PURSERS_REQUEST_STATE_KEY_FILE", "/x", False),
    ],
)
def test_a_credential_in_the_file(desk: Desk, name: str, value: str, found: bool) -> None:
    row = cursor(desk, {"command": desk.machine.shim(), "env": {name: value}})
    assert codes(row) == (["secret_in_environment"] if found else [])
    assert len(value) < 8 or value not in repr(row)


def test_what_the_host_needs_is_missing(desk: Desk) -> None:
    desk.write("codex", f'[mcp_servers.pursers]\ncommand = "{desk.machine.shim()}"\n')
    (problem,) = rows(desk)["codex"].problems
    assert problem.code == "needs_missing"
    assert "tool_timeout_sec, required, default_tools_approval_mode" in problem.text
    hosts_work.add(desk.wish("codex"))
    assert rows(desk)["codex"].problems == []


def test_two_entries_start_two_servers(desk: Desk) -> None:
    entry = {"command": desk.machine.shim()}
    desk.write("cursor", json.dumps({"mcpServers": {"a": entry, "b": entry}}))
    row = rows(desk)["cursor"]
    assert codes(row) == ["duplicate"]
    assert "a, b" in row.problems[0].text


def test_every_failure_is_told_at_once(desk: Desk) -> None:
    desk.write("cursor", "{")
    desk.write("codex", "[")
    desk.write("goose", "\tx: 1\n")
    desk.write("zed", b"\xff\xfe")
    desk.path("gemini-cli").mkdir(parents=True)
    found = rows(desk)
    assert [codes(found[host]) for host in ("cursor", "codex", "goose", "zed", "gemini-cli")] == [
        ["broken"],
        ["broken"],
        ["too_clever"],
        ["unreadable"],
        ["unreadable"],
    ]
    assert all(problem.severity == "fail" and problem.action for row in found.values() for problem in row.problems)


@pytest.mark.parametrize(
    ("host", "text", "extra"),
    [
        ("claude-code", "{ /* c */ }", "comment"),
        ("claude-code", '{"a": 1,}', "trailing comma"),
        ("claude-code", '\ufeff{"a": 1}', None),
        ("gemini-cli", "{ /* c */ }", None),
        ("gemini-cli", '{"a": 1,}', "trailing comma"),
        ("gemini-cli", '\ufeff{"a": 1}', "byte order mark"),
        ("opencode", '\ufeff{"a": 1, /* c */}', None),
    ],
)
def test_what_the_host_itself_does_not_read(desk: Desk, host: str, text: str, extra: str | None) -> None:
    file = desk.write(host, text)
    problems = rows(desk)[host].problems
    assert [problem.code for problem in problems] == (["broken"] if extra else [])
    if extra:
        assert f"has a {extra}, which" in problems[0].text
        with pytest.raises(Failed):
            hosts_work.add(desk.wish(host))
        assert file.read_text() == text


def test_entries_of_a_project_and_of_one_folder(desk: Desk) -> None:
    hosts_work.add(desk.wish("claude-code", force=True, scope="local"))
    hosts_work.add(desk.wish("claude-code", force=True, scope="project", entry="p"))
    row = rows(desk)["claude-code"]
    assert [(file.scope, [entry.name for entry in file.entries]) for file in row.files] == [
        ("user", []),
        ("local", ["pursers"]),
        ("project", ["p"]),
    ]
