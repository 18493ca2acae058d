"""`pursersctl help`: a page about a command, made like a man page from what the command declares."""

import inspect
import textwrap
from typing import Annotated, Any

import typer

from pursersctl import output
from pursersctl.errors import Exit
from pursersctl.render import wrapped
from pursersctl.table import Line

EXITS = {
    Exit.OK: "done",
    Exit.FAILED: "failed, or Central refused; the text says why",
    Exit.USAGE: "wrong usage",
    Exit.NOT_RUNNING: "the daemon is not running",
    Exit.BUSY: "the daemon runs but does not answer, or did not end in time",
    Exit.REFUSED: "refused: versions that cannot talk, or a daemon or folder that is not safely ours",
}
MARGIN = 7
WIDEST = 100


def help_command(
    ctx: typer.Context,
    command: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]...", help="A command, or none.")] = None,
) -> None:
    """Show the manual page of a command.

    \b
    Examples:
      pursersctl help
      pursersctl help ps
      pursersctl help logs | less
    """
    found: Any = ctx.find_root().command
    path = "pursersctl"
    for word in command or ():
        known = getattr(found, "commands", {})
        if word not in known:
            raise typer.BadParameter(f"{path} has no command {word!r}. It has: {', '.join(known) or 'none'}.")
        found, path = known[word], f"{path} {word}"
    output.show(page(found, path, min(output.width(), WIDEST)))


def page(command: Any, path: str, width: int) -> list[Line]:
    """The manual page of a command, whose whole name is `path`."""
    summary, text, examples = _help(command)
    lines = [*_section("NAME", wrapped(f"{path} - {summary}", width, indent=MARGIN))]
    lines += _section("SYNOPSIS", wrapped(f"{path} {_usage(command)}", width, indent=MARGIN))
    paragraphs = [line for part in text for line in [*wrapped(part, width, indent=MARGIN), ()]]
    lines += _section("DESCRIPTION", paragraphs[:-1])
    ctx = typer.Context(command, info_name=path)
    subcommands = getattr(command, "commands", {})
    lines += _section("COMMANDS", _list([(name, _help(sub)[0]) for name, sub in subcommands.items()], width))
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    lines += _section("ARGUMENTS", _list([(p.metavar or p.name.upper(), p.help or "") for p in arguments], width))
    options = [p for p in command.params if p.param_type_name == "option"]
    lines += _section("OPTIONS", _list([_option(p, ctx) for p in options], width))
    lines += _section("EXAMPLES", [((" " * MARGIN, ""), (example, "")) for example in examples])
    lines += _section("EXIT STATUS", _list([(str(int(code)), text) for code, text in EXITS.items()], width))
    return lines[:-1]


def _help(command: Any) -> tuple[str, list[str], list[str]]:
    """The first sentence, the paragraphs and the examples of a command's help."""
    text, _, examples = inspect.cleandoc(command.help or "").partition("\b\nExamples:\n")
    paragraphs = [" ".join(part.split()) for part in text.replace("\b", "").split("\n\n") if part.strip()]
    summary = paragraphs[0] if paragraphs else ""
    shown = textwrap.dedent(examples.partition("\n\n")[0]).splitlines()
    return summary.rstrip("."), paragraphs, shown


def _usage(command: Any) -> str:
    arguments = [p.metavar or p.name.upper() for p in command.params if p.param_type_name == "argument"]
    return " ".join(["[OPTIONS]", *(["COMMAND …"] if hasattr(command, "commands") else []), *arguments])


def _option(parameter: Any, ctx: typer.Context) -> tuple[str, str]:
    """Its names with what may follow them, and what it means."""
    names, meaning = parameter.get_help_record(ctx)
    return names, " ".join(meaning.split())


def _list(entries: list[tuple[str, str]], width: int) -> list[Line]:
    lines: list[Line] = []
    for name, meaning in entries:
        lines += [((" " * MARGIN, ""), (name, "bold")), *wrapped(meaning, width, indent=2 * MARGIN)]
    return lines


def _section(title: str, lines: list[Line]) -> list[Line]:
    return [((title, "bold"),), *lines, ()] if lines else []


def add(app: typer.Typer) -> None:
    """Declare the command."""
    app.command("help")(help_command)
