"""The local board as its user has it: one command, then a board that is there whatever happens to the daemon and to Central."""

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import psutil
import pytest

from pursers_shim.launch import lock_holder
from pursersctl import client
from pursersd.local.process import GRACE
from pursersd.rules.door import decode
from pursersd.state.doors import Doors
from rig import canary, doors, processes
from rig.daemon import Home
from rig.plain import PlainClient
from rig.shim import Json, Pending, ShimProcess
from rig.wait import until

PATIENCE = 60.0  # seconds for anything to come about
UP_TIMEOUT = 240.0


class Board:
    """A home with a local board, and what one asks of it."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def ctl(self, *words: str, status: int = 0) -> "subprocess.CompletedProcess[str]":
        done = self.home.ctl(*words, timeout=UP_TIMEOUT)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def up(self, *words: str) -> Any:
        answer = json.loads(self.ctl("local", "up", *words, "--json").stdout)
        self.watch()
        return answer

    def refused(self, *words: str) -> Any:
        return json.loads(self.ctl("local", *words, "--json", status=1).stdout)["error"]

    def status(self) -> Any:
        return json.loads(client.ask(self.home.place, "local", timeout=PATIENCE))

    def running(self) -> Any:
        """Its status as soon as it is served."""
        return until(lambda: (s := self.status())["state"] == "running" and s, PATIENCE, "it is served")

    @property
    def folder(self) -> Path:
        return self.home.folder / "state" / "local"

    def watch(self) -> None:
        """From now on every credential of the board counts as a secret wherever it shows."""
        for file in self.folder.rglob("*.jwt"):
            canary.watch(file.read_text().strip())
        stored = json.loads((self.home.folder / "state" / "doors.json").read_text())
        for entry in stored["doors"]:
            canary.watch(entry["t"])


@pytest.fixture(scope="module")
def shared() -> Iterator[Board]:
    with Home() as home:
        board = Board(home)
        board.up()
        yield board


@pytest.fixture
def board(shared: Board) -> Board:
    """The module's board, served."""
    if not lock_holder(shared.home.place.lock):
        shared.ctl("start")
    if shared.status()["state"] != "running":
        shared.up()
    return shared


@contextlib.contextmanager
def conversation(board: Board, role: str = "worker") -> Iterator[ShimProcess]:
    """One whose host's entry says nothing but its role."""
    shim = board.home.shim(board.home.environment(role=role))
    try:
        shim.initialize()
        yield shim
    finally:
        shim.close()


def blocking(board: Board, shim: ShimProcess) -> Pending[Json]:
    """A wait that has nothing to return: the tickets of other tests are told first."""
    since: Json = {}
    told = False
    while not told:
        found = shim.call_tool("a2a_wait", {"timeout_s": 1, **since}, PATIENCE)
        since, told = {"since_seq": found["new_seq"]}, found["timed_out"]
    wait = shim.start_tool("a2a_wait", {"timeout_s": 500, **since})
    until(lambda: [row["state"] for row in board.home.ps()] == ["waiting"], PATIENCE, "it waits")
    return wait


def gone(pid: int, patience: float = PATIENCE) -> None:
    until(lambda: not psutil.pid_exists(pid) or not processes.is_alive(psutil.Process(pid)), patience, f"{pid} is gone")


def test_one_command_makes_a_board_with_two_doors(board: Board) -> None:
    again = board.up()
    assert (again["local"]["state"], again["local"]["board"], again["notes"]) == ("running", "local", [])
    assert [(door["role"], door["is_new"]) for door in again["doors"]] == [("worker", False), ("reviewer", False)]
    assert "board=local role=worker" in board.ctl("doors").stdout
    assert board.home.status()["local"]["pid"] == board.status()["pid"]


def test_its_central_listens_on_loopback_alone_and_its_files_are_private(board: Board) -> None:
    connections = psutil.Process(board.status()["pid"]).net_connections()
    assert {at.laddr.ip for at in connections if at.status == psutil.CONN_LISTEN} == {"127.0.0.1"}
    for path in (board.folder, *board.folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # SQLite's own come and go
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_worker_waits_and_gets_a_ticket_and_its_connector_takes_it(board: Board) -> None:
    with conversation(board) as shim:
        wait = blocking(board, shim)
        ticket = board.ctl("local", "ticket", "Say hello").stdout.strip()
        assert ticket in [event.get("ticket_id") for event in wait.result(PATIENCE)["events"]]
        (row,) = board.home.ps()
        connector = PlainClient(board.status()["port"], (board.folder / "worker.jwt").read_text().strip())
        taken = connector.tool("ticket_claim", board_id="local", agent_name=row["seat"], ticket_id=ticket)
        connector.close()
    assert taken["status"] == "claimed"


def test_a_reviewer_waits(board: Board) -> None:
    with conversation(board, "reviewer") as shim:
        assert shim.call_tool("a2a_wait", {"timeout_s": 1})["timed_out"] is True
        (row,) = board.home.ps()
    assert (row["board"], row["role"]) == ("local", "reviewer")


def test_a_central_that_dies_is_started_again_at_its_address(board: Board) -> None:
    before = board.status()
    os.kill(before["pid"], signal.SIGKILL)
    until(lambda: board.status()["pid"] not in (None, before["pid"]), PATIENCE, "there is another one")
    after = board.running()
    assert (after["url"], after["restarts"]) == (before["url"], before["restarts"] + 1)
    assert "signal 9" in after["last_error"]


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_another_daemon_takes_it_over_and_nobody_loses_it(board: Board, how: str) -> None:
    before = board.running()["pid"]
    with conversation(board) as shim:
        wait = blocking(board, shim)
        daemon = board.home.daemon_pid()
        if how == "restart":
            board.ctl("restart")
        else:
            os.kill(daemon, signal.SIGKILL)
            until(
                lambda: lock_holder(board.home.place.lock) not in (None, daemon),
                PATIENCE,
                "the shim started another one",
            )
        after = board.running()
        assert (after["pid"], after["restarts"]) == (before, 0)
        ticket = board.ctl("local", "ticket", "Go on").stdout.strip()
        assert ticket in [event.get("ticket_id") for event in wait.result(PATIENCE)["events"]]


def test_stop_ends_it_and_start_brings_it_back(board: Board) -> None:
    before = board.status()
    board.ctl("stop")
    gone(before["pid"], GRACE / 3)  # it had ended before the daemon left; without one it would end by itself
    board.ctl("start")
    assert board.running()["url"] == before["url"]


def test_down_lasts_and_keeps_what_was_there(board: Board) -> None:
    ticket = board.ctl("local", "ticket", "Remember me").stdout.strip()
    before = board.status()
    answer = json.loads(board.ctl("local", "down", "--json").stdout)
    assert (answer["local"]["state"], answer["removed"]) == ("down", [])
    gone(before["pid"])
    board.ctl("restart")
    assert (board.status()["state"], board.status()["pid"]) == ("down", None)
    assert board.refused("ticket", "x")["code"] == "local_down"
    assert board.up()["local"]["url"] == before["url"]
    with conversation(board) as shim:
        found = shim.call_tool("a2a_wait", {"timeout_s": 1, "since_seq": 0})
    assert ticket in [event.get("ticket_id") for event in found["events"]]


def test_a_port_that_somebody_took_is_named_and_tried_again(board: Board) -> None:
    port = board.status()["port"]
    board.ctl("local", "down")
    with socket.create_server(("127.0.0.1", port)):
        refused = board.refused("up")
        assert refused["code"] == "local_failing"
        assert f"Port {port} is taken" in refused["text"]
        status = board.status()
        assert status["state"] in ("failing", "starting")
        assert f"Port {port} is taken" in status["last_error"]
        until(lambda: "local_board_failing" in warnings(board), PATIENCE, "a warning says it")
    assert board.running()["port"] == port


def warnings(board: Board) -> list[str]:
    return [warning["code"] for warning in board.home.status()["warnings"]]


def test_damaged_data_are_named(board: Board) -> None:
    board.ctl("local", "down")
    data = {file: file.read_bytes() for file in (board.folder / "instance" / "data").glob("board.sqlite3*")}
    for file in data:
        file.unlink()  # with what SQLite could repair it from
    try:
        (board.folder / "instance" / "data" / "board.sqlite3").write_bytes(b"no database" * 1000)
        assert "file is not a database" in board.refused("up")["text"]
        assert "file is not a database" in board.status()["last_error"]
    finally:
        board.ctl("local", "down")
        for file, content in data.items():
            file.write_bytes(content)


def test_an_owners_token_that_has_ended_is_signed_anew(board: Board) -> None:
    file, key = board.folder / "instance" / "admin.jwt", board.folder / "instance" / "signing-key.pem"
    token, now = file.read_text().strip(), int(time.time())
    claims = jwt.decode(token, options={"verify_signature": False})
    kid = jwt.get_unverified_header(token)["kid"]
    ended = {**claims, "iat": now - 365 * 24 * 3600, "exp": now - 60}
    file.write_text(jwt.encode(ended, key.read_text(), "RS256", headers={"kid": kid}))
    assert board.refused("ticket", "x")["code"] == "auth"
    assert [door["is_new"] for door in board.up()["doors"]] == [False, False]
    board.ctl("local", "ticket", "x")


def test_another_name_or_port_is_refused(board: Board) -> None:
    assert "--reset" in board.refused("up", "--board", "other")["text"]
    assert "--reset" in board.refused("up", "--port", "29999")["text"]


def keeper(board: Board, lock: Path, daemon_lock: str, grace: float) -> "subprocess.Popen[str]":
    words = [str(board.folder / "instance"), str(lock), daemon_lock, str(grace)]
    return subprocess.Popen(
        [sys.executable, "-m", "pursersd.local.keeper", *words],
        env=processes.environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_second_process_gives_way(board: Board) -> None:
    with keeper(board, board.folder / "central.lock", board.home.place.lock, 60) as second:
        said = second.communicate(timeout=PATIENCE)[1]
    assert (second.returncode, said.strip()) == (0, "another process serves this board already")


def test_without_a_daemon_it_ends_by_itself(board: Board, tmp_path: Path) -> None:
    board.ctl("local", "down")
    with keeper(board, tmp_path / "lock", str(tmp_path / "nobody"), 1.2) as orphan:
        try:
            said = orphan.communicate(timeout=PATIENCE)[1]
        finally:
            orphan.kill()
    assert "no pursersd has been there for a while" in said


def test_a_reset_deletes_what_was_made_and_nothing_else(board: Board) -> None:
    stored = Doors(board.home.folder / "state")
    stored.store(decode(doors.packed(b="other", t=doors.token("door-other-worker-v1"))))
    (board.folder / "mine.txt").write_text("mine")
    answer = json.loads(board.ctl("local", "down", "--reset", "--yes", "--json").stdout)
    assert (answer["local"]["state"], answer["kept"]) == ("none", [str(board.folder / "mine.txt")])
    assert [path.name for path in board.folder.iterdir()] == ["mine.txt"]
    assert [door.board for door in stored.load()] == ["other"]
    assert board.home.status()["local"] is None
