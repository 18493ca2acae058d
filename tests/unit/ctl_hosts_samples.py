"""What `pursersctl hosts` tells, for the tests of how it looks."""

from pursersctl.hosts_report import (
    EntryChange,
    FieldChange,
    HostChange,
    HostEntry,
    HostFile,
    HostList,
    HostProblem,
    HostRow,
)

SHIM = "/home/me/.local/share/pipx/venvs/pursersd/bin/pursers-shim"


def row(host: str, title: str, files: list[HostFile], *, installed: bool = True) -> HostRow:
    entries = [entry for file in files for entry in file.entries]
    return HostRow(
        host=host,
        title=title,
        installed=installed,
        program=f"/usr/bin/{host}" if installed else None,
        found=entries[0].kind if entries else "none",
        command_exists=all(entry.command_exists for entry in entries),
        files=files,
        problems=[problem for file in files for problem in file.problems],
    )


def file(path: str, *entries: HostEntry, problems: tuple[HostProblem, ...] = ()) -> HostFile:
    return HostFile(path=path, scope="user", exists=bool(entries), entries=list(entries), problems=list(problems))


LIST = HostList(
    shim=SHIM,
    hosts=[
        row(
            "claude-code",
            "Claude Code",
            [
                file(
                    "/home/me/.claude.json",
                    HostEntry(name="pursers", kind="shim", command=SHIM, command_exists=True, env=["PURSERS_HOST"]),
                )
            ],
        ),
        row(
            "codex",
            "Codex",
            [
                file(
                    "/home/me/.codex/config.toml",
                    HostEntry(name="wait", kind="bridge", command="uvx", command_exists=True, env=["PURSERS_ROLE"]),
                    problems=(
                        HostProblem(
                            code="bridge",
                            severity="warn",
                            text="wait in /home/me/.codex/config.toml starts pursers-wait-bridge.",
                            action="pursersctl hosts migrate codex --entry wait",
                        ),
                    ),
                )
            ],
        ),
        row("zed", "Zed", [file("/home/me/.var/app/dev.zed.Zed/config/zed/settings.json")]),
        row(
            "goose",
            "Goose",
            [
                file(
                    "/home/me/.config/goose/config.yaml",
                    HostEntry(
                        name="pursers",
                        kind="shim",
                        command="/gone/pursers-shim",
                        command_exists=False,
                        env=["PURSERS_HOST"],
                    ),
                    problems=(
                        HostProblem(
                            code="command_missing",
                            severity="fail",
                            text="pursers in /home/me/.config/goose/config.yaml starts /gone/pursers-shim, which is not there.",
                            action="pursersctl hosts add goose",
                        ),
                    ),
                )
            ],
        ),
        row("cursor", "Cursor", [file("/home/me/.cursor/mcp.json")], installed=False),
        row("vscode", "VS Code", [file("/home/me/.config/Code/User/mcp.json")], installed=False),
    ],
)

NOTE = "Codex reads its servers when it starts: start it again, or a new conversation."

ADDED = HostChange(
    host="codex",
    scope="user",
    file="/home/me/.codex/config.toml",
    entries=[
        EntryChange(
            entry="pursers",
            action="added",
            fields=[
                FieldChange(field="command", before=None, after=SHIM),
                FieldChange(field="supports_parallel_tool_calls", before=None, after="true"),
                FieldChange(
                    field="env_vars",
                    before=None,
                    after='["PURSERSD_HOME", "PURSERSD_AUTOSTART", "ONBOARD_CENTRAL_URL", "ONBOARD_BOARD_ID", "PURSERS_ROLE"]',
                ),
                FieldChange(field="env", before=None, after='{"PURSERS_HOST": "codex"}'),
            ],
        )
    ],
    dry_run=False,
    through="file",
    backup="/home/me/.local/state/pursersd/hosts/1f2e3d4c-0a1b2c3d4e5f-config.toml.copy",
    notes=[NOTE],
)

MIGRATED = HostChange(
    host="codex",
    scope="user",
    file="/home/me/.codex/config.toml",
    entries=[
        EntryChange(
            entry="wait",
            action="migrated",
            fields=[
                FieldChange(field="command", before="uvx", after=SHIM),
                FieldChange(field="args", before='["pursers-wait-bridge"]', after="[]"),
                FieldChange(field="required", before=None, after="true"),
                FieldChange(
                    field="environment",
                    before="ONBOARD_CENTRAL_URL, ONBOARD_CENTRAL_TOKEN_FILE, ONBOARD_BOARD_ID, PURSERS_ROLE",
                    after="ONBOARD_CENTRAL_URL, ONBOARD_CENTRAL_TOKEN_FILE, ONBOARD_BOARD_ID, PURSERS_ROLE",
                ),
            ],
        )
    ],
    dry_run=True,
    through="file",
    backup=None,
    notes=[NOTE],
)
