"""The command line of `pursersctl doctor`."""

import os
import sys
from typing import Annotated, NoReturn

import typer

from pursersctl.usage import Json


def add(app: typer.Typer) -> None:
    """Declare the command."""

    @app.command("doctor")
    def doctor_command(
        as_json: Json = False,
        bundle: Annotated[
            str | None,
            typer.Option("--bundle", metavar="FILE", help="Also write a .tar.gz or .zip to hand on; without secrets."),
        ] = None,
    ) -> None:
        """Say what is wrong and how to repair it. Starts nothing and changes nothing; needs no daemon.

        \b
        Examples:
          pursersctl doctor
          pursersctl doctor --bundle /tmp/pursersd.tar.gz
          pursersctl doctor --json | jq '.findings[] | select(.result != "pass")'
        """
        if bundle is not None and not bundle.endswith((".tar.gz", ".tgz", ".zip")):
            raise typer.BadParameter("FILE must end with .tar.gz, .tgz or .zip.", param_hint="--bundle")
        try:
            from pursersctl.doctor import doctor  # here, because what it looks with costs other commands time
        except ModuleNotFoundError as error:
            _incomplete(error.name or str(error), as_json=as_json)
        code = doctor(os.environ, bundle=bundle, as_json=as_json)
        sys.stderr.flush()
        os._exit(code)  # everything is said; threads of checks that hang are waited for by nobody


def _incomplete(module: str, *, as_json: bool) -> NoReturn:
    """Say that not even the checks can be loaded."""
    import msgspec

    from pursersctl import doctor_shown, output
    from pursersctl.doctor_install import REINSTALL
    from pursersctl.doctor_patient import ill
    from pursersctl.found import Doctor

    found = ill("packages", f"missing: {module}; nothing else could be looked at", REINSTALL)
    answer = Doctor(result=found.result, findings=[found])
    if as_json:
        output.show_json(msgspec.json.encode(answer))
    else:
        output.show(doctor_shown.doctor(answer, output.width()))
    sys.exit(2)
