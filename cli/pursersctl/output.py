"""Where answers and errors go: stdout and stderr, with colours only on a terminal that wants them."""

import os
import select
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn, TextIO

import msgspec

from pursers_shim.paths import PathError
from pursersctl.errors import CommandError, Exit, Refused
from pursersctl.render import DEFAULT_WIDTH, plain
from pursersctl.table import Line
from pursersd import api


@contextmanager
def reporting(*, as_json: bool = False, prefix: str = "") -> Iterator[None]:
    """Turn a CommandError into its text on stderr, after `prefix`, and its exit code; with `as_json` also into JSON on
    stdout. So is a PathError."""
    try:
        yield
    except CommandError as error:
        _report(error, as_json, prefix)
    except PathError as error:
        _report(Refused(str(error), code="unsafe_folder"), as_json, prefix)


def _report(error: CommandError, as_json: bool, prefix: str) -> NoReturn:
    if as_json:
        show_json(failure(error))
    note(f"{prefix}{error}")
    sys.exit(error.status)


def failure(error: CommandError) -> bytes:
    """The JSON of a command that did not succeed (docs/json.md, "Errors")."""
    return msgspec.json.encode(
        {"schema": api.SCHEMA, "error": {"code": error.code, "text": str(error)}}, order="deterministic"
    )


def write(text: str) -> None:
    """Put text on stdout, now. Where that cannot be done the command ends, with the reason; a reader that has gone away
    (BrokenPipeError) ends it in silence."""
    stdout: TextIO | None = sys.stdout
    if stdout is None:
        note("The answer cannot be written: stdout is closed.")
        sys.exit(Exit.FAILED)
    encoding = stdout.encoding or "utf-8"
    try:
        # A terminal in another encoding shows "?" for the dash and the ellipsis; it must not end the command.
        stdout.write(text.encode(encoding, "replace").decode(encoding))
        stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What lies in its buffer is tried again when the program ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        note(f"The answer cannot be written: {error.strerror}.")
        sys.exit(Exit.FAILED)


def show(lines: list[Line]) -> None:
    """Print rendered lines on stdout."""
    if sys.stdout is None or not wants_colour(sys.stdout.isatty(), os.environ):
        write(plain(lines))
        return
    # rich costs as much start-up time as everything else together: only where it can be seen.
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False)
    for line in lines:
        console.print(Text.assemble(*line), soft_wrap=True)


def show_json(document: bytes) -> None:
    """Print one JSON document on stdout, indented."""
    write(msgspec.json.format(document, indent=2).decode() + "\n")


def say(text: str) -> None:
    """Print one line of an answer on stdout."""
    write(text + "\n")


def note(text: str) -> None:
    """Print something that is not the answer, on stderr."""
    print(text, file=sys.stderr)


def reader_is_gone(seconds: float) -> bool:
    """Wait; True as soon as nobody can read our stdout any more (`pursersctl logs -f | head`)."""
    if sys.stdout.isatty():
        time.sleep(seconds)  # a terminal that goes away sends SIGHUP, and macOS cannot poll one
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return bool(poll.poll(seconds * 1000))


def width() -> int:
    """Columns of the terminal, or of COLUMNS, or 80 where nobody knows."""
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns


def wants_colour(terminal: bool, environ: Mapping[str, str]) -> bool:
    """Colours only on a terminal that has them, and never with NO_COLOR (https://no-color.org)."""
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM", "") not in ("", "dumb")
