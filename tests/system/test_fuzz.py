"""A fuzzer for the two doors of this program: the daemon's socket and the shim's stdin.

Whatever comes, the one it comes to goes on or says why not, nobody else notices, and nothing is left behind. A few hundred
frames here, always the same ones; `make fuzz` (FRAMES=…) sends as many as you like, each time others.
"""

import contextlib
import itertools
import json
import os
import socket
import subprocess
from collections.abc import Iterator

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pursers_shim import wire
from rig import processes
from rig.daemon import Home
from rig.frames import FRAME, JSON, PIECES, cut
from rig.link import Link, hello
from rig.shim import SHIM, ShimProcess
from rig.speaker import Speaker
from rig.wait import until
from system.scene import PATIENCE, Bystander, Json, ask

FRAMES = int(os.environ.get("FRAMES", "0"))
"""How many the three tests here send together, at least; 0: a few hundred."""

PER_EXAMPLE = 10
FUZZ = settings(
    max_examples=max(FRAMES // PER_EXAMPLE // 3 + 1, 25),
    derandomize=not FRAMES,
    print_blob=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
LINES = st.lists(FRAME, min_size=PER_EXAMPLE, max_size=2 * PER_EXAMPLE)
PER_SHIM = 25  # examples that one shim, or one link, gets one after the other

# Of a failure the frames are shown, however long they are.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

_barriers = itertools.count()


class Turns:
    """Tells when it is time for another shim; then the bystander is looked at, too: his wait does not last for ever."""

    def __init__(self, bystander: Bystander) -> None:
        self._bystander = bystander
        self._examples = itertools.count()

    def is_over(self) -> bool:
        """Whether PER_SHIM examples have passed."""
        if next(self._examples) % PER_SHIM:
            return False
        self._bystander.assert_undisturbed()
        return True


def pass_barrier(speaker: Speaker) -> None:
    """A request behind all that was sent is answered, in one way or another."""
    number = f"barrier {next(_barriers)}"
    speaker.send(b"\n" + wire.encode({"jsonrpc": "2.0", "id": number, "method": "ping"}))
    until(lambda: speaker.answers(number), PATIENCE, "an answer behind the garbage")
    assert speaker.rubbish == []
    speaker.received.clear()


def held(home: Home) -> tuple[int, int, int]:
    """The daemon's Unix sockets, its other descriptors but for connections to Central, and its conversations."""
    daemon = psutil.Process(home.daemon_pid())
    sockets = len(daemon.net_connections("unix"))
    others = int(daemon.num_fds()) - len(daemon.net_connections("all"))
    return sockets, others, len(ask(home, "ps")["seats"])


@pytest.fixture
def home(bystander: Bystander) -> Iterator[Home]:
    """The bystander's home: its daemon must be the same one afterwards, with as many descriptors and conversations, and
    nothing in its log went wrong."""
    home = bystander.home
    daemon, before = home.daemon_pid(), held(home)
    log = home.folder / "log" / "pursersd.log"
    written = log.stat().st_size
    yield home
    assert home.daemon_pid() == daemon

    def is_as_before() -> bool:
        now = held(home)
        assert all(count <= earlier for count, earlier in zip(now, before, strict=True)), now
        return True

    until(is_as_before, PATIENCE, f"no more than before: {before}")
    with log.open("rb") as file:
        file.seek(written)
        text = file.read().decode(errors="replace")
    assert "Traceback" not in text, text[text.index("Traceback") - 500 :][:3000]


@pytest.fixture
def turns(bystander: Bystander) -> Turns:
    return Turns(bystander)


@pytest.fixture
def shim(home: Home) -> Iterator[Json]:
    """Who the links of a test say that they are: a process whose end ends their conversations at once."""
    process = subprocess.Popen(["sleep", "3600"], env=processes.environment(), start_new_session=True)
    yield {"pid": process.pid, "started": wire.process_start(process.pid)}
    processes.stop(process, ())


def test_whatever_a_shim_sends_its_link_goes_on(home: Home, shim: Json, turns: Turns) -> None:
    environment = home.environment(agent="fuzz")
    links: list[Link] = []

    @FUZZ
    @given(LINES, PIECES)
    def fuzz(lines: list[bytes], pieces: list[int]) -> None:
        if turns.is_over():
            for link in links:
                link.close()
            links[:] = [Link(home.place.socket, environment, **shim)]
        (link,) = links
        for piece in cut(b"\n".join(lines), pieces):
            link.send(piece)
        pass_barrier(link)

    try:
        fuzz()
    finally:
        for link in links:
            link.close()


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "pursers": JSON,
        "protocol": JSON,
        "role": st.sampled_from(["shim", "control", "king", 1]),
        "pid": JSON,
        "started": JSON,
        "ppid": JSON,
        "cwd": JSON,
        "env": JSON,
        "resume": JSON,
    },
)
CONTROL = st.builds(
    lambda number, verb, params: json.dumps({"id": number, "verb": verb, "params": params}).encode(),
    JSON,
    st.sampled_from(["ps", "status", "ping", "later", 1]),
    JSON,
)


def test_whoever_connects_is_welcomed_or_sent_away(home: Home, shim: Json, turns: Turns) -> None:
    greeting = {**hello({}), **shim}
    greetings = FRAME | CHANGES.map(lambda changes: json.dumps({**greeting, **changes}).encode())

    @FUZZ
    @given(
        greetings, st.lists(FRAME | CONTROL, min_size=PER_EXAMPLE - 1, max_size=2 * PER_EXAMPLE), PIECES, st.booleans()
    )
    def fuzz(first: bytes, lines: list[bytes], pieces: list[int], hangs_up: bool) -> None:
        turns.is_over()
        with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.settimeout(PATIENCE)
            client.connect(home.place.socket)
            for piece in cut(b"\n".join([first, *lines]), pieces):
                client.sendall(piece)
            if hangs_up:
                return  # without reading anything
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                continue

    fuzz()


def test_whatever_a_host_sends_its_shim_goes_on(home: Home, turns: Turns) -> None:
    shims: list[ShimProcess] = []

    @FUZZ
    @given(LINES, PIECES)
    def fuzz(lines: list[bytes], pieces: list[int]) -> None:
        if turns.is_over():
            for shim in shims:
                shim.close()
            shims[:] = [ShimProcess([SHIM], home.environment(agent="fuzz"))]
        (shim,) = shims
        for piece in cut(b"\n".join(lines), pieces):
            shim.send(piece)
        pass_barrier(shim)

    try:
        fuzz()
        assert shims[0].process.poll() is None
        assert shims[0].stderr == ""
    finally:
        for shim in shims:
            shim.close()
