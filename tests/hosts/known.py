"""The hosts that are tried: how each is installed, pointed at the scripted model, run, and asked for its servers."""

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from hosts.formats import Anthropic, Format, Gemini, OpenAI

SERVER = "pursers"
NOBODY = "http://127.0.0.1:9"
"""A proxy that does not exist: what a host wants of anybody but this machine goes nowhere."""

OFFLINE = {
    "HTTP_PROXY": NOBODY,
    "HTTPS_PROXY": NOBODY,
    "http_proxy": NOBODY,
    "https_proxy": NOBODY,
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}


class Host(ABC):
    """One host program."""

    name: str
    """As `pursersctl hosts` calls it."""
    package: str
    program: str
    form: Format

    def __repr__(self) -> str:
        return self.name

    @abstractmethod
    def tool(self, name: str) -> str:
        """What the model calls our tool."""

    @abstractmethod
    def configure(self, user: Path, model: str) -> None:
        """Write below the home folder `user` what makes it ask the model at this address."""

    @abstractmethod
    def variables(self, model: str) -> dict[str, str]:
        """Its environment for the same purpose, and to keep it quiet."""

    @abstractmethod
    def prompt(self, text: str) -> list[str]:
        """The arguments for one prompt without a person."""

    @property
    def listing(self) -> list[str]:
        """The arguments that list its servers."""
        return ["mcp", "list"]

    def is_content(self, printed: str) -> bool:
        """Whether that list says that all is well with our server."""
        line = next((line for line in printed.splitlines() if SERVER in line), "")
        return "connected" in line.lower() and "dis" not in line.lower()


class ClaudeCode(Host):
    """Claude Code."""

    name, package, program, form = "claude-code", "@anthropic-ai/claude-code", "claude", Anthropic()

    def tool(self, name: str) -> str:
        return f"mcp__{SERVER}__{name}"

    def configure(self, user: Path, model: str) -> None:
        return

    def variables(self, model: str) -> dict[str, str]:
        quiet = ("DISABLE_TELEMETRY", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "IS_SANDBOX")
        key = {"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "sk-ant-scripted-000000000000000000"}
        return {**dict.fromkeys(quiet, "1"), **key}

    def prompt(self, text: str) -> list[str]:
        return ["-p", text, "--allowedTools", f"mcp__{SERVER}__*", "--output-format", "json"]


class Codex(Host):
    """Codex CLI."""

    name, package, program, form = "codex", "@openai/codex", "codex", OpenAI()

    def tool(self, name: str) -> str:
        return f"mcp__{SERVER}/{name}"

    def configure(self, user: Path, model: str) -> None:
        provider = f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{model}/v1"\nwire_api = "responses"\n'
        _write(user / ".codex" / "config.toml", f'model = "scripted"\nmodel_provider = "scripted"\n\n{provider}')

    def variables(self, model: str) -> dict[str, str]:
        return {}

    def prompt(self, text: str) -> list[str]:
        return ["exec", "--skip-git-repo-check", "--json", text]

    @property
    def listing(self) -> list[str]:
        return ["mcp", "list", "--json"]

    def is_content(self, printed: str) -> bool:
        servers: list[dict[str, Any]] = json.JSONDecoder().raw_decode(printed)[0]  # its warnings follow
        return any(server["name"] == SERVER and server["enabled"] for server in servers)


class GeminiCli(Host):
    """Gemini CLI."""

    name, package, program, form = "gemini-cli", "@google/gemini-cli", "gemini", Gemini()

    def tool(self, name: str) -> str:
        return f"mcp_{SERVER}_{name}"

    def configure(self, user: Path, model: str) -> None:
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True},
        }
        _write(user / ".gemini" / "settings.json", json.dumps(settings, indent=2) + "\n")

    def variables(self, model: str) -> dict[str, str]:
        return {"GOOGLE_GEMINI_BASE_URL": model, "GEMINI_API_KEY": "scripted", "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def prompt(self, text: str) -> list[str]:
        return ["-m", "gemini-2.5-flash", "-p", text]  # a named model needs no router, which would be one more turn


class OpenCode(Host):
    """opencode."""

    name, package, program, form = "opencode", "opencode-ai", "opencode", Anthropic()

    def tool(self, name: str) -> str:
        return f"{SERVER}_{name}"

    def configure(self, user: Path, model: str) -> None:
        settings = {
            "model": "anthropic/claude-sonnet-4-5",
            "small_model": "anthropic/claude-sonnet-4-5",
            "provider": {"anthropic": {"options": {"baseURL": f"{model}/v1", "apiKey": "scripted"}}},
            "permission": {"*": "allow"},
            "autoupdate": False,
        }
        _write(user / ".config" / "opencode" / "opencode.json", json.dumps(settings, indent=2) + "\n")

    def variables(self, model: str) -> dict[str, str]:
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}

    def prompt(self, text: str) -> list[str]:
        return ["run", text]


HOSTS: tuple[Host, ...] = (ClaudeCode(), Codex(), GeminiCli(), OpenCode())


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
