"""`pursersctl stats`: what each seat cost and what it brought, from the bridge-stats.json and the running daemon."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from pursers_shim.paths import Place
from pursersctl import client, output, printed, render_stats
from pursersctl.errors import CommandError, Failed, NotRunning
from pursersctl.tally import tally
from pursersd import api
from pursersd.rules.bridge_files import stats_path
from pursersd.rules.stats import Changes, add, trim
from pursersd.rules.stats_document import Damaged, Document, read

ROUNDS = 5
"""How often we look again because the daemon wrote while we read."""


def stats(
    place: Place, environ: Mapping[str, str], *, file: str | None, board: str | None, seat: str | None, as_json: bool
) -> None:
    """Print the statistics of `file`, or of the one that this environment names; change and start nothing."""
    path = os.path.abspath(file) if file else stats_path(environ, place.home, os.getcwd())
    document, files, trouble = _current(place, path)
    ours = _of(files, path)
    now = datetime.now(UTC)
    trim(document, now)
    answer = printed.Stats(
        file=path,
        seats=tally(document, now, board=board, seat=seat),
        unwritten=ours is not None,
        other_files=[known.path for known in files if known is not ours],
    )
    if as_json:
        output.show_json(msgspec.json.encode(answer))
    else:
        output.show(render_stats.stats(answer, filtered=board is not None or seat is not None, width=output.width()))
    if trouble is not None:
        output.note(f"What the daemon has not written yet is missing here: {trouble}")


def _current(place: Place, path: str) -> tuple[Document, list[api.StatsFile], str | None]:
    """What the file and the daemon know together, the files of the daemon, and why it did not tell."""
    files, trouble = _ask(place)
    for _ in range(ROUNDS):
        document = _read(path)
        ours = _of(files, path)
        if ours is None:
            break
        again, trouble = _ask(place)
        known = _of(again, path)
        if known is not None and known.writes == ours.writes:  # else what was unwritten may be in the file by now
            add(document, Changes(read(bytes(ours.unwritten)), ours.pushed))
            break
        files = again
    return document, files, trouble


def _ask(place: Place) -> tuple[list[api.StatsFile], str | None]:
    """The files of the daemon, and why it did not tell; that there is none is no trouble."""
    try:
        return client.read(client.ask(place, "stats"), api.StatsFiles).files, None
    except NotRunning:
        return [], None
    except CommandError as error:
        return [], str(error)


def _read(path: str) -> Document:
    try:
        with open(path, "rb") as found:
            return read(found.read())
    except FileNotFoundError:
        return Document()
    except OSError as error:
        raise Failed(f"Cannot read {path}: {error.strerror}.") from error
    except Damaged as error:
        raise Failed(
            f"{path} is damaged: {error}. The daemon moves it aside when it next counts; or remove it yourself."
        ) from error


def _of(files: list[api.StatsFile], path: str) -> api.StatsFile | None:
    real = os.path.realpath(path)
    return next((file for file in files if os.path.realpath(file.path) == real), None)
