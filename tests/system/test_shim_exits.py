"""How a shim ends: soon, with 0 and without a word, whatever is in flight."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fake_daemon
from pursers_shim import __version__
from scripted_daemon import (
    INITIALIZE,
    ScriptedDaemon,
    Shim,
    answer,
    attach,
    call,
    request,
    shim_environment,
    short_home,
    until,
)

SHIM = [sys.executable, "-m", "pursers_shim"]
# How soon it ends is measured by `make bench`, 0.5 s after the host has left.

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder
        fake_daemon.end_all(folder)


@pytest.fixture
def daemon(home: Path) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon(home) as daemon:
        yield daemon


@pytest.fixture
def waiting(home: Path, daemon: ScriptedDaemon) -> Iterator[Shim]:
    """A shim in the middle of a wait, both pipes open."""
    with Shim(home) as shim:
        peer = attach(daemon, shim)
        shim.send(call(1, timeout_s=3600))
        assert peer.read() == call(1, timeout_s=3600)
        yield shim


def ends(shim: Shim) -> None:
    assert shim.ended() == (0, "")


# --- the host leaves ---


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_waiting_shim(waiting: Shim, number: signal.Signals) -> None:
    waiting.process.send_signal(number)
    ends(waiting)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_shim_without_a_daemon(home: Path, number: signal.Signals) -> None:
    with Shim(home) as shim:
        shim.send(INITIALIZE, call(1))
        assert shim.read()["id"] == 0
        shim.process.send_signal(number)
        ends(shim)


def test_signals_that_hit_a_busy_shim_end_it(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home) as shim:
        attach(daemon, shim)
        shim.raw(b"junk\n" * 200)  # unread answers: stdout is in use
        for number in SIGNALS:
            shim.process.send_signal(number)
        ends(shim)


def test_a_host_under_nohup_keeps_its_shim(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home, ["nohup", *SHIM]) as shim:
        peer = attach(daemon, shim)
        shim.process.send_signal(signal.SIGHUP)
        shim.send(request(1, "ping"))
        assert peer.read()["id"] == 1
        shim.process.terminate()
        assert shim.process.wait(60) == 0


def test_the_end_of_input_ends_a_waiting_shim(waiting: Shim) -> None:
    waiting.end_input()
    ends(waiting)


@pytest.mark.parametrize("messages", [[], [INITIALIZE], [call(1)], [request(1, "resources/list")]])
def test_the_end_of_input_ends_a_shim_without_a_daemon(home: Path, messages: list[dict[str, object]]) -> None:
    with Shim(home) as shim:
        shim.raw(b"junk\n")
        assert "error" in shim.read()  # it has started
        shim.send(*messages)
        shim.end_input()
        assert shim.process.wait(60) == 0


def test_the_end_of_input_during_the_handshake_ends_it(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home) as shim:
        shim.send(INITIALIZE)
        daemon.accept()
        shim.end_input()
        assert shim.process.wait(60) == 0


def test_a_broken_stdout_ends_it_at_once_and_quietly(waiting: Shim) -> None:
    assert waiting.process.stdout is not None
    waiting.process.stdout.close()
    ends(waiting)


def test_a_broken_stdout_and_stderr_end_it_when_it_has_something_to_say(home: Path) -> None:
    with Shim(home) as shim:
        assert shim.process.stdout is not None
        assert shim.process.stderr is not None
        shim.process.stderr.close()
        shim.process.stdout.close()
        shim.raw(b"junk\n")
        assert shim.process.wait(60) == 0


def test_a_host_that_dies_while_the_daemon_takes_nothing_is_noticed(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home) as shim:
        attach(daemon, shim)
        shim.raw(b"".join(json.dumps(call(n, text="x" * 300_000)).encode() + b"\n" for n in range(4)))
        shim.end_input()
        assert shim.process.wait(60) == 0


def test_a_killed_host_ends_its_shim(home: Path, daemon: ScriptedDaemon) -> None:
    host = f"import subprocess,sys; p=subprocess.Popen({SHIM!r}, stdin=subprocess.PIPE); print(p.pid, flush=True); p.wait()"
    process = subprocess.Popen([sys.executable, "-c", host], stdout=subprocess.PIPE, env=shim_environment(home))
    with process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        hello = daemon.accept().welcome()
        assert (hello["pid"], hello["ppid"]) == (pid, process.pid)
        process.kill()
        # The shim holds the pipe's other end; its end is the end of the pipe.
        assert process.stdout.read() == b""


def test_on_a_terminal_it_ends_with_the_terminal(home: Path, daemon: ScriptedDaemon) -> None:
    pid, master = pty.fork()
    if pid == 0:
        os.execve(SHIM[0], SHIM, shim_environment(home))
    daemon.accept().welcome()
    os.close(master)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (0, -signal.SIGHUP)


# --- the end of input is not always a goodbye ---


def test_answers_that_are_on_their_way_are_printed_before_the_end(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home) as shim:
        shim.send(INITIALIZE, request(1, "tools/list"), call(2))
        shim.end_input()
        peer = daemon.accept()
        peer.welcome()
        assert [peer.read()["id"] for _ in range(3)] == [0, 1, 2]
        peer.send(answer(0), answer(1))
        assert [shim.read(), shim.read()] == [answer(0), answer(1)]
        assert shim.line() is None
        assert shim.ended() == (0, "")


@pytest.mark.parametrize("listens", [False, True])
def test_without_a_ready_daemon_the_opening_is_printed_all_the_same(home: Path, listens: bool) -> None:
    asked = [INITIALIZE, request(1, "tools/list"), request(2, "ping")]
    data = b"".join(json.dumps(message).encode() + b"\n" for message in asked)
    daemon = ScriptedDaemon(home) if listens else None
    try:
        done = subprocess.run(SHIM, input=data, capture_output=True, env=shim_environment(home), timeout=60, check=True)
    finally:
        if daemon is not None:
            daemon.close()
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1, 2]
    assert done.stderr == b""


def test_a_file_as_input_is_answered_to_its_last_line(home: Path, daemon: ScriptedDaemon) -> None:
    path = home / "input"
    path.write_text("".join(json.dumps(message) + "\n" for message in (INITIALIZE, request(1, "ping"), call(2))))
    with path.open("rb") as file:
        process = subprocess.Popen(SHIM, stdin=file, stdout=subprocess.PIPE, env=shim_environment(home))
    with process:
        peer = daemon.accept()
        peer.welcome()
        assert [peer.read()["id"] for _ in range(3)] == [0, 1, 2]
        peer.send(answer(2), answer(1), answer(0))
        assert process.stdout is not None
        assert [json.loads(line)["id"] for line in process.stdout] == [2, 1, 0]
        assert process.wait(60) == 0


# --- odd descriptors ---


def run(home: Path, redirections: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["/bin/sh", "-c", f"exec {sys.executable} -m pursers_shim {redirections}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=shim_environment(home) | {"PURSERSD_AUTOSTART": "1"},
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("redirections", ["</dev/null", "<&-", "</dev/null 2>&-", "<&- 2>&-"])
def test_no_input_is_a_normal_end_and_starts_nothing(home: Path, redirections: str) -> None:
    done = run(home, redirections)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (home / "run").exists()


def test_no_output_is_an_error(home: Path) -> None:
    done = run(home, ">&-")
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"stdout" in done.stderr


# --- arguments ---


def test_version_and_help_need_no_daemon(home: Path) -> None:
    for option, words in (("--version", f"pursers-shim {__version__}\n"), ("--help", "usage: pursers-shim")):
        done = subprocess.run([*SHIM, option], capture_output=True, text=True, env=shim_environment(home), check=True)
        assert done.stdout.startswith(words)
        assert done.stderr == ""
    assert not (home / "run").exists()


def test_unknown_arguments_are_named(home: Path) -> None:
    done = subprocess.run(
        [*SHIM, "--bord", "x", "--version"],
        capture_output=True,
        text=True,
        env=shim_environment(home),
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "--bord x --version" in done.stderr
    assert "--help" in done.stderr


# --- stdout ---


def test_stray_output_never_reaches_the_host(home: Path, daemon: ScriptedDaemon) -> None:
    code = (
        "import sys, os\n"
        "sys.stdout.write('before, unflushed')\n"
        "from pursers_shim import __main__, wire\n"
        "real = wire.process_start\n"
        "def noisy(pid):\n"
        "    print('printed', flush=True); os.write(1, b'written'); os.system('echo child')\n"
        "    return real(pid)\n"
        "wire.process_start = noisy\n"
        "sys.argv = ['pursers-shim']\n"
        "__main__.main()\n"
    )
    with Shim(home, [sys.executable, "-c", code]) as shim:
        attach(daemon, shim)
        shim.end_input()
        assert shim.line() is None
        code_, errors = shim.ended()
        assert code_ == 0
        assert errors.count("printed\nwrittenchild\n") == 2


def test_idle_it_costs_no_cpu(home: Path, daemon: ScriptedDaemon) -> None:
    def ticks(shim: Shim) -> int:
        fields = Path(f"/proc/{shim.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return int(fields[11]) + int(fields[12])

    with short_home() as other, Shim(home) as linked, Shim(other) as alone:
        attach(daemon, linked)
        alone.send(INITIALIZE, call(1))
        assert alone.read()["id"] == 0
        before, since = (ticks(linked), ticks(alone)), time.monotonic()
        until(lambda: time.monotonic() - since > 1.0)
        assert ticks(linked) - before[0] == 0
        assert ticks(alone) - before[1] <= 3
