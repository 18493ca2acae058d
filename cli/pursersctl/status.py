"""`pursersctl status`: the daemon, its Centrals, and what is wrong; or one conversation in detail."""

import os

from pursers_shim import __version__
from pursers_shim.paths import Place
from pursersctl import client, detail, output, render, render_local
from pursersd import api

PATIENCE = 2.0
"""Seconds for the answer: who asks how the daemon is wants to hear soon that it is busy."""


def conversation(place: Place, which: str, *, as_json: bool) -> None:
    """Print the settings and seats of one conversation; change nothing."""
    result = client.ask(place, "conversation", {"which": which})
    answer = client.read(result, api.ConversationStatus)
    if as_json:
        output.show_json(result)
    else:
        output.show(detail.conversation(answer, output.width()))


def status(place: Place, *, as_json: bool) -> None:
    """Print the state of the running daemon; change nothing."""
    result = client.ask(place, "status", timeout=PATIENCE)
    answer = client.read(result, api.Status)
    if as_json:
        output.show_json(result)
    else:
        stopped = os.path.lexists(place.stopped)
        width = output.width()
        output.show(render.status(answer, stopped=stopped, version=__version__, width=width))
        if answer.local is not None:
            output.show([(), *render_local.status(answer.local, width)])
