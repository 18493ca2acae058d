"""`hosts add`, `remove` and `migrate` on real files: what they write, refuse, update and undo."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pursersctl import hosts_claude, hosts_work
from pursersctl.errors import Failed
from pursersctl.hosts_known import BY_NAME, HOSTS
from unit.hosts_rig import Desk

HOSTNAMES = [known.name for known in HOSTS]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr("os.fsync", lambda _: None)
    return Desk(tmp_path)


@pytest.fixture
def shim(desk: Desk) -> str:
    return desk.machine.shim()


def refused(work: Any, wish: hosts_work.Wish) -> Failed:
    with pytest.raises(Failed) as caught:
        work(wish)
    return caught.value


def shape(host: str, command: str, args: list[str], env: dict[str, str]) -> Any:
    """An entry as people write it."""
    if host == "opencode":
        return {"type": "local", "command": [command, *args], "environment": env}
    if host == "goose":
        return {"type": "stdio", "name": "pursers", "enabled": True, "cmd": command, "args": args, "envs": env}
    return {"command": command, "args": args, "env": env}


def bridge(desk: Desk, host: str, command: str, args: list[str], env: dict[str, str]) -> Path:
    """Give a host a file with an entry of the bridge."""
    from pursersctl import hosts_edit

    known = BY_NAME[host]
    edit = hosts_edit.Edit((*known.container, "pursers"), shape(host, command, args, env))
    return desk.write(host, hosts_edit.changed(known.format, "", [edit]))


ENV = {
    "ONBOARD_CENTRAL_URL": "http://127.0.0.1:8766/mcp",
    "ONBOARD_CENTRAL_TOKEN": "the-value-itself $x ${y}",
    "PURSERS_ROLE": "worker",
}


def environment(entry: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = entry.get("env") or entry.get("envs") or entry.get("environment") or {}
    return found


# What is added


def test_claude_code(desk: Desk, shim: str) -> None:
    desk.write("claude-code", "{}")
    hosts_work.add(desk.wish("claude-code"))
    assert desk.servers("claude-code")["pursers"] == {
        "type": "stdio",
        "command": shim,
        "args": [],
        "alwaysLoad": True,
        "env": {"PURSERS_HOST": "claude-code"},
    }


def test_codex(desk: Desk, shim: str) -> None:
    desk.write("codex", "")
    hosts_work.add(desk.wish("codex", env={"ONBOARD_BOARD_ID": "b"}))
    entry = desk.servers("codex")["pursers"]
    passed = entry.pop("env_vars")
    assert entry == {
        "command": shim,
        "tool_timeout_sec": 620,
        "required": True,
        "default_tools_approval_mode": "approve",
        "supports_parallel_tool_calls": True,
        "env": {"PURSERS_HOST": "codex", "ONBOARD_BOARD_ID": "b"},
    }
    assert "PURSERSD_HOME" in passed
    assert "ONBOARD_BOARD_ID" not in passed, "the entry sets it"


def test_gemini(desk: Desk, shim: str) -> None:
    desk.write("gemini-cli", "{}")
    hosts_work.add(desk.wish("gemini-cli"))
    assert desk.servers("gemini-cli")["pursers"] == {
        "command": shim,
        "args": [],
        "trust": True,
        "env": {"PURSERS_HOST": "gemini-cli", "PURSERS_HOST_TIMEOUT_S": "600"},
    }


def test_goose(desk: Desk, shim: str) -> None:
    desk.write("goose", "")
    hosts_work.add(desk.wish("goose"))
    assert desk.servers("goose")["pursers"] == {
        "type": "stdio",
        "enabled": True,
        "name": "pursers",
        "cmd": shim,
        "args": [],
        "description": "Work on a Pursers board",
        "timeout": 300,
        "envs": {"PURSERS_HOST": "goose"},
    }


def test_opencode(desk: Desk, shim: str) -> None:
    desk.write("opencode", "{}")
    hosts_work.add(desk.wish("opencode"))
    assert desk.servers("opencode")["pursers"] == {
        "type": "local",
        "enabled": True,
        "command": [shim],
        "timeout": 300000,
        "environment": {"PURSERS_HOST": "opencode"},
    }


@pytest.mark.parametrize(
    ("host", "rest"),
    [("claude-desktop", {}), ("zed", {"timeout": 600}), ("cursor", {}), ("vscode", {"type": "stdio"})],
)
def test_the_others(desk: Desk, shim: str, host: str, rest: dict[str, object]) -> None:
    desk.write(host, "{}")
    hosts_work.add(desk.wish(host))
    assert desk.servers(host)["pursers"] == {"command": shim, "args": [], "env": {"PURSERS_HOST": host}, **rest}


@pytest.mark.parametrize(
    ("host", "gone"),
    [
        ("claude-code", {"alwaysLoad"}),
        ("gemini-cli", {"trust"}),
        ("codex", {"required", "default_tools_approval_mode", "supports_parallel_tool_calls", "env_vars"}),
    ],
)
def test_plain_leaves_out_what_the_host_needs(desk: Desk, host: str, gone: set[str]) -> None:
    desk.write(host, "")
    hosts_work.add(desk.wish(host, entry="full"))
    hosts_work.add(desk.wish(host, entry="plain", plain=True))
    servers = desk.servers(host)
    assert set(servers["full"]) - set(servers["plain"]) == gone
    assert {key: value for key, value in servers["full"].items() if key not in gone} == servers["plain"]


def test_variables_that_are_given_win(desk: Desk) -> None:
    desk.write("zed", "{}")
    hosts_work.add(desk.wish("zed", env={"PURSERS_HOST": "headless", "PURSERS_ROLE": "reviewer"}))
    assert environment(desk.servers("zed")["pursers"]) == {"PURSERS_HOST": "headless", "PURSERS_ROLE": "reviewer"}


@pytest.mark.parametrize("host", HOSTNAMES)
def test_a_file_that_was_made_goes_again_with_its_folders(desk: Desk, host: str) -> None:
    before = desk.files()
    hosts_work.add(desk.wish(host, force=True))
    assert "pursers" in desk.servers(host)
    assert desk.path(host).stat().st_mode & 0o777 == 0o600
    hosts_work.remove(desk.wish(host))
    assert desk.files() == before
    assert [path.name for path in desk.home.iterdir()] == ["proj"]


@pytest.mark.parametrize("host", [known.name for known in HOSTS if known.project])
def test_scope_project(desk: Desk, host: str) -> None:
    told = hosts_work.add(desk.wish(host, scope="project", force=True))
    path = desk.path(host, "project")
    assert path.is_relative_to(desk.project)
    assert told.file == str(path)
    assert "pursers" in desk.servers(host, path)
    assert any("everybody who works in the folder" in note for note in told.notes)
    hosts_work.remove(desk.wish(host, scope="project"))
    assert list(desk.project.iterdir()) == []


def test_scope_local_of_claude_code(desk: Desk) -> None:
    file = desk.write("claude-code", '{\n  "projects": {},\n  "x": 1\n}')
    before = file.read_bytes()
    hosts_work.add(desk.wish("claude-code", scope="local"))
    data = json.loads(file.read_text())
    assert list(data["projects"][str(desk.project)]["mcpServers"]) == ["pursers"]
    assert "mcpServers" not in data
    hosts_work.remove(desk.wish("claude-code", scope="local"))
    assert file.read_bytes() == before


def test_a_host_that_is_not_there_is_refused(desk: Desk) -> None:
    error = refused(hosts_work.add, desk.wish("cursor"))
    assert error.code == "not_installed"
    assert "pursersctl hosts add cursor --force" in str(error)
    assert desk.files() == {}
    desk.program("cursor-agent")
    hosts_work.add(desk.wish("cursor"))
    assert "pursers" in desk.servers("cursor")


# What is there already


def test_an_entry_of_something_else_is_left_alone(desk: Desk) -> None:
    file = desk.write("cursor", '{"mcpServers": {"pursers": {"url": "http://127.0.0.1:8766/mcp"}}}')
    before = file.read_bytes()
    assert refused(hosts_work.add, desk.wish("cursor")).code == "other_entry"
    assert refused(hosts_work.remove, desk.wish("cursor", entry="pursers")).code == "other_entry"
    assert refused(hosts_work.migrate, desk.wish("cursor")).code == "no_bridge"
    assert hosts_work.remove(desk.wish("cursor")).entries[0].action == "unchanged"
    assert file.read_bytes() == before
    hosts_work.add(desk.wish("cursor", entry="pursers-wait"))
    assert sorted(desk.servers("cursor")) == ["pursers", "pursers-wait"]
    hosts_work.remove(desk.wish("cursor"))
    assert file.read_bytes() == before


def test_the_bridge_is_not_overwritten(desk: Desk) -> None:
    file = bridge(desk, "codex", "uvx", ["pursers-wait-bridge"], ENV)
    before = file.read_bytes()
    error = refused(hosts_work.add, desk.wish("codex"))
    assert error.code == "bridge"
    assert "pursersctl hosts migrate codex" in str(error)
    assert refused(hosts_work.remove, desk.wish("codex", entry="pursers")).code == "other_entry"
    assert file.read_bytes() == before


@pytest.mark.parametrize("host", HOSTNAMES)
def test_add_repairs_an_entry_of_a_shim_that_was_moved(desk: Desk, shim: str, host: str) -> None:
    file = bridge(desk, host, "/gone/pursers-shim", [], {"PURSERS_ROLE": "worker"})
    told = hosts_work.add(desk.wish(host, env={"ONBOARD_BOARD_ID": "b"}))
    assert told.entries[0].action == "updated"
    entry = desk.servers(host)["pursers"]
    assert shim in (entry.get("command") or entry["cmd"])
    assert environment(entry) == {"PURSERS_ROLE": "worker", "ONBOARD_BOARD_ID": "b"}
    assert set(BY_NAME[host].needs) <= set(entry)
    after = file.read_bytes()
    assert hosts_work.add(desk.wish(host)).entries[0].action == "unchanged"
    assert file.read_bytes() == after


@pytest.mark.parametrize("host", ["claude-desktop", "codex", "goose"])
def test_remove_undoes_add_and_update(desk: Desk, host: str) -> None:
    text = {"json": '{"x": 1}', "toml": "x = 1\n", "yaml": "x: 1\n"}[BY_NAME[host].format]
    file = desk.write(host, text)
    hosts_work.add(desk.wish(host))
    hosts_work.add(desk.wish(host, env={"ONBOARD_BOARD_ID": "b"}))
    assert hosts_work.remove(desk.wish(host)).entries[0].action == "removed"
    assert file.read_text() == text


def test_of_several_entries_one_must_be_named(desk: Desk) -> None:
    desk.write("cursor", "{}")
    hosts_work.add(desk.wish("cursor"))
    hosts_work.add(desk.wish("cursor", entry="second"))
    error = refused(hosts_work.remove, desk.wish("cursor"))
    assert error.code == "ambiguous"
    assert "pursers, second" in str(error)
    hosts_work.remove(desk.wish("cursor", entry="pursers"))
    assert list(desk.servers("cursor")) == ["second"]
    hosts_work.remove(desk.wish("cursor"))
    assert desk.servers("cursor") == {}


def test_remove_where_nothing_is(desk: Desk) -> None:
    told = hosts_work.remove(desk.wish("cursor"))
    assert [entry.action for entry in told.entries] == ["unchanged"]
    assert desk.files() == {}


def test_a_read_only_file_is_left_alone(desk: Desk) -> None:
    file = desk.write("zed", "{}")
    file.chmod(0o444)
    for dry_run in (True, False):
        error = refused(hosts_work.add, desk.wish("zed", dry_run=dry_run))
        assert error.code == "read_only"
    assert file.read_text() == "{}"
    assert not desk.records.folder.exists()


def test_the_copy_holds_what_was_there_and_is_for_us_alone(desk: Desk) -> None:
    desk.write("zed", '{"secret": "of another server"}')
    told = hosts_work.add(desk.wish("zed"))
    assert told.backup
    copy = Path(told.backup)
    assert copy.read_text() == '{"secret": "of another server"}'
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.parent.stat().st_mode & 0o777 == 0o700


def test_a_damaged_record_costs_only_the_last_byte(desk: Desk) -> None:
    file = desk.write("zed", '{\n  "x": 1\n}')
    hosts_work.add(desk.wish("zed"))
    for record in desk.records.folder.glob("*.json"):
        record.write_text("{")
    hosts_work.remove(desk.wish("zed"))
    assert json.loads(file.read_text()) == {"x": 1, "context_servers": {}}


def test_opencode_with_several_files(desk: Desk) -> None:
    """The one that has the entry is meant; a new one goes where opencode would let it win."""
    folder = desk.path("opencode").parent
    folder.mkdir(parents=True)
    for name in ("opencode.json", "opencode.jsonc", "config.json"):
        (folder / name).write_text("{}")
    assert hosts_work.add(desk.wish("opencode")).file.endswith("opencode.jsonc")
    hosts_work.remove(desk.wish("opencode"))
    (folder / "config.json").write_text(
        json.dumps({"mcp": {"pursers": shape("opencode", "/gone/pursers-shim", [], {})}})
    )
    assert hosts_work.add(desk.wish("opencode")).file.endswith("config.json")


# The bridge


@pytest.mark.parametrize("host", HOSTNAMES)
@pytest.mark.parametrize(
    ("command", "args"),
    [("pursers-wait-bridge", []), ("uvx", ["--from", "pursers-wait-bridge", "pursers-wait-bridge"])],
)
def test_migrate_keeps_the_environment(desk: Desk, shim: str, host: str, command: str, args: list[str]) -> None:
    file = bridge(desk, host, command, args, ENV)
    before = file.read_bytes()
    told = hosts_work.migrate(desk.wish(host, dry_run=True))
    assert file.read_bytes() == before
    assert hosts_work.migrate(desk.wish(host)).entries == told.entries
    entry = desk.servers(host)["pursers"]
    assert environment(entry) == ENV
    assert (entry.get("command") or entry["cmd"]) in (shim, [shim])
    assert not entry.get("args")
    assert set(BY_NAME[host].needs) <= set(entry)
    assert "the-value-itself" not in repr(told), "values are not shown"
    assert any("ONBOARD_CENTRAL_TOKEN stays in the file" in note for note in told.notes)
    hosts_work.restore(desk.wish(host))
    assert file.read_bytes() == before
    assert refused(hosts_work.restore, desk.wish(host)).code == "nothing_to_undo"


def test_migrate_changes_nothing_but_the_command(desk: Desk, shim: str) -> None:
    entry = '{ "command": "uvx", "args": ["pursers-wait-bridge"], "cwd": "/x", }'
    text = f'{{\n  // mine\n  "mcpServers": {{\n    "w": {entry}, // why\n  }},\n}}\n'
    file = desk.write("cursor", text)
    hosts_work.migrate(desk.wish("cursor"))
    expected = text.replace('"uvx"', json.dumps(shim)).replace('["pursers-wait-bridge"]', "[]")
    assert file.read_text() == expected


def test_migrate_keeps_assignments_in_front(desk: Desk, shim: str) -> None:
    secret = "ONBOARD_CENTRAL_TOKEN=the-value-itself"
    bridge(desk, "cursor", "env", [secret, "A=b", "uvx", "pursers-wait-bridge"], {})
    told = hosts_work.migrate(desk.wish("cursor"))
    assert desk.servers("cursor")["pursers"]["command"] == "env"
    assert desk.servers("cursor")["pursers"]["args"] == [secret, "A=b", shim]
    assert "the-value-itself" not in repr(told)


def test_migrate_takes_all_entries_or_the_one_that_is_named(desk: Desk) -> None:
    servers = {name: shape("cursor", "pursers-wait-bridge", [], {}) for name in ("one", "two")}
    file = desk.write("cursor", json.dumps({"mcpServers": {**servers, "x": {"command": "y"}}}, indent=2))
    before = file.read_bytes()
    told = hosts_work.migrate(desk.wish("cursor", entry="two"))
    assert [entry.entry for entry in told.entries] == ["two"]
    told = hosts_work.migrate(desk.wish("cursor"))
    assert [entry.entry for entry in told.entries] == ["one"]
    hosts_work.restore(desk.wish("cursor"))
    assert file.read_bytes() == before


def test_migrate_is_undone_by_value_when_the_file_changed_meanwhile(desk: Desk) -> None:
    file = bridge(desk, "codex", "uvx", ["pursers-wait-bridge"], ENV)
    before = desk.servers("codex")
    hosts_work.migrate(desk.wish("codex"))
    file.write_text("# changed\n" + file.read_text())
    hosts_work.restore(desk.wish("codex"))
    assert desk.servers("codex") == before
    assert file.read_text().startswith("# changed\n")


def test_the_older_shape_of_zed(desk: Desk, shim: str) -> None:
    text = '{"context_servers": {"pursers": {"command": {"path": "uvx", "args": ["pursers-wait-bridge"], "env": {"A": "b"}}}}}'
    desk.write("zed", text)
    hosts_work.migrate(desk.wish("zed"))
    assert desk.servers("zed")["pursers"] == {"command": {"path": shim, "args": [], "env": {"A": "b"}}}


@pytest.mark.parametrize(
    ("command", "args"), [("sh", ["-c", "exec pursers-wait-bridge"]), ("pursers-wait-bridge", ["status"])]
)
def test_what_cannot_be_rewritten_is_told(desk: Desk, shim: str, command: str, args: list[str]) -> None:
    file = bridge(desk, "cursor", command, args, {})
    before = file.read_bytes()
    error = refused(hosts_work.migrate, desk.wish("cursor"))
    assert error.code == "too_clever"
    assert shim in str(error)
    assert file.read_bytes() == before


def test_migrate_without_a_bridge(desk: Desk) -> None:
    desk.write("cursor", "{}")
    error = refused(hosts_work.migrate, desk.wish("cursor"))
    assert error.code == "no_bridge"
    assert "pursersctl hosts add cursor" in str(error)
    hosts_work.add(desk.wish("cursor"))
    assert hosts_work.migrate(desk.wish("cursor")).entries[0].action == "unchanged"


def test_remove_after_migrate_says_where_the_old_entry_is(desk: Desk) -> None:
    file = bridge(desk, "cursor", "uvx", ["pursers-wait-bridge"], ENV)
    before = file.read_bytes()
    hosts_work.migrate(desk.wish("cursor"))
    told = hosts_work.remove(desk.wish("cursor"))
    assert desk.servers("cursor") == {}
    (note,) = [note for note in told.notes if "the bridge's before" in note]
    assert Path(note.split()[-1]).read_bytes() == before


# Claude Code's own command

CLAUDE = f"""#!{sys.executable}
import json, os, sys, time
mode = open(os.path.dirname(sys.argv[0]) + "/mode").read()
verb, scope, name, entry = sys.argv[2], sys.argv[4], sys.argv[5], json.loads(sys.argv[6])
assert sys.argv[1:4] == ["mcp", "add-json", "-s"], sys.argv
if mode == "fails":
    sys.exit("it is broken today")
if mode == "hangs":
    time.sleep(60)
path = os.environ["HOME"] + ("/elsewhere.json" if mode == "elsewhere" else "/.claude.json")
data = json.load(open(path)) if os.path.exists(path) else {{}}
if mode == "forgets":
    del entry["alwaysLoad"]
place = data if scope == "user" else data.setdefault("projects", {{}}).setdefault(os.getcwd(), {{}})
place.setdefault("mcpServers", {{}})[name] = entry
data["numStartups"] = data.get("numStartups", 0) + 1
json.dump(data, open(path, "w"), indent=2)
"""

STATE = '{\n    "numStartups": 7,\n    "theme": "dark"\n}\n'


def claude(desk: Desk, mode: str) -> None:
    desk.program("claude", CLAUDE)
    (desk.programs / "mode").write_text(mode)


@pytest.mark.parametrize("mode", ["works", "forgets"])
@pytest.mark.parametrize("scope", ["user", "local"])
@pytest.mark.parametrize("before", [STATE, None])
def test_claude_codes_own_command(desk: Desk, mode: str, scope: str, before: str | None) -> None:
    claude(desk, mode)
    if before:
        desk.write("claude-code", before)
    told = hosts_work.add(desk.wish("claude-code", scope=scope))
    assert told.through == "command"
    data = json.loads(desk.path("claude-code").read_text())
    place = data if scope == "user" else data["projects"][str(desk.project)]
    assert data["numStartups"] > 0
    claude(desk, "fails")
    file = desk.write("cursor", "{}")  # the same entry as the editor writes
    other = Desk(desk.root / "other")
    other.write("claude-code", "{}")
    hosts_work.add(other.wish("claude-code"))
    assert place["mcpServers"]["pursers"] == other.servers("claude-code")["pursers"]
    file.unlink()
    hosts_work.remove(desk.wish("claude-code", scope=scope))
    path = desk.path("claude-code")
    assert (path.read_text() if path.exists() else None) == before


@pytest.mark.parametrize(
    ("mode", "why"),
    [("fails", "it is broken today"), ("hangs", "it took more than"), ("elsewhere", "it wrote no entry")],
)
def test_where_the_command_does_not_work_the_file_is_written(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, mode: str, why: str
) -> None:
    monkeypatch.setattr(hosts_claude, "TIMEOUT", 1.0 if mode == "hangs" else 60.0)
    claude(desk, mode)
    file = desk.write("claude-code", STATE)
    told = hosts_work.add(desk.wish("claude-code"))
    assert told.through == "file"
    assert any("mcp add-json did not work" in note and why in note for note in told.notes)
    assert list(desk.servers("claude-code")) == ["pursers"]
    hosts_work.remove(desk.wish("claude-code"))
    assert file.read_text() == STATE


def test_the_command_is_not_given_a_broken_file(desk: Desk) -> None:
    """It would put a new one in its place."""
    claude(desk, "works")
    file = desk.write("claude-code", "{")
    assert refused(hosts_work.add, desk.wish("claude-code")).code == "broken"
    assert file.read_text() == "{"


def test_the_command_is_not_given_a_blank_file(desk: Desk) -> None:
    claude(desk, "works")
    file = desk.write("claude-code", "\n")
    told = hosts_work.add(desk.wish("claude-code"))
    assert (told.through, len(told.notes)) == ("file", 1), "not tried"
    hosts_work.remove(desk.wish("claude-code"))
    assert file.read_text() == "\n"


def test_a_projects_file_is_never_given_to_the_command(desk: Desk) -> None:
    claude(desk, "fails")
    path = desk.write("claude-code", '{"mcpServers": {  }}', scope="project")
    told = hosts_work.add(desk.wish("claude-code", scope="project"))
    assert told.through == "file"
    assert not any("did not work" in note for note in told.notes), "not tried"
    hosts_work.remove(desk.wish("claude-code", scope="project"))
    assert path.read_text() == '{"mcpServers": {  }}'


def test_a_dry_run_starts_no_command(desk: Desk) -> None:
    claude(desk, "works")
    desk.write("claude-code", STATE)
    told = hosts_work.add(desk.wish("claude-code", dry_run=True))
    assert told.through == "command"
    assert any("mcp add-json -s user pursers …" in note for note in told.notes)
    assert desk.path("claude-code").read_text() == STATE


def test_what_is_told_can_be_sent(desk: Desk) -> None:
    desk.write("cursor", "{}")
    told = hosts_work.add(desk.wish("cursor"))
    assert msgspec.json.decode(msgspec.json.encode(told), type=type(told)) == told
