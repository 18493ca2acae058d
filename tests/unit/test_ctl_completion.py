"""pursersctl completion in the real shells that are here, and pursersctl help for every command."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest
from rich.cells import cell_len
from typer.main import get_command

from pursersctl.__main__ import app
from pursersctl.errors import Exit
from pursersctl.manual import EXITS, page
from pursersctl.render import plain
from pursersd import api
from rig.daemon import CTL, Home
from unit.ctl_daemon import ScriptedDaemon
from unit.ctl_samples import SEATS

GROUP = get_command(app)
COMMANDS = GROUP.commands  # type: ignore[attr-defined]
PS = {"ps": {"result": msgspec.to_builtins(api.Ps(seats=SEATS))}}
BASH = """
source <(pursersctl completion bash) || exit 9
complete() { COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); $FUNCTION pursersctl; echo "${COMPREPLY[@]}"; }
FUNCTION=$(builtin complete -p pursersctl | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"""


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


def shell(home: Home, *command: str) -> str:
    environment = home.environment(role=None)
    environment["PATH"] = os.path.dirname(CTL) + os.pathsep + environment.get("PATH", os.defpath)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def completed(home: Home, *lines: str) -> list[str]:
    """What bash offers for the last word of each line."""
    return shell(home, "bash", "--norc", "-c", BASH + "\n".join(f'complete "{line}"' for line in lines)).splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_options_values_and_names(home: Home) -> None:
    assert completed(home, "pursersctl re", "pursersctl ps --state w", "pursersctl ps --seat b") == [
        "restart reap reload",
        "waiting working",
        "",
    ]
    assert list(home.folder.iterdir()) == []
    with ScriptedDaemon(home.folder, answers=PS):
        assert completed(home, "pursersctl ps --seat b") == ["bench-r1 bench-w1"]


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_other_shells_accept_their_script(home: Home, name: str) -> None:
    script = shell(home, "pursersctl", "completion", name)
    assert "_PURSERSCTL_COMPLETE" in script
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} here; its script was only looked at")
    file = home.folder / "script"
    file.write_text(script)
    assert shell(home, name, "--no-execute", str(file)) == ""


def test_no_other_shell(home: Home) -> None:
    done = home.ctl("completion", "powershell")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("width", [80, 120])
def test_every_command_has_a_manual_page(name: str, width: int) -> None:
    shown = plain(page(COMMANDS[name], f"pursersctl {name}", width))
    for title in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "EXIT STATUS"):
        assert f"{title}\n" in shown
    examples = shown.partition("EXAMPLES\n")[2].partition("\n\n")[0]
    prose = shown.replace(examples, "")
    assert all(cell_len(line) <= width for line in prose.splitlines())
    assert f"pursersctl {name}" in examples
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "option":
            assert all(option in shown for option in parameter.opts)
        assert " ".join((parameter.help or "").split()) in " ".join(shown.split())


def test_the_page_of_all_and_of_none(home: Home) -> None:
    whole = home.ctl("help").stdout
    assert all(f"       {name}\n" in whole for name in COMMANDS)
    assert home.ctl("help", "ps").stdout.startswith("NAME\n       pursersctl ps - List the conversations")
    wrong = home.ctl("help", "dance")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "pursersctl has no command 'dance'" in wrong.stderr
    assert list(home.folder.iterdir()) == []


def test_every_exit_code_is_explained() -> None:
    assert list(EXITS) == list(Exit)


def test_what_one_command_needs_costs_the_others_nothing() -> None:
    wanted = (
        "rich.console",
        "asyncio",
        "pursersctl.top",
        "pursersctl.events",
        "pursersctl.live",
        "pursersd.api.events",
    )
    look = f"import sys, pursersctl.__main__; print([m for m in {wanted} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
