"""The hosts that we know: where each keeps its servers on Linux and macOS, and the shape of an entry. docs/hosts.md
tells the same to people. Nothing here looks at a file; `hosts_places` does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Format = Literal["json", "toml", "yaml"]
Extra = Literal["comment", "trailing comma", "byte order mark"]
"""What JSON does not have, and some hosts allow."""
Path = tuple[str, ...]
"""The keys from the top of a file down to a value."""

SHIM = "pursers-shim"
ENTRY = "pursers"
"""The name of the entry unless another one is wished."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Where an entry keeps what every host wants to know."""

    command: Path = ("command",)
    args: Path | None = ("args",)
    """None: the command is a list that holds the arguments as well."""
    env: Path = ("env",)


PLAIN = Shape()
NESTED = Shape(("command", "path"), ("command", "args"), ("command", "env"))
"""As Zed had it before 2025-08, and still reads it."""


@dataclass(frozen=True, slots=True)
class Known:
    """One kind of host."""

    name: str
    title: str
    format: Format
    container: Path
    """Where the servers stand in its file."""
    programs: tuple[str, ...]
    """Names of its program on the PATH."""
    shapes: tuple[Shape, ...] = (PLAIN,)
    """The one that we write first, then those that it reads as well."""
    always: Mapping[str, Any] = field(default_factory=dict)
    """Fields that say what kind of entry it is."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Fields without which it ends a call sooner than `PURSERS_HOST` promises."""
    needs: Mapping[str, Any] = field(default_factory=dict)
    """Fields that let it wait for our tools and call them without asking; `--plain` leaves them out."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of every entry: how long it lets a call block."""
    project: str | None = None
    """Its file in a project's folder; None if it has none."""
    own_entries: bool = False
    """Whether it keeps entries of one user for one folder (Claude Code's scope `local`)."""
    refuses: frozenset[Extra] = frozenset()
    """What it does not read in its JSON, as far as that was tried."""


PASSED_BY_CODEX = (
    "PURSERSD_HOME",
    "PURSERSD_AUTOSTART",
    "PURSERS_BRIDGE_STATE_DIR",
    "ONBOARD_CENTRAL_URL",
    "ONBOARD_CENTRAL_TOKEN_FILE",
    "ONBOARD_CENTRAL_TOKEN",
    "ONBOARD_BOARD_ID",
    "ONBOARD_AGENT_NAME",
    "ONBOARD_AGENT_INSTANCE",
    "PURSERS_ROLE",
    "XDG_STATE_HOME",
)
"""Codex passes HOME, PATH, LANG, SHELL, TERM and nothing else unless its entry names it. Names only, no values."""

HOSTS: tuple[Known, ...] = (
    Known(
        name="claude-code",
        title="Claude Code",
        format="json",
        container=("mcpServers",),
        programs=("claude",),
        always={"type": "stdio"},
        needs={"alwaysLoad": True},
        env={"PURSERS_HOST": "claude-code"},
        project=".mcp.json",
        own_entries=True,
        refuses=frozenset({"comment", "trailing comma"}),
    ),
    Known(
        name="claude-desktop",
        title="Claude Desktop",
        format="json",
        container=("mcpServers",),
        programs=("claude-desktop",),
        env={"PURSERS_HOST": "claude-desktop"},
    ),
    Known(
        name="codex",
        title="Codex",
        format="toml",
        container=("mcp_servers",),
        programs=("codex",),
        limits={"tool_timeout_sec": 620},
        needs={
            "required": True,
            "default_tools_approval_mode": "approve",
            "supports_parallel_tool_calls": True,
            "env_vars": list(PASSED_BY_CODEX),
        },
        env={"PURSERS_HOST": "codex"},
        project=".codex/config.toml",
    ),
    Known(
        name="gemini-cli",
        title="Gemini CLI",
        format="json",
        container=("mcpServers",),
        programs=("gemini",),
        needs={"trust": True},
        env={"PURSERS_HOST": "gemini-cli", "PURSERS_HOST_TIMEOUT_S": "600"},
        project=".gemini/settings.json",
        refuses=frozenset({"trailing comma", "byte order mark"}),
    ),
    Known(
        name="zed",
        title="Zed",
        format="json",
        container=("context_servers",),
        programs=("zed", "zeditor", "zedit"),
        shapes=(PLAIN, NESTED),
        limits={"timeout": 600},
        env={"PURSERS_HOST": "zed"},
        project=".zed/settings.json",
    ),
    Known(
        name="goose",
        title="Goose",
        format="yaml",
        container=("extensions",),
        programs=("goose",),
        shapes=(Shape(("cmd",), ("args",), ("envs",)),),
        always={"enabled": True, "type": "stdio", "description": "Work on a Pursers board"},
        limits={"timeout": 300},
        env={"PURSERS_HOST": "goose"},
    ),
    Known(
        name="cursor",
        title="Cursor",
        format="json",
        container=("mcpServers",),
        programs=("cursor", "cursor-agent"),
        env={"PURSERS_HOST": "cursor"},
        project=".cursor/mcp.json",
    ),
    Known(
        name="vscode",
        title="VS Code",
        format="json",
        container=("servers",),
        programs=("code", "code-insiders", "codium"),
        always={"type": "stdio"},
        env={"PURSERS_HOST": "vscode"},
        project=".vscode/mcp.json",
    ),
    Known(
        name="opencode",
        title="opencode",
        format="json",
        container=("mcp",),
        programs=("opencode",),
        shapes=(Shape(("command",), None, ("environment",)),),
        always={"type": "local", "enabled": True},
        limits={"timeout": 300_000},
        env={"PURSERS_HOST": "opencode"},
        project="opencode.json",
    ),
)

BY_NAME: Mapping[str, Known] = {known.name: known for known in HOSTS}
