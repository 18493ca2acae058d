"""`pursersctl hosts`: let the hosts on this machine start the shim, and take it out again."""

import os
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pursers_shim.paths import HOME_VARIABLE
from pursersctl import client, output
from pursersctl.errors import Failed
from pursersctl.usage import Commands, Json

if TYPE_CHECKING:
    from pursersctl.hosts_report import HostChange
    from pursersctl.hosts_work import Wish

app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None)


class ScopeOption(StrEnum):
    """For whom an entry counts."""

    user = "user"
    project = "project"
    local = "local"


Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="claude-code, claude-desktop, codex, gemini-cli, zed, goose, cursor, vscode or opencode.",
    ),
]
Scope = Annotated[
    ScopeOption,
    typer.Option(
        "--scope", help="user: everywhere; project: in this folder, for all; local: in it, for me (Claude Code)."
    ),
]
EntryName = Annotated[
    str | None, typer.Option("--entry", metavar="NAME", help="Name of the entry; pursers by default.")
]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME=VALUE", help="A variable for the shim; repeatable. No credentials."),
]
Plain = Annotated[
    bool, typer.Option("--plain", help="Without the fields that let the host wait for and allow our tools.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]

_VARIABLE = re.compile(r"[A-Za-z_]\w*")


@app.callback()
def root() -> None:
    """Let the hosts on this machine start the shim: Claude Code, Codex, Gemini CLI, Zed, Goose, Cursor, VS Code, opencode.

    Where each keeps its configuration, what is written and how to undo it by hand is in docs/hosts.md.

    \b
    Examples:
      pursersctl hosts list
      pursersctl hosts add claude-code
      pursersctl hosts migrate codex --dry-run
    """


@app.command("list", short_help="List the hosts, and what they start.")
def list_command(as_json: Json = False) -> None:
    """List the hosts that are found, our entries in their files, and what is wrong with them.

    \b
    Examples:
      pursersctl hosts list
      pursersctl hosts list --json | jq -r '.hosts[] | select(.found == "bridge").host'
    """
    with output.reporting(as_json=as_json):
        from pursersctl import hosts_check, hosts_places, hosts_render
        from pursersctl.hosts_report import HostList

        machine = hosts_places.this_machine(os.environ)
        answer = HostList(shim=machine.shim(), hosts=hosts_check.check(machine))
        _print(answer, lambda: hosts_render.listed(answer, output.width()), as_json=as_json)


@app.command("add", short_help="Let a host start the shim.")
def add_command(
    name: Name,
    scope: Scope = ScopeOption.user,
    entry: EntryName = None,
    env: Env = None,
    plain: Plain = False,
    force: Annotated[bool, typer.Option("--force", help="Also if the host is not found on this machine.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Let a host start the shim, with its absolute path and no secret: address and token come from `pursersctl join`.

    \b
    Examples:
      pursersctl hosts add claude-code
      pursersctl hosts add codex --dry-run
      pursersctl hosts add zed --env ONBOARD_BOARD_ID=my-board --env PURSERS_ROLE=reviewer
      pursersctl hosts add goose --env ONBOARD_CENTRAL_TOKEN_FILE=$HOME/.pursers/worker.jwt
    """
    options = {"scope": scope.value, "entry": entry, "plain": plain, "force": force, "dry_run": dry_run}
    _run("add", name, options, env, as_json=as_json)


@app.command("remove", short_help="Take the shim out of a host again.")
def remove_command(
    name: Name,
    scope: Scope = ScopeOption.user,
    entry: EntryName = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take the shim out of a host again; the file is then as it was before `add`, byte for byte if nobody changed it.

    \b
    Examples:
      pursersctl hosts remove claude-code
      pursersctl hosts remove claude-code --scope project --dry-run
    """
    _run("remove", name, {"scope": scope.value, "entry": entry, "dry_run": dry_run}, None, as_json=as_json)


@app.command("migrate", short_help="Turn an entry of the bridge into one of the shim.")
def migrate_command(
    name: Name,
    scope: Scope = ScopeOption.user,
    entry: EntryName = None,
    env: Env = None,
    plain: Plain = False,
    undo: Annotated[bool, typer.Option("--undo", help="Let the entries start the bridge again.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Turn an entry of pursers-wait-bridge into one of the shim, with the same environment, and show what changes.

    \b
    Examples:
      pursersctl hosts migrate codex --dry-run
      pursersctl hosts migrate codex
      pursersctl hosts migrate codex --undo
    """
    options = {"scope": scope.value, "entry": entry, "plain": plain, "dry_run": dry_run}
    _run("restore" if undo else "migrate", name, options, env, as_json=as_json)


def _run(verb: str, name: str, options: Mapping[str, Any], env: list[str] | None, *, as_json: bool) -> None:
    from pursersctl import hosts_places, hosts_records, hosts_render, hosts_work
    from pursersctl.hosts_known import BY_NAME

    known = BY_NAME.get(name)
    if known is None:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(BY_NAME)}.", param_hint="NAME")
    if options["scope"] not in (scopes := hosts_places.scopes(known)):
        raise typer.BadParameter(f"{known.title} has only: {', '.join(scopes)}.", param_hint="--scope")
    variables = _variables(env or [])
    work: Mapping[str, Callable[[Wish], HostChange]] = {
        "add": hosts_work.add,
        "remove": hosts_work.remove,
        "migrate": hosts_work.migrate,
        "restore": hosts_work.restore,
    }
    with output.reporting(as_json=as_json):
        _refuse_secrets(variables)
        machine = hosts_places.this_machine(os.environ)
        home = client.where(os.environ).home
        records = hosts_records.Records(hosts_records.folder(os.environ, home))
        # A private instance is for its shims, too; the host would start them without that variable.
        private = {} if home is None or verb == "remove" else {HOME_VARIABLE: home}
        written = {name: _written(name, value) for name, value in (private | variables).items()}
        _written("the path of the shim", machine.shim())
        wish = hosts_work.Wish(known=known, machine=machine, records=records, env=written, **options)
        answer = work[verb](wish)
        _print(answer, lambda: hosts_render.changed(answer, output.width()), as_json=as_json)


def _variables(given: list[str]) -> dict[str, str]:
    """The values of --env. What is wrong with one is told without its value."""
    found = {}
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if not equals or not _VARIABLE.fullmatch(name):
            raise typer.BadParameter("give it as NAME=VALUE.", param_hint="--env")
        found[name] = value
    return found


def _written(what: str, value: str) -> str:
    """A word of the system as a file in UTF-8 says it, whatever the locale makes of it. Raises Failed if none can."""
    try:
        return os.fsencode(value).decode()
    except UnicodeDecodeError as error:
        text = (
            f"{what[0].upper()}{what[1:]} is not UTF-8, and a host's file can hold nothing else. Nothing was changed."
        )
        raise Failed(text) from error


def _refuse_secrets(variables: Mapping[str, str]) -> None:
    """A credential in a configuration file is read by every program of this user, and copied with the file."""
    from pursersctl.hosts_entry import bears_secret
    from pursersd.secret import blanked

    for name, value in variables.items():
        if bears_secret(name) or blanked(value) != value:
            raise Failed(
                f"{name} would put a credential into the host's file, so it is refused.\n"
                "Store a door instead, once for all hosts: pursersctl join -\n"
                "Or keep the token in a file: --env ONBOARD_CENTRAL_TOKEN_FILE=/path/of/the/file",
                code="secret",
            )


def _print(answer: Any, lines: Callable[[], Any], *, as_json: bool) -> None:
    import msgspec

    if as_json:
        output.show_json(msgspec.json.encode(answer))
    else:
        output.show(lines())
