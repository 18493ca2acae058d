"""pursersctl.output: colours and widths on a terminal, plain text everywhere else."""

import fcntl
import os
import re
import struct
import subprocess
import termios
from collections.abc import Iterator

import msgspec
import pytest

from pursersctl import render, render_ps
from pursersctl.output import wants_colour
from pursersctl.pick import Wish, pick
from pursersd import api
from rig.daemon import CTL, Home
from unit.ctl_daemon import ScriptedDaemon
from unit.ctl_samples import SEATS

ESCAPE = "\x1b["
ANSWERS = {"ps": {"result": msgspec.to_builtins(api.Ps(seats=SEATS))}}
ORDERED = api.Ps(seats=[SEATS[i] for i in pick(SEATS, Wish())])


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with Home() as home, ScriptedDaemon(home.folder, answers=ANSWERS):
        yield home


def on_a_terminal(home: Home, columns: int, **variables: str) -> str:
    """What `pursersctl ps` prints on a terminal of that width."""
    ours, theirs = os.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 40, columns, 0, 0))
        environ = home.environment(extra={"TERM": "xterm-256color", **variables})
        subprocess.run([CTL, "ps"], env=environ, stdin=subprocess.DEVNULL, stdout=theirs, check=True, timeout=30)
        return os.read(ours, 65536).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_terminal_gets_colours_and_its_whole_width(home: Home) -> None:
    text = on_a_terminal(home, 140)
    assert ESCAPE in text
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert [line.rstrip() for line in bare.splitlines()] == render.plain(render_ps.ps(ORDERED, 140)).splitlines()


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_they_are_not_wanted(home: Home, variables: dict[str, str]) -> None:
    assert on_a_terminal(home, 80, **variables) == render.plain(render_ps.ps(ORDERED, 80))


def test_a_pipe_gets_plain_text(home: Home) -> None:
    assert ESCAPE not in home.ctl("ps").stdout


def test_another_encoding_is_no_error(home: Home) -> None:
    environ = home.environment(extra={"PYTHONIOENCODING": "latin-1"})
    done = subprocess.run([CTL, "ps"], env=environ, capture_output=True, timeout=30)
    assert done.returncode == 0
    assert "?" in done.stdout.decode("latin-1")


@pytest.mark.parametrize(
    ("terminal", "environ", "wanted"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (True, {"TERM": "xterm", "NO_COLOR": "0"}, False),
        (True, {}, False),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_when_colours_are_wanted(terminal: bool, environ: dict[str, str], wanted: bool) -> None:
    assert wants_colour(terminal, environ) is wanted
