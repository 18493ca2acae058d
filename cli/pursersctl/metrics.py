"""`pursersctl metrics`: what the daemon counts, as OpenMetrics text, on stdout or in a file that is read as a whole."""

import os
import tempfile

from pursers_shim.paths import Place
from pursersctl import client, output
from pursersctl.errors import CommandError, Failed
from pursersd import api
from pursersd.api.measures import DOWN


def metrics(place: Place, file: str | None) -> None:
    """Print the metrics, or replace `file` by them. Of a daemon that does not answer they say just that, and it is raised."""
    try:
        text = client.read(client.ask(place, "metrics"), api.Metrics).text
    except CommandError:
        _put(DOWN, file)
        raise
    _put(text, file)


def _put(text: str, file: str | None) -> None:
    if file is None:
        output.write(text)
        return
    folder, name = os.path.split(os.path.abspath(file))
    try:
        # Not *.prom: a collector that looks meanwhile must not take it for one of its files.
        descriptor, draft = tempfile.mkstemp(prefix=f".{name}.", suffix=".new", dir=folder)
    except OSError as error:
        raise Failed(f"Cannot write in {folder}: {error.strerror}.") from error
    try:
        with open(descriptor, "w", encoding="utf-8") as made:
            made.write(text)
            os.fchmod(made.fileno(), 0o644)  # the collector is another user
        os.replace(draft, file)
    except OSError as error:
        os.unlink(draft)
        raise Failed(f"Cannot write {file}: {error.strerror}.") from error
