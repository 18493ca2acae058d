"""`pursersctl config show` and `reload`: how the daemon itself is configured, and where each value comes from."""

import os
from collections.abc import Mapping
from typing import Annotated

import msgspec
import typer

from pursers_shim.paths import Place
from pursersctl import client, output
from pursersctl.errors import NotRunning
from pursersctl.render import DEFAULT_WIDTH, wrapped
from pursersctl.table import Column, Line, Span, clean, table
from pursersctl.usage import Commands, Json
from pursersd import api

app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None)

COLUMNS = (
    Column("KEY", keep=100),
    Column("VALUE", keep=90),
    Column("FILE SAYS", keep=80),
    Column("FROM", keep=70, least=12),
)


def show(place: Place, environ: Mapping[str, str], *, origin: bool, as_json: bool) -> None:
    """Print what the daemon goes by, or, without one, what the next one would; changes nothing."""
    try:
        result = client.ask(place, "config")
        answer, is_running = client.read(result, api.Config), True
    except NotRunning:
        from pursersd.configured import Configured, config_file  # here, because most control commands do not need it

        answer, is_running = Configured(config_file(place.home), environ, {}).show(), False
        result = msgspec.json.encode(answer)
    if as_json:
        output.show_json(result)
    else:
        output.show(rendered(answer, origin=origin, is_running=is_running, width=output.width()))


def reload(place: Place, *, as_json: bool) -> None:
    """Have the daemon read its file again and print what changed. Raises Failed if anything is wrong with the file."""
    result = client.ask(place, "reload")
    answer = client.read(result, api.Reloaded)
    if as_json:
        output.show_json(result)
    else:
        output.show(reloaded(answer, output.width()))


def rendered(answer: api.Config, *, origin: bool, is_running: bool, width: int = DEFAULT_WIDTH) -> list[Line]:
    """The page of `pursersctl config show`."""
    lines: list[Line] = [((clean(answer.file), "bold"), ("" if answer.exists else "  (does not exist)", "dim"))]
    if not is_running:
        lines += [(("No daemon runs: this is what the next one would go by.", "dim"),)]
    pending = [row for row in answer.rows if row.pending is not None]
    kept = [i for i in range(len(COLUMNS)) if (i != 2 or pending) and (i != 3 or origin)]
    cells = [[_cells(row)[i] for i in kept] for row in answer.rows]
    lines += [(), *table(tuple(COLUMNS[i] for i in kept), cells, width)]
    for text in answer.problems:
        lines += [(), *wrapped(text, width, style="red")]
    for text in answer.notes:
        lines += [(), *wrapped(text, width, style="yellow")]
    if pending:
        how = "restart" if any(row.needs_restart for row in pending) else "reload"  # a restart reads the file, too
        lines += [(), ((f"The file says something else now. Have it followed with: pursersctl {how}", "yellow"),)]
    return lines


def reloaded(answer: api.Reloaded, width: int = DEFAULT_WIDTH) -> list[Line]:
    """What `pursersctl reload` prints."""
    where = clean(answer.file) if answer.exists else f"{clean(answer.file)} (does not exist)"
    if not answer.changes:
        return wrapped(f"{where} was read again: nothing has changed.", width)
    lines = wrapped(f"{where} was read again:", width)
    for change in answer.changes:
        later = "  after: pursersctl restart" if change.needs_restart else ""
        lines.append(
            ((f"  {change.key} ", ""), (f"{_text(change.before)} → {_text(change.after)}", "bold"), (later, "yellow"))
        )
    return lines


def _cells(row: api.ConfigRow) -> list[Span]:
    pending = "" if row.pending is None else _text(row.pending)
    origin = row.name if row.name is not None else row.origin
    return [
        (row.key, ""),
        (_text(row.value), ""),
        (pending, "yellow"),
        (clean(origin), "dim" if origin == "default" else ""),
    ]


def _text(value: float | str) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


@app.callback()
def group() -> None:
    """See how the daemon itself is configured; docs/configuration.md has every key.

    \b
    Examples:
      pursersctl config show --origin
    """


@app.command("show")
def show_command(
    origin: Annotated[bool, typer.Option("--origin", help="Also where each value comes from.")] = False,
    as_json: Json = False,
) -> None:
    """Show the configuration file's place and every key with its value.

    \b
    Examples:
      pursersctl config show
      pursersctl config show --origin
      pursersctl config show --json | jq -r '.rows[] | select(.origin != "default").key'
    """
    with output.reporting(as_json=as_json):
        show(client.where(os.environ), os.environ, origin=origin, as_json=as_json)


def add(commands: typer.Typer) -> None:
    """Declare the commands."""
    commands.add_typer(app, name="config", short_help="Show how the daemon itself is configured.")
    commands.command("reload", short_help="Have the daemon read its configuration file again.")(reload_command)


def reload_command(as_json: Json = False) -> None:
    """Have the daemon read its configuration file again; say what changed and what needs a restart.

    \b
    Examples:
      pursersctl reload
    """
    with output.reporting(as_json=as_json):
        reload(client.where(os.environ), as_json=as_json)
