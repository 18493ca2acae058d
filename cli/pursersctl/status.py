"""`pursersctl status`: the daemon, its Centrals, and what is wrong."""

import os

from pursers_shim import __version__
from pursers_shim.paths import Place
from pursersctl import client, output, render
from pursersd import api


def status(place: Place, *, as_json: bool) -> None:
    """Print the state of the running daemon; change nothing."""
    result = client.ask(place, "status")
    answer = client.read(result, api.Status)
    if as_json:
        output.show_json(result)
    else:
        stopped = os.path.lexists(place.stopped)
        output.show(render.status(answer, stopped=stopped, version=__version__, width=output.width()))
