"""The daemon as a service: handed sockets, words to the manager, and `pursersctl service` with a manager that obeys."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pursers_shim import service as services
from pursers_shim import starts
from pursersd import service_start
from rig import processes, user_manager
from rig.activation import Activation
from rig.central import Central
from rig.daemon import CTL, DAEMON, Home
from rig.wait import until
from system.scene import PATIENCE, Caller, Converse, ask, until_blocking, until_listed


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home with a user manager."""
    with Home(**user_manager.install(tmp_path / "manager")) as home:
        yield home


@pytest.fixture
def manager(tmp_path: Path) -> Path:
    """Where that manager keeps its notes."""
    return tmp_path / "manager"


@pytest.fixture
def activation(home: Home) -> Iterator[Activation]:
    with Activation(home.place.socket, home.folder) as activation:
        yield activation


@pytest.fixture
def serve(home: Home, activation: Activation) -> Iterator["Starter"]:
    starter = Starter(home, activation)
    yield starter
    for daemon in starter.started:
        processes.stop(daemon, (signal.SIGTERM,))


class Starter:
    """Starts daemons that are handed the socket."""

    def __init__(self, home: Home, activation: Activation) -> None:
        self.home = home
        self.activation = activation
        self.started: list[subprocess.Popen[bytes]] = []

    def __call__(self, watchdog_s: float | None = None, **variables: str) -> "subprocess.Popen[bytes]":
        environ = self.home.environment(role=None, extra=variables)
        with (self.home.folder / "daemon.out").open("ab") as output:
            daemon = self.activation.start([DAEMON, "--started-by", "service"], environ, output, watchdog_s)
        self.started.append(daemon)
        return daemon

    def ready(self, count: int = 1) -> None:
        until(lambda: self.activation.count("READY=1") == count, PATIENCE, "it is ready")


def test_a_handed_socket_is_served_and_left_behind(home: Home, activation: Activation, serve: Starter) -> None:
    before = os.stat(home.place.socket).st_ino
    with socket.socket(socket.AF_UNIX) as early:
        early.connect(home.place.socket)  # who connects before there is a daemon waits
        daemon = serve()
        serve.ready()
        assert activation.heard[0].startswith("READY=1")  # and no word before the socket accepts
        assert ask(home, "status")["daemon"]["started_by"] == "service"
        assert home.daemon_pid() == daemon.pid
        variables = psutil.Process(daemon.pid).environ()
        assert {"LISTEN_FDS", "NOTIFY_SOCKET"} <= variables.keys()  # those of its birth, which nobody inherits
        early.send(b'{"pursers":"hello","protocol":[1,1],"role":"control"}\n')
        assert b"welcome" in early.recv(65536)
    daemon.terminate()
    assert daemon.wait(PATIENCE) == 0
    assert [activation.count(word) for word in ("READY", "STOPPING")] == [1, 1]
    assert os.stat(home.place.socket).st_ino == before
    serve()
    serve.ready(2)
    assert os.stat(home.place.socket).st_ino == before


def test_the_watchdog_is_fed_by_the_loop_and_not_while_it_hangs(home: Home, serve: Starter) -> None:
    daemon = serve(watchdog_s=0.1)
    serve.ready()
    until(lambda: serve.activation.count("WATCHDOG=1") > 3, PATIENCE, "it is fed")
    assert "0 conversations, 0 waiting" in "".join(serve.activation.heard)
    psutil.Process(daemon.pid).suspend()
    until(lambda: psutil.Process(daemon.pid).status() == psutil.STATUS_STOPPED, PATIENCE, "it hangs")
    fed = serve.activation.count("WATCHDOG=1")
    with pytest.raises(AssertionError):
        until(lambda: serve.activation.count("WATCHDOG=1") > fed, 0.5)
    # What systemd does then: the daemon's last words say where it hung.
    daemon.send_signal(signal.SIGABRT)
    psutil.Process(daemon.pid).resume()
    # Rarely Python falls while it says them, which is as good.
    assert daemon.wait(PATIENCE) in (-signal.SIGABRT, -signal.SIGSEGV)
    assert "Fatal Python error: Aborted" in Path(home.place.start_log).read_text()


def test_a_socket_whose_file_was_taken_away_is_not_used(home: Home, serve: Starter) -> None:
    os.unlink(home.place.socket)
    daemon = serve()
    serve.ready()
    assert ask(home, "status")["daemon"]["pid"] == daemon.pid
    daemon.terminate()
    assert daemon.wait(PATIENCE) == 0
    assert not os.path.lexists(home.place.socket)  # this one was its own


def test_a_socket_in_a_folder_that_others_can_enter_is_refused_for_good(home: Home, serve: Starter) -> None:
    os.chmod(home.place.folder, 0o755)
    assert serve().wait(PATIENCE) == 78
    assert "is open to other users" in home.output()


def test_a_daemon_of_another_kind_leaves_when_the_manager_takes_its_socket(
    home: Home, central: Central, board: str, converse: Converse
) -> None:
    caller = Caller(converse("w"))  # whose shim starts a daemon of its own
    wait = caller.arm()
    until_blocking(home, 1)
    first = home.daemon_pid()
    with Activation(home.place.socket, home.folder) as activation:
        starter = Starter(home, activation)
        second = starter()
        try:
            until(lambda: activation.count("STATUS"), PATIENCE, "it waits for the other one")
            starter.ready()
            assert not psutil.pid_exists(first) or not processes.is_alive(psutil.Process(first))
            until_blocking(home, 1)
            assert home.daemon_pid() == second.pid
            ticket = central.create_ticket(board, "after the change")
            assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
            assert caller.wait is wait
            caller.assert_once()
        finally:
            processes.stop(second, (signal.SIGTERM,))


def test_a_daemon_that_never_comes_up_gives_up_and_says_why(home: Home, serve: Starter) -> None:
    (home.folder / "state").mkdir()
    (home.folder / "state" / "epoch").write_text("no number")
    starts.note_start(home.place, service_start.GIVE_UP - 1, time.time())
    assert [serve().wait(PATIENCE) for _ in range(2)] == [78, 0]
    assert f"The last {service_start.GIVE_UP} starts failed: pursersd: " in home.output()
    assert "is damaged" in home.ctl("status").stderr
    (home.folder / "state" / "epoch").unlink()
    starts.forget(home.place)  # as `pursersctl start` does
    serve()
    serve.ready()


def test_a_stopped_daemon_is_not_started_by_a_manager_that_does_not_know(home: Home, serve: Starter) -> None:
    Path(home.place.stopped).touch()
    assert serve().wait(PATIENCE) == 0
    assert "It was stopped with pursersctl stop" in home.output()
    assert os.path.lexists(home.place.stopped)


# --- pursersctl service ---


def units(home: Home) -> list[Path]:
    return sorted((home.folder / "user" / ".config" / "systemd" / "user").glob("*"))


def name(home: Home) -> str:
    return services.name(home.place)


def installed(home: Home) -> "subprocess.CompletedProcess[str]":
    done = home.ctl("service", "install")
    assert done.returncode == 0, done.stderr
    return done


def systemctl(home: Home, manager: Path, verb: str, kind: str) -> None:
    subprocess.run([manager / "bin" / "systemctl", verb, f"{name(home)}.{kind}"], env=home.environment(), check=True)


def look(home: Home) -> dict[str, object]:
    done = home.ctl("service", "status", "--json")
    found: dict[str, object] = json.loads(done.stdout)
    assert done.returncode == (2 if not found["installed"] else 1 if found["problems"] else 0)
    return found


def test_install_over_a_waiting_conversation_and_back_loses_nothing(
    home: Home, manager: Path, central: Central, board: str, converse: Converse
) -> None:
    caller = Caller(converse("w"))
    wait = caller.arm()
    until_blocking(home, 1)
    before = sorted(home.folder.joinpath("user").rglob("*"))

    done = installed(home)
    assert done.stdout.index("[Socket]") < done.stdout.index("$ systemctl --user daemon-reload")
    assert "runs as a service" in done.stdout
    assert user_manager.calls(manager)[:5] == [
        "daemon-reload",
        f"enable {name(home)}.socket",
        f"stop {name(home)}.socket",
        f"reset-failed {name(home)}.socket {name(home)}.service",
        f"start {name(home)}.socket",
    ]
    until_listed(home, 1)
    found = look(home)
    assert found["problems"] == []
    assert (found["enabled"], found["activity"], found["pid"]) == (True, "running", home.daemon_pid())
    assert found["program"] == DAEMON
    assert "installed already" in installed(home).stdout

    assert home.ctl("restart", timeout=60).returncode == 0
    psutil.Process(home.daemon_pid()).kill()
    until_listed(home, 1)
    until_blocking(home, 1)
    assert ask(home, "status")["daemon"]["started_by"] == "service"

    assert home.ctl("service", "uninstall").returncode == 0
    assert sorted(home.folder.joinpath("user").rglob("*")) == before
    until_blocking(home, 1)
    assert ask(home, "status")["daemon"]["started_by"] == "auto"
    assert look(home)["installed"] is False

    ticket = central.create_ticket(board, "after all that")
    assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
    assert caller.wait is wait
    caller.assert_once()


def test_shims_have_the_service_started_and_none_of_their_own_and_stop_lasts(home: Home, manager: Path) -> None:
    installed(home)
    assert home.ctl("status").returncode == 3  # looking starts nothing
    shim = home.shim(home.environment())
    shim.initialize()
    until_listed(home, 1)
    assert [ask(home, "status")["daemon"]["started_by"], len(home.daemons())] == ["service", 1]
    assert home.ctl("stop").returncode == 0
    until(lambda: look(home)["activity"] == "inactive", PATIENCE, "it has ended")
    systemctl(home, manager, "start", "socket")
    assert home.daemons() == []
    # Now nobody forbids it, but the manager does not listen: the shim asks it to.
    os.unlink(home.place.stopped)
    until_listed(home, 1)
    assert user_manager.calls(manager)[-1] == f"start {name(home)}.service"
    assert [ask(home, "status")["daemon"]["started_by"], len(home.daemons())] == ["service", 1]
    assert look(home)["problems"] == []
    assert home.ctl("stop", "--force").returncode == 0
    assert f"stop {name(home)}.service" in user_manager.calls(manager)


def test_a_service_that_fails_is_given_up_and_everybody_says_why(home: Home, manager: Path) -> None:
    installed(home)
    (home.folder / "state").mkdir(exist_ok=True)
    (home.folder / "state" / "epoch").write_text("no number")
    starts.note_start(home.place, service_start.GIVE_UP - 1, time.time())
    home.shim(home.environment()).initialize()
    # The shim asks again now and then; each time the manager gives up.
    ended = "It has ended (service-start-limit-hit)"
    until(lambda: ended in str(look(home)["problems"]), PATIENCE, "the manager gives up")
    assert "is damaged" in home.ctl("status").stderr
    (home.folder / "state" / "epoch").write_text("7")
    assert home.ctl("start").returncode == 0
    until_listed(home, 1)


def test_what_the_manager_refuses_is_told_in_its_words_and_can_be_repeated(home: Home, manager: Path) -> None:
    for verb in ("daemon-reload", "enable", "start"):
        (manager / "systemd" / f"fail-{verb}").write_text("Access denied by a test")
        done = home.ctl("service", "install")
        assert done.returncode == 1
        assert f"systemctl --user {verb}" in done.stderr
        assert "Access denied by a test" in done.stderr
        (manager / "systemd" / f"fail-{verb}").unlink()
    installed(home)
    assert look(home)["problems"] == []


def test_without_a_manager_nothing_is_written_and_shims_start_the_daemon_as_ever(home: Home, manager: Path) -> None:
    installed(home)
    systemctl(home, manager, "stop", "socket")
    (manager / "systemd" / "private").unlink()
    home.shim(home.environment()).initialize()
    until_listed(home, 1)
    assert ask(home, "status")["daemon"]["started_by"] == "auto"
    done = home.ctl("service", "install")
    assert (done.returncode, done.stdout) == (1, "")
    assert "loginctl enable-linger" in done.stderr
    assert "Nothing was changed" in done.stderr
    shown = home.ctl("service", "install", "--dry-run")
    assert (shown.returncode, shown.stderr) == (0, "Nothing was changed.\n")
    wanted = home.ctl("service", "uninstall", "--dry-run")
    assert [line.split()[0] for line in wanted.stdout.splitlines()] == ["remove", "remove"]  # nobody can be asked
    assert home.ctl("service", "uninstall").returncode == 0
    assert units(home) == []
    assert not (home.folder / "user" / ".config").exists()
    nothing = [home.ctl("service", "uninstall", *options) for options in ((), ("--dry-run",))]
    assert [(done.returncode, done.stdout) for done in nothing] == [(0, f"{name(home)} is not installed.\n")] * 2


def test_a_file_of_somebody_else_is_left_alone(home: Home, manager: Path) -> None:
    mine = home.folder / "user" / ".config" / "systemd" / "user" / f"{name(home)}.service"
    mine.parent.mkdir(parents=True)
    mine.write_text("[Service]\nExecStart=/bin/true\n")
    for command in ("install", "uninstall"):
        done = home.ctl("service", command)
        assert done.returncode == 1
        assert "was not written by pursersctl" in done.stderr
    assert [path.name for path in units(home)] == [mine.name]
    assert user_manager.calls(manager) == []


def test_what_differs_is_seen_shown_and_put_right(home: Home) -> None:
    installed(home)
    service, _ = units(home)
    service.write_text(service.read_text().replace("WatchdogSec=60", "WatchdogSec=5").replace(DAEMON, "/gone/pursersd"))
    problems = str(look(home)["problems"])
    assert "is not what this version would write" in problems
    assert "/gone/pursersd is not there" in problems
    done = installed(home)
    assert "-WatchdogSec=5" in done.stdout
    assert "+WatchdogSec=60" in done.stdout
    assert look(home)["problems"] == []


def test_the_files_for_every_user_name_nobody(tmp_path: Path, home: Home) -> None:
    folder = tmp_path / "etc"
    done = home.ctl("service", "install", "--system-path", str(folder), PURSERSD_HOME="")
    assert done.returncode == 0, done.stderr
    assert "systemctl --global enable pursersd.socket" in done.stdout
    found = {path.name: path.read_text() for path in folder.iterdir()}
    assert sorted(found) == ["pursersd.service", "pursersd.socket"]
    assert "ListenStream=/tmp/pursersd-%U/pursersd.sock" in found["pursersd.socket"]
    assert not any(str(home.folder) in text or "PURSERSD_HOME" in text for text in found.values())
    assert home.ctl("service", "status", "--system-path", str(folder), PURSERSD_HOME="").returncode == 0
    assert home.ctl("service", "uninstall", "--system-path", str(folder), PURSERSD_HOME="").returncode == 0
    assert list(tmp_path.glob("etc/*")) == []
    assert CTL in found["pursersd.service"]
