"""pursersctl start, stop and restart against scripted daemons: what they ask, wait for, leave behind and never touch."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pursers_shim import dial
from pursers_shim.paths import Place
from pursersctl import client, errors, lifecycle
from rig.daemon import Home
from unit.ctl_daemon import ScriptedDaemon

PING = {"result": {}}
STOP = {"result": {"pid": 1, "conversations": 0}}
WELL = {"ping": PING, "stop": STOP}
OTHER_PROTOCOL = {"pursers": "refuse", "code": "protocol", "text": "speaks link protocol 7", "retryable": False}


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


@pytest.fixture
def place(home: Home) -> Place:
    return client.where({"PURSERSD_HOME": str(home.folder)})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every patience of the commands is short."""
    monkeypatch.setattr(client, "ask", partial(client.ask, timeout=0.3))
    for name in ("STOP_TIMEOUT", "DRAIN_TIMEOUT", "SIGNAL_TIMEOUT"):
        monkeypatch.setattr(lifecycle, name, 0.3)
    monkeypatch.setattr(dial, "START_LIMIT", 0.3)


@pytest.fixture
def starter(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, bool, ScriptedDaemon]]]:
    """Instead of the real daemon a scripted one is started; the list tells by whom, with what patience, and which."""
    started: list[tuple[str, bool, ScriptedDaemon]] = []
    with ExitStack() as daemons:

        def start(place: Place, environ: Mapping[str, str], started_by: str = "auto", *, patient: bool = True) -> int:
            daemon = daemons.enter_context(ScriptedDaemon(home.folder, answers=WELL))
            started.append((started_by, patient, daemon))
            return os.open(os.devnull, os.O_RDONLY)

        monkeypatch.setattr(dial, "start", start)
        yield started


def marker(home: Home) -> Path:
    return home.folder / "run" / "stopped"


def stop_requests(daemon: ScriptedDaemon) -> list[dict[str, Any]]:
    return [message for message in daemon.received() if message.get("verb") == "stop"]


@pytest.mark.parametrize("drain", [False, True])
def test_stop_forbids_automatic_starts_first_and_returns_when_the_daemon_is_gone(home: Home, drain: bool) -> None:
    with ScriptedDaemon(home.folder, answers=WELL) as daemon:
        done = home.ctl("stop", *(["--drain"] if drain else []))
        assert (done.returncode, done.stderr) == (0, "")
        assert f"(pid {daemon.pid}) stopped" in done.stdout
        assert daemon.process.wait(60) == 0
        (request,) = stop_requests(daemon)
        assert request["params"] == {"drain": drain, "reason": "stop"}
        assert request["seen"]["stopped"]
    assert marker(home).stat().st_mode & 0o777 == 0o600
    assert home.ctl("ps").stderr.endswith("It was stopped with pursersctl stop, so no shim starts it by itself.\n")


def test_stop_without_a_daemon_says_so_and_forbids_automatic_starts(home: Home) -> None:
    done = home.ctl("stop")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("pursersd is not running.")
    assert marker(home).exists()
    assert marker(home).parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("impatient")
def test_stop_names_a_daemon_that_does_not_answer_and_how_to_end_it(home: Home, place: Place) -> None:
    with ScriptedDaemon(home.folder) as daemon:
        with pytest.raises(errors.Busy, match=rf"(?s)\(pid {daemon.pid}\).*pursersctl stop --force"):
            lifecycle.stop(place, drain=False, force=False)
        assert daemon.process.poll() is None


@pytest.mark.usefixtures("impatient")
def test_stop_does_not_wait_for_ever(home: Home, place: Place) -> None:
    with ScriptedDaemon(home.folder, answers=WELL, leaves_on_stop=False) as daemon:
        with pytest.raises(errors.Busy, match=rf"(?s)\(pid {daemon.pid}\).*has not ended.*pursersctl stop --force"):
            lifecycle.stop(place, drain=False, force=False)
        assert daemon.process.poll() is None


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("obeys", "ended_by"), [(True, signal.SIGTERM), (False, signal.SIGKILL)])
def test_stop_by_force_ends_exactly_the_holder_of_the_lock(
    home: Home, place: Place, obeys: bool, ended_by: signal.Signals
) -> None:
    with ScriptedDaemon(home.folder, obeys_sigterm=obeys) as daemon:
        lifecycle.stop(place, drain=False, force=True)
        assert daemon.process.wait(60) == -ended_by
        assert daemon.received() == []
    assert marker(home).exists()


@pytest.mark.usefixtures("impatient")
def test_stop_by_force_ends_a_suspended_daemon(home: Home, place: Place) -> None:
    with ScriptedDaemon(home.folder) as daemon:
        daemon.process.send_signal(signal.SIGSTOP)
        lifecycle.stop(place, drain=False, force=True)
        assert daemon.process.wait(60) < 0


def test_force_spares_a_process_that_got_the_pid_of_a_dead_daemon(
    home: Home, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        monkeypatch.setattr(dial, "daemon_pid", answers_in_turn(bystander.pid, None))
        lifecycle.stop(place, drain=False, force=True)
        bystander.communicate(b"\n", timeout=60)
    assert bystander.returncode == 0


def test_stop_tells_when_another_daemon_took_the_place(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ask", lambda *args, **kwargs: b"{}")
    monkeypatch.setattr(dial, "daemon_pid", answers_in_turn(111, 222))
    with pytest.raises(errors.Failed, match=r"pid 111.*pid 222.*service"):
        lifecycle.stop(place, drain=False, force=False)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("force", [True, False])
def test_a_daemon_of_another_pid_namespace_is_never_signalled(
    place: Place, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    monkeypatch.setattr(dial, "daemon_pid", lambda place: 0)
    monkeypatch.setattr(os, "kill", lambda pid, number: pytest.fail(f"sent {number} to {pid}"))
    with pytest.raises(errors.CommandError, match="another pid namespace"):
        lifecycle.stop(place, drain=False, force=force)


def test_stop_also_ends_a_daemon_that_somebody_is_starting(
    home: Home, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with starting_somebody(place) as somebody, ExitStack() as daemons:
        started: list[ScriptedDaemon] = []

        def sleep(seconds: float) -> None:
            if not started:
                started.append(daemons.enter_context(ScriptedDaemon(home.folder, answers=WELL)))
                marker(home).unlink()  # as a daemon does when it takes its place

        monkeypatch.setattr(lifecycle.time, "sleep", sleep)
        lifecycle.stop(place, drain=False, force=False)
        assert started[0].process.wait(60) == 0
        assert marker(home).exists()
        somebody.communicate(b"\n", timeout=60)


def test_start_allows_a_daemon_again_starts_it_for_the_user_and_waits_until_it_answers(
    home: Home, place: Place, starter: list[tuple[str, bool, ScriptedDaemon]], capsys: pytest.CaptureFixture[str]
) -> None:
    home.ctl("stop")
    lifecycle.start(place, {})
    ((started_by, patient, daemon),) = starter
    assert (started_by, patient) == ("user", False)
    assert capsys.readouterr().out == f"pursersd started (pid {daemon.pid}).\n"
    assert [message["verb"] for message in daemon.received() if "verb" in message] == ["ping"]
    assert not marker(home).exists()


def test_start_is_content_with_a_running_daemon(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=WELL) as daemon:
        marker(home).touch()
        done = home.ctl("start")
        assert (done.returncode, done.stdout) == (0, f"pursersd is already running (pid {daemon.pid}).\n")
        assert not marker(home).exists()


@pytest.mark.usefixtures("impatient")
def test_start_never_replaces_a_busy_daemon(
    home: Home, place: Place, starter: list[tuple[str, bool, ScriptedDaemon]]
) -> None:
    with ScriptedDaemon(home.folder), pytest.raises(errors.Busy):
        lifecycle.start(place, {})
    assert starter == []


@pytest.mark.usefixtures("impatient")
def test_start_shows_the_last_words_of_a_daemon_that_failed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(place: Place, *args: object, **kwargs: object) -> int:
        Path(place.start_log).write_text("pursersd: no room in the state folder\n")
        return os.open(os.devnull, os.O_RDONLY)

    monkeypatch.setattr(dial, "start", start)
    with pytest.raises(errors.Failed, match="no room in the state folder"):
        lifecycle.start(place, {})


def test_start_says_why_the_system_does_not_let_us(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*args: object, **kwargs: object) -> int:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(dial, "start", start)
    with pytest.raises(errors.Failed, match="Cannot start pursersd: Resource temporarily unavailable"):
        lifecycle.start(place, {})


@pytest.mark.parametrize("command", ["start", "stop", "restart"])
def test_a_folder_open_to_others_is_not_used(home: Home, command: str) -> None:
    (home.folder / "run").mkdir()
    (home.folder / "run").chmod(0o770)
    done = home.ctl(command)
    assert (done.returncode, list((home.folder / "run").iterdir())) == (5, [])
    assert "chmod 700" in done.stderr


def test_restart_replaces_the_daemon_and_lets_no_shim_start_one_meanwhile(
    home: Home, place: Place, starter: list[tuple[str, bool, ScriptedDaemon]], capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedDaemon(home.folder, answers=WELL) as old:
        lifecycle.restart(place, {})
        (request,) = stop_requests(old)
        assert request["params"] == {"drain": True, "reason": "restart"}
        assert request["seen"] == {"starting_allowed_to": os.getpid(), "stopped": False}
        ((started_by, _, new),) = starter
        assert started_by == "user"
        assert capsys.readouterr().out == f"pursersd started (pid {new.pid}).\n"
        assert old.process.wait(60) == 0


def test_restart_also_replaces_a_daemon_of_another_protocol(
    home: Home, place: Place, starter: list[tuple[str, bool, ScriptedDaemon]]
) -> None:
    with ScriptedDaemon(home.folder, greeting=OTHER_PROTOCOL) as old:
        lifecycle.restart(place, {})
        assert old.process.wait(60) == -signal.SIGTERM
    assert len(starter) == 1


def test_a_daemon_that_does_not_know_the_request_is_told_with_a_signal_too(
    home: Home, place: Place, starter: list[tuple[str, bool, ScriptedDaemon]], capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {"stop": {"error": {"code": "unknown_verb", "text": "what?"}}}
    with ScriptedDaemon(home.folder, answers=answers) as old:
        lifecycle.restart(place, {})
        assert old.process.wait(60) == -signal.SIGTERM
        assert f"(pid {old.pid}) is a version that pursersctl cannot talk to" in capsys.readouterr().err


def test_restart_without_a_daemon_starts_one(
    place: Place, starter: list[tuple[str, bool, ScriptedDaemon]], capsys: pytest.CaptureFixture[str]
) -> None:
    lifecycle.restart(place, {})
    assert len(starter) == 1
    assert capsys.readouterr().err == "pursersd was not running.\n"


@contextmanager
def starting_somebody(place: Place) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that holds the lock of whoever starts a daemon, until it gets a line."""
    code = "import sys; from pursers_shim.launch import take_lock; print(take_lock(sys.argv[1]), flush=True); input()"
    os.makedirs(place.folder, 0o700)
    command = [sys.executable, "-c", code, place.start_lock]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip().isdigit()
        try:
            yield process
        finally:
            process.kill()


def answers_in_turn(*pids: int | None) -> Callable[[Place], int | None]:
    """A daemon_pid that gives each answer once, and the last one for ever."""
    left = list(pids)
    return lambda place: left.pop(0) if len(left) > 1 else left[0]
