"""The machine's bad days: a daemon that is stopped for a while, too few descriptors, a full disk, a read-only folder."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pursers_shim import wire
from pursersd.descriptors import RESERVE
from rig import processes
from rig.central import Central
from rig.daemon import DAEMON, Home
from rig.wait import until
from system.scene import PATIENCE, Caller, Converse, ask, rows, until_blocking

CROWD = int(os.environ.get("PURSERSD_CROWD", "400"))
"""Connections in a row. 5000 take half a minute, and are worth it after a change of the listener."""

ASYNCIO = "ERROR   asyncio: Exception in callback Future.set_result"
"""A race between the end of a task and the last byte of its socket that anyio loses; it means nothing."""

UNSHARE = shutil.which("unshare")


def can_mount() -> bool:
    """Whether we may mount something that nobody else sees."""
    if sys.platform != "linux" or UNSHARE is None or os.getuid() != 0:
        return False
    return subprocess.run([UNSHARE, "-m", "true"], capture_output=True, timeout=PATIENCE).returncode == 0


private_mounts = pytest.mark.skipif(not can_mount(), reason="mounting in a namespace of our own is not allowed here")


def codes(home: Home) -> list[str]:
    return [warning["code"] for warning in ask(home, "status")["warnings"]]


def test_what_happens_while_the_daemon_is_stopped_is_told_once_when_it_goes_on(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    caller = Caller(converse("stopped"))
    wait = caller.arm()
    until_blocking(home, 1)
    pid = home.daemon_pid()
    os.kill(pid, signal.SIGSTOP)
    tickets = [central.create_ticket(board, f"while it stood still {number}") for number in range(3)]
    assert not wait.done
    os.kill(pid, signal.SIGCONT)
    until(lambda: caller.has_seen(set(tickets)), PATIENCE, "all of it is told")
    assert [event["ticket_id"] for event in caller.events] == tickets
    caller.assert_once()
    assert home.daemon_pid() == pid
    assert ask(home, "status")["daemon"]["longest_stall_s"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets us lower the limit of another process")
def test_with_too_few_descriptors_those_who_are_there_are_served_and_the_others_later(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    early = converse("early")
    caller = Caller(early)
    caller.arm()
    until_blocking(home, 1)
    status = ask(home, "status")["daemon"]
    assert status["descriptor_limit"] >= 1024  # raised at the start
    daemon = psutil.Process(home.daemon_pid())
    few = status["descriptors"] + RESERVE - 2
    daemon.rlimit(resource.RLIMIT_NOFILE, (few, status["descriptor_limit"]))
    late = Caller(converse("late"))  # its handshake is answered by the shim
    call = late.arm()
    until(lambda: "descriptors_short" in codes(home), PATIENCE, "status says so")
    assert len(rows(home)) == 1
    ticket = central.create_ticket(board, "for who is there")
    assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
    assert not call.done
    early.close()  # whoever ends makes room
    until(lambda: late.has_seen({ticket}), PATIENCE, "the late one is served")
    log = home.folder / "log" / "pursersd.log"
    assert "refused a link: The daemon has too few file descriptors" in log.read_text()
    said = "warning descriptors_short: New conversations are refused"
    until(lambda: said in log.read_text(), PATIENCE, "the log says so, too")


def visit(home: Home, hello: dict[str, object] | None, *, until_greeted: bool = True) -> None:
    """Connect, say what there is to say, and go."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(home.place.socket)
        if hello is not None:
            link.sendall(wire.encode({"pursers": "hello", "protocol": list(wire.PROTOCOL), "version": "rig", **hello}))
            if until_greeted:
                assert b"welcome" in link.recv(65536)


def test_whoever_comes_and_goes_leaves_no_descriptor_behind() -> None:
    """A crowd of every kind: silent ones, some who ask, some who do not wait for the answer, and conversations."""
    shim = {"role": "shim", "pid": os.getpid(), "ppid": os.getppid(), "cwd": "/", "env": {}}
    with Home(PURSERSD_RESUME_GRACE_S="1") as home:
        home.start_daemon()
        visit(home, {"role": "control"})
        before = ask(home, "status")["daemon"]["descriptors"]
        for _ in range(CROWD // 4):
            visit(home, None)
            visit(home, {"role": "control"})
            visit(home, {"role": "control"}, until_greeted=False)
            visit(home, shim)
        until(lambda: rows(home) == [], PATIENCE, "their conversations have ended")
        until(lambda: ask(home, "status")["daemon"]["descriptors"] == before, PATIENCE, "all are given back")
        assert "ERROR" not in home.output().replace(ASYNCIO, "")


FALSE_CLOCK = """
import os, time
right = time.time
def wrong():
    try:
        with open(os.environ["JUMP"]) as jump:
            return right() + float(jump.read())
    except (OSError, ValueError):
        return right()
time.time = wrong
"""


@pytest.fixture
def jumping(tmp_path: Path) -> Iterator[tuple[Home, Path]]:
    """A home whose programs have a wall clock that jumps by the seconds in a file."""
    (tmp_path / "sitecustomize.py").write_text(FALSE_CLOCK)
    with Home(PYTHONPATH=str(tmp_path), JUMP=str(tmp_path / "jump")) as home:
        home.start_daemon()
        yield home, tmp_path / "jump"


@pytest.mark.parametrize("seconds", [-86400, 86400], ids=["back", "forward"])
def test_a_wall_clock_that_is_set_while_a_model_waits_changes_nothing(
    central: Central, board: str, jumping: tuple[Home, Path], seconds: int
) -> None:
    home, jump = jumping
    token = central.worker("ann", board)
    tier = {"PURSERS_TIER_MAX": "3", "PURSERS_CAN_WORK": "true"}
    shim = home.shim(home.environment(central.url, token, board, "timely", extra=tier))
    shim.initialize()
    caller = Caller(shim)
    caller.arm()
    until_blocking(home, 1)
    abilities = {"tier_max": 3, "can_work": True}
    central.call(token, "agent_capabilities_set", board_id=board, agent_name="timely", capabilities=abilities)
    jump.write_text(str(seconds))
    assert abs(ask(home, "status")["centrals"][0]["clock_ahead_s"] - seconds) < 60
    assert "clock_differs" in codes(home)
    offered = central.create_ticket(board, "offered")
    until(lambda: caller.has_seen({offered}), PATIENCE, "the event is told")
    # Nothing new comes, but the offer stands, by Central's clock: the last look of the wait tells it.
    caller.arm(timeout_s=1)
    result = caller.take()
    assert [(event["ticket_id"], event["kind"]) for event in result["events"]] == [(offered, "ticket_offered")]
    assert len(rows(home)) == 1


@contextlib.contextmanager
def daemon_on(home: Home, folder: Path, size: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A daemon that has a small disk of its own at `folder`, which nobody else sees."""
    folder.mkdir(mode=0o700)
    script = f'mount -t tmpfs -o size={size},mode=0700 none "$1" && exec "$2"'
    daemon = subprocess.Popen(
        [str(UNSHARE), "-m", "sh", "-c", script, "sh", str(folder), DAEMON],
        env=home.environment(role=None),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        until(lambda: ask(home, "ping")["pid"] == daemon.pid, PATIENCE, "the daemon answers")
        yield daemon
        assert daemon.stderr is not None
    finally:
        processes.stop(daemon, (signal.SIGTERM,))
        assert daemon.stderr is not None
        with daemon.stderr as stderr:
            assert stderr.read() == b""  # what cannot be logged does not go where nobody bounds it


@private_mounts
def test_a_full_disk_costs_the_log_and_nothing_else(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    logs = home.folder / "log"
    with daemon_on(home, logs, "64k") as daemon:
        caller = Caller(converse("thrifty"))
        caller.arm()
        until_blocking(home, 1)
        filler = Path(f"/proc/{daemon.pid}/root{logs}/filler")
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as full:
            while True:
                full.write(b"x" * 4096)

        def fails() -> bool:
            converse("another").close()  # which is worth some lines in the log
            return "log_unwritable" in codes(home)

        until(fails, PATIENCE, "status says so")
        assert ask(home, "status")["daemon"]["log_lines_lost"] > 0
        ticket = central.create_ticket(board, "on a full disk")
        assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
        filler.unlink()

        def is_over() -> bool:
            converse("another").close()
            return "log_unwritable" not in codes(home)

        until(is_over, PATIENCE, "the log is written again")


@private_mounts
@pytest.mark.parametrize(
    ("options", "fill", "why"),
    [("ro", "true", "Read-only file system"), ("size=4k", 'cat /dev/zero >"$1"/filler', "No space left on device")],
    ids=["read-only", "full"],
)
def test_a_state_folder_that_cannot_be_written_is_refused_with_its_path(
    home: Home, options: str, fill: str, why: str
) -> None:
    state = home.folder / "state"
    state.mkdir(mode=0o700)
    script = f'mount -t tmpfs -o {options} none "$1"; {fill} 2>/dev/null; exec "$2" --foreground'
    done = subprocess.run(
        [str(UNSHARE), "-m", "sh", "-c", script, "sh", str(state), DAEMON],
        env=home.environment(role=None),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert f"pursersd: The state folder {state} cannot be written: {why}" in done.stderr
    assert "Make it writable" in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path(home.place.socket).exists()
