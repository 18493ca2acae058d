"""pursersctl as a program against a scripted daemon: what it prints, what it leaves alone, how it ends."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from pursersctl import client, errors, render, render_ps
from pursersctl.__main__ import app
from pursersctl.pick import Wish, pick
from pursersd import api
from rig import processes
from rig.daemon import CTL, Home
from unit.ctl_daemon import WELCOME, ScriptedDaemon
from unit.ctl_samples import SEATS, STATUS

PS = msgspec.to_builtins(api.Ps(seats=SEATS))
OK = {"ps": {"result": PS}, "status": {"result": msgspec.to_builtins(STATUS)}, "ping": {"result": {}}}
NOT_RUNNING = "pursersd is not running. Start it with: pursersctl start"


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def shown(width: int) -> str:
    """The table of SEATS."""
    ordered = [SEATS[i] for i in pick(SEATS, Wish())]
    return render.plain(render_ps.ps(api.Ps(seats=ordered), width))


def error_code(done: "subprocess.CompletedProcess[str]") -> str:
    """Of a command with --json that failed; the text on stdout must be the one on stderr."""
    document = json.loads(done.stdout)
    assert document["schema"] == api.SCHEMA
    assert document["error"]["text"] == done.stderr.rstrip("\n")
    code: str = document["error"]["code"]
    return code


def test_ps_prints_the_table_and_asks_as_docs_say(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=OK) as daemon:
        done = home.ctl("ps")
        hello, request = daemon.received()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == shown(80)
    assert hello.pop("pid") > 0
    del hello["seen"], request["seen"]
    assert hello == {"pursers": "hello", "protocol": [1, 1], "role": "control", "version": "0.1.0"}
    assert request == {"id": 1, "verb": "ps", "params": {}}


@pytest.mark.parametrize(
    "words",
    [
        ["DOOR"],
        ["doors", "DOOR"],
        ["join", "DOOR", "DOOR"],
        ["join", "--nmae", "me", "DOOR"],
        ["logs", "-n", "DOOR"],
        ["forget", "--board", "b", "--role", "DOOR"],
    ],
    ids=" ".join,
)
def test_a_door_in_the_wrong_place_is_not_repeated(home: Home, words: list[str]) -> None:
    done = home.ctl(*("prs1.eyJiIjoiYiJ9" if word == "DOOR" else word for word in words))
    assert done.returncode == 2
    assert "Error: " in done.stderr
    assert "eyJ" not in done.stdout + done.stderr
    assert files(home.folder) == []


def test_a_door_that_is_typed_is_not_shown(home: Home) -> None:
    keyboard, terminal = pty.openpty()
    command = [CTL, "join", "-"]
    with subprocess.Popen(
        command,
        env=home.environment(role=None),
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as typing:
        try:
            assert typing.stderr is not None
            assert select.select([typing.stderr], [], [], 30)[0], "it asks"
            assert typing.stderr.read(6) == b"Door: ", "now nothing is echoed any more"
            os.write(keyboard, b"prs1.dHlwZWQ\n")
            out, err = typing.communicate(timeout=30)
        finally:
            typing.kill()
    os.close(terminal)
    os.set_blocking(keyboard, False)
    try:
        shown = os.read(keyboard, 4096)
    except OSError:  # of a terminal that is closed and on which nothing was shown
        shown = b""
    os.close(keyboard)
    assert (typing.returncode, out) == (1, b"")
    assert err.strip() == b"pursersctl: door is not valid base64url JSON"
    assert b"dHlwZWQ" not in shown


def test_tables_are_wider_when_there_is_room() -> None:
    with Home(COLUMNS="140") as home, ScriptedDaemon(home.folder, answers=OK):
        assert home.ctl("ps").stdout == shown(140)


def test_ps_json_passes_on_what_the_daemon_said_with_fields_of_a_newer_one(home: Home) -> None:
    newer = {**PS, "since_next_year": True}
    with ScriptedDaemon(home.folder, answers={"ps": {"result": newer}}):
        done = home.ctl("ps", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, newer)


def test_status(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=OK):
        done, machine = home.ctl("status"), home.ctl("status", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == render.plain(render.status(STATUS, stopped=False, version="0.1.0", width=80))
    assert (machine.returncode, json.loads(machine.stdout)) == (0, OK["status"]["result"])


def test_status_says_when_automatic_start_is_off(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=OK):
        (home.folder / "run" / "stopped").touch()
        assert "autostart      off" in home.ctl("status").stdout


@pytest.mark.parametrize("command", ["ps", "status"])
def test_without_a_daemon_reading_starts_and_creates_nothing(home: Home, command: str) -> None:
    done = home.ctl(command)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", NOT_RUNNING + "\n")
    machine = home.ctl(command, "--json")
    assert (machine.returncode, error_code(machine)) == (3, "not_running")
    assert files(home.folder) == []
    assert home.daemons() == []


def test_a_socket_without_a_daemon_behind_it_is_no_daemon(home: Home) -> None:
    with ScriptedDaemon(home.folder):
        pass  # killed: its socket and lock file stay
    before = files(home.folder)
    assert "run/pursersd.sock" in before
    assert home.ctl("ps").returncode == 3
    assert files(home.folder) == before


@pytest.mark.parametrize("script", [{"greeting": None}, {"answers": {}}, {"listens": False}])
def test_a_daemon_that_does_not_answer_is_busy_and_named(home: Home, script: dict[str, object]) -> None:
    with ScriptedDaemon(home.folder, **script) as daemon:
        place = client.where({"PURSERSD_HOME": str(home.folder)})
        with pytest.raises(errors.Busy, match=rf"\(pid {daemon.pid}\) .*stopped or busy"):
            client.ask(place, "ps", timeout=0.3)
        assert daemon.process.poll() is None


def test_a_daemon_that_is_still_starting_is_waited_for(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedDaemon(home.folder, answers=OK, listens=False) as daemon:
        place = client.where({"PURSERSD_HOME": str(home.folder)})
        monkeypatch.setattr(client.time, "sleep", lambda seconds: daemon.process.send_signal(signal.SIGUSR1))
        assert json.loads(client.ask(place, "ps")) == PS


def test_a_stopped_daemon_is_reported_after_two_seconds_and_left_alone(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=OK) as daemon:
        daemon.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        done = home.ctl("status", "--json")
        took = time.monotonic() - began
        daemon.process.send_signal(signal.SIGCONT)
        assert (done.returncode, error_code(done)) == (4, "busy")
        assert f"(pid {daemon.pid})" in done.stderr
        assert took > 1.5
        assert home.ctl("status").returncode == 0


def test_a_daemon_that_hangs_up_is_busy(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=OK, hangs_up_on=["ps"]):
        assert home.ctl("ps").returncode == 4


@pytest.mark.parametrize(
    ("greeting", "status", "code"),
    [
        ({"pursers": "refuse", "code": "protocol", "text": "speaks 7", "retryable": False}, 5, "protocol"),
        ({"pursers": "refuse", "code": "too_many", "text": "no room", "retryable": True}, 4, "too_many"),
        ({"pursers": "bonjour"}, 5, "protocol"),
        ("not json", 5, "protocol"),
    ],
)
def test_a_refusal_says_why(home: Home, greeting: object, status: int, code: str) -> None:
    with ScriptedDaemon(home.folder, greeting=greeting):
        done = home.ctl("ps", "--json")
    assert (done.returncode, error_code(done)) == (status, code)
    if isinstance(greeting, dict) and "text" in greeting:
        assert greeting["text"] in done.stderr


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        ({"error": {"code": "unknown_verb", "text": "does not know it"}}, 1, "unknown_verb"),
        ({"result": {"schema": 1, "seats": [{"seat": 7}]}}, 5, "protocol"),
        ({"result": {"schema": 2, "seats": []}}, 5, "protocol"),
        ("[]", 5, "protocol"),
    ],
)
def test_an_answer_that_is_none(home: Home, answer: object, status: int, code: str) -> None:
    with ScriptedDaemon(home.folder, answers={"ps": answer}):
        done = home.ctl("ps", "--json")
    assert (done.returncode, error_code(done)) == (status, code)


def test_an_answer_to_somebody_elses_question_is_not_ours(home: Home) -> None:
    stray = json.dumps({"id": 0, "error": {"code": "x", "text": "x"}})
    with ScriptedDaemon(home.folder, answers={"ps": stray + "\n" + json.dumps({"id": 1, "result": PS})}):
        assert home.ctl("ps").returncode == 0


def test_a_folder_open_to_others_is_refused(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=OK) as daemon:
        (home.folder / "run").chmod(0o755)
        done = home.ctl("ps", "--json")
        assert (done.returncode, error_code(done)) == (5, "unsafe_folder")
        assert "chmod 700" in done.stderr
        assert daemon.received() == []


def test_a_home_that_cannot_work_is_refused() -> None:
    environ = processes.environment({"PURSERSD_HOME": "relative"})
    done = subprocess.run([CTL, "ps", "--json"], env=environ, capture_output=True, text=True, timeout=30)
    assert (done.returncode, error_code(done)) == (5, "unsafe_folder")


def test_version_needs_no_daemon(home: Home) -> None:
    done = home.ctl("--version")
    assert (done.returncode, done.stdout) == (0, f"pursersctl {WELCOME['version']}\n")


def help_of(*words: str) -> str:
    return CliRunner().invoke(app, [*words, "--help"], terminal_width=80).stdout


def test_help_has_whole_lines_and_names_for_people() -> None:
    pages: list[tuple[str, ...]] = [()]
    for words in pages:
        shown, _, listed = help_of(*words).partition("\nCommands:\n")
        assert "<str>" not in shown.partition("\nOptions:\n")[2]
        assert [line for line in listed.splitlines() if not line.endswith(".") or line.endswith("...")] == []
        pages += [(*words, line.split()[0]) for line in listed.splitlines()]
    assert len(pages) > 30


@pytest.mark.parametrize("command", ["ps", "status", "stats", "start", "stop", "restart", "logs"])
def test_help_shows_examples(home: Home, command: str) -> None:
    done = home.ctl(command, "--help")
    assert done.returncode == 0
    assert f"Examples:\n    {'pip' if command == 'restart' else 'pursersctl ' + command}" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


@pytest.mark.parametrize(
    "arguments",
    [
        ["pss"],
        ["ps", "extra"],
        ["ps", "--jso"],
        ["logs", "-n", "-1"],
        ["ps", "--sort", "x"],
        ["stop", "--drain", "--force"],
    ],
)
def test_wrong_usage_is_an_error_and_does_nothing(home: Home, arguments: list[str]) -> None:
    done = home.ctl(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Error: " in done.stderr
    assert "Value error" not in done.stderr
    assert files(home.folder) == []
