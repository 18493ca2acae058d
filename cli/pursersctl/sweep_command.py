"""The command line of `pursersctl sweep`."""

import os
from typing import Annotated

import typer

from pursersctl import client, output
from pursersctl.usage import Json


def add(app: typer.Typer) -> None:
    """Declare the command."""

    @app.command("sweep", short_help="List bridges and shims without a host; --yes ends them.")
    def sweep_command(
        yes: Annotated[bool, typer.Option("--yes", help="End the orphans; without it, they are only listed.")] = False,
        pid: Annotated[list[int] | None, typer.Option("--pid", help="Only this process; can be repeated.")] = None,
        as_json: Json = False,
    ) -> None:
        """List the bridges and shims of this user that run, and those that outlived their hosts. Needs no daemon.

        \b
        Examples:
          pursersctl sweep
          pursersctl sweep --yes
          pursersctl sweep --yes --pid 20411
          pursersctl sweep --json | jq '.processes[] | select(.orphan).pid'
        """
        from pursersctl.sweep import sweep  # here, because looking at processes costs other commands time

        with output.reporting(as_json=as_json):
            sweep(client.where(os.environ), really=yes, only=pid or (), as_json=as_json)
