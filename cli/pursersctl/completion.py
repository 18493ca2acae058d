"""`pursersctl completion`: what a shell needs to complete our commands, their options, and what the daemon knows."""

import os
from typing import Annotated, Literal

import typer

from pursersctl import output

VARIABLE = "_PURSERSCTL_COMPLETE"
"""Set by a shell that asks what may come next."""

Shell = Literal["bash", "zsh", "fish"]


def completion_command(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the completion script for a shell.

    \b
    Examples:
      source <(pursersctl completion bash)                                             in ~/.bashrc
      pursersctl completion zsh > ~/.zfunc/_pursersctl                                 with ~/.zfunc in fpath
      pursersctl completion fish > ~/.config/fish/completions/pursersctl.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    output.say(get_completion_script(prog_name="pursersctl", complete_var=VARIABLE, shell=shell))


def prepare() -> None:
    """Let the commands answer a shell, if one asks."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()


def add(app: typer.Typer) -> None:
    """Declare the command."""
    app.command("completion")(completion_command)
