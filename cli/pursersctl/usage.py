"""Usage errors quote what was typed, and a door may have been typed in the wrong place."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

# typer does not export it under a name of its own.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, described in docs/json.md.")]


class Commands(TyperGroup):
    """The commands; what they say of wrong arguments holds no credential."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse what comes before the command."""
        with _blanked():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Find the command, parse what is its own, run it."""
        with _blanked():
            return super().invoke(ctx)


@contextmanager
def _blanked() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        from pursersd.secret import blanked  # here, because most commands are typed right

        if isinstance(text := getattr(error, "message", None), str):
            # That it is an error, the line says already.
            error.message = blanked(text).removeprefix("Value error, ")  # type: ignore[attr-defined]
        raise
