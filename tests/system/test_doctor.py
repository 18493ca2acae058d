"""pursersctl doctor against real files, processes and a real Central: it sees what is wrong and touches nothing."""

import hashlib
import io
import json
import os
import signal
import socket
import stat
import tarfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from pursersd.rules.door import decode
from pursersd.state.doors import Doors
from rig import canary, doors
from rig.central import WORKER_SCOPE, Central, free_port
from rig.daemon import Home
from rig.proxy import Proxy
from rig.shim import Json
from system.scene import Converse, until_listed

QUIET = ("python", "packages", "programs", "bridges", "orphans", "disk", "hosts", "service")
"""What depends on the machine that the tests run on."""


def keep(home: Home, url: str, board: str, token: str, role: str = "worker") -> None:
    """Store a door as `pursersctl join` does."""
    Doors(home.folder / "state").store(decode(doors.packed(u=url, b=board, r=role, t=token)))


def examined(home: Home, *arguments: str, **variables: str) -> list[Json]:
    """The findings, those apart that depend on the machine. The exit code must say the worst of all."""
    done = home.ctl("doctor", "--json", *arguments, timeout=60, **variables)
    document = json.loads(done.stdout)
    assert done.returncode == {"pass": 0, "warn": 1, "fail": 2}[document["result"]], done.stderr
    results = {finding["result"] for finding in document["findings"]}
    assert document["result"] == next(result for result in ("fail", "warn", "pass") if result in results)
    return [finding for finding in document["findings"] if finding["check"] not in QUIET]


def of(findings: list[Json], check: str) -> list[tuple[str, str]]:
    return [(finding["result"], finding["text"]) for finding in findings if finding["check"] == check]


def everything(folder: Path) -> dict[str, tuple[Any, ...]]:
    """What could change in a folder: names, kinds, modes, times, contents."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        known = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(known.st_mode) else ""
        found[str(path)] = (known.st_mode, known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns, content)
    return found


def test_on_a_fresh_machine_all_is_well_and_stays_untouched(home: Home) -> None:
    (home.folder / "user").mkdir()
    before = everything(home.folder)
    with socket.create_server(("127.0.0.1", 0)) as central:
        central.setblocking(False)
        url = f"http://127.0.0.1:{central.getsockname()[1]}/mcp"
        findings = examined(home, ONBOARD_CENTRAL_URL=url)
        with pytest.raises(BlockingIOError):
            central.accept()  # nobody came
    assert Counter(finding["result"] for finding in findings) == {"pass": len(findings)}
    assert of(findings, "daemon") == [("pass", "not running; nothing to ask")]
    assert everything(home.folder) == before
    assert home.daemons() == []


def test_a_door_that_opens_is_seen_and_nothing_is_touched(
    central: Central, home: Home, board: str, proxy: Proxy
) -> None:
    denied = f"{board}-denied"
    central.create_board(denied)
    for name in (board, denied):
        keep(home, proxy.url, name, central.worker("ann", name))
    proxy.deny(f"board://{denied}/journal")
    boards, head = central.board_count(), central.head(board)
    seats = central.call(central.admin, "board_status", board_id=board, agent_name="boss")["agents"]
    before = everything(home.folder)
    findings = examined(home)
    name = f"{board} worker"
    assert of(findings, "central") == [("pass", f"{proxy.url} answers")]
    assert of(findings, "clock") == [("pass", f"agrees with that of {proxy.url}")]
    assert [result for result, _ in of(findings, "door")] == ["warn", "warn"]  # the rig's tokens are good for hours
    assert f"{name}: the token is good only for another" in of(findings, "door")[0][1]
    assert of(findings, "membership")[0] == ("pass", f"{name}: member of the board")
    given, refused = of(findings, "push")
    assert given == ("pass", f"{name}: Central gives a stream")
    assert (refused[0], "its waits poll: subscription denied" in refused[1]) == ("warn", True)
    assert proxy.names() == {"server/discover": 2, "board_list": 2, "subscriptions/listen": 2}
    assert proxy.streams == []
    assert everything(home.folder) == before
    assert (central.board_count(), central.head(board)) == (boards, head)
    again = central.call(central.admin, "board_status", board_id=board, agent_name="boss")["agents"]
    assert [seat["agent_id"] for seat in again] == [seat["agent_id"] for seat in seats]


def test_everything_that_is_wrong_with_doors_is_said_at_once(
    central: Central, home: Home, board: str, proxy: Proxy
) -> None:
    """Each door has another fault; one of them hangs, and the others are told of all the same."""
    keep(home, central.url, "expired", central.mint("ann", WORKER_SCOPE, lifetime=-60))
    keep(home, central.url, "unknown", doors.token())
    keep(home, central.url, f"{board}-not-mine", central.mint("ann", WORKER_SCOPE))
    keep(home, f"http://127.0.0.1:{free_port()}/mcp", "gone", doors.token())
    keep(home, proxy.url, "silent", doors.token())
    boards = central.board_count()
    proxy.blackhole()
    findings = examined(home)
    proxy.blackhole(on=False)
    refused = {finding["subject"]: finding["text"] for finding in findings if finding["check"] == "door"}
    assert "does not take the token of" in refused["expired worker"]
    assert "it expired 1m ago" in refused["expired worker"]
    assert "it is unknown or revoked" in refused["unknown worker"]
    assert refused.keys() == {"expired worker", "unknown worker", f"{board}-not-mine worker"}
    assert of(findings, "membership") == [("fail", f"{board}-not-mine worker: its holder is no member of the board")]
    unreachable = [text for result, text in of(findings, "central") if result == "fail"]
    assert any("Central is unreachable" in text for text in unreachable)
    assert any("no answer within 8 s" in text for text in unreachable)
    assert len(unreachable) == 2
    assert all(finding["action"] for finding in findings if finding["result"] != "pass")
    assert central.board_count() == boards


def test_a_running_daemon_its_warnings_and_a_stopped_one(central: Central, home: Home, converse: Converse) -> None:
    daemon = home.start_daemon()
    converse("works")
    until_listed(home, 1)
    converse("lost", url=f"http://127.0.0.1:{free_port()}/mcp").start_tool("a2a_wait", {"timeout_s": 60})
    until_listed(home, 2)
    findings = examined(home)
    assert of(findings, "socket")[0][0] == "pass"
    assert any("is ready: 2 conversations" in text for _, text in of(findings, "daemon"))
    assert of(findings, "descriptors")[0][0] == "pass"
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        stuck = examined(home)
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    ((result, text),) = of(stuck, "daemon")
    assert result == "fail"
    assert f"pursersd (pid {daemon.pid}) holds its lock but does not answer" in text
    assert psutil.Process(daemon.pid).is_running()


def test_the_bundle_has_everything_but_secrets(
    central: Central, home: Home, board: str, converse: Converse, tmp_path: Path
) -> None:
    """Secrets of every kind lie in doors, host files, environments, token files and log lines: none is in the bundle."""
    opaque, filed = "0paque-Credential-17", "an0ther-One-in-a-file"
    for secret in (opaque, filed):
        canary.watch(secret)
    token_file = tmp_path / "token"
    token_file.write_text(filed + "\n")
    home.start_daemon()
    converse("shown", ONBOARD_CENTRAL_TOKEN_FILE="")
    until_listed(home, 1)
    token = central.worker("bob", board)
    keep(home, central.url, board, token)
    host_file = home.folder / "user" / ".claude.json"
    host_file.parent.mkdir(exist_ok=True)
    host_file.write_text(json.dumps({"mcpServers": {"pursers": {"env": {"ONBOARD_CENTRAL_TOKEN": opaque}}}}))
    door = doors.packed(u=central.url, b=board, t=token)
    lines = (
        f"door {door}",
        f"Authorization: Bearer {opaque}",
        f"token={opaque}",
        f"from {host_file}: {host_file.read_text()}",
    )
    log = home.folder / "log" / "pursersd.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("\n".join((*lines, f"it was {filed} then", f"and {token}", "the end")) + "\n")
    start_log = home.folder / "run" / "start.log"
    start_log.write_text(f"died with {opaque} in hand\n")
    central_log = home.folder / "state" / "local" / "central.log"
    central_log.parent.mkdir()
    central_log.write_text(f"Authorization: Bearer {opaque}, and {token}\nserved\n")
    variables = {
        "ONBOARD_CENTRAL_TOKEN": opaque,
        "ONBOARD_CENTRAL_TOKEN_FILE": str(token_file),
        "PURSERS_X": f"has {filed}",
    }

    contents: dict[str, dict[str, bytes]] = {}
    for name in ("bundle.tar.gz", "bundle.zip"):
        path = tmp_path / name
        findings = examined(home, "--bundle", str(path), **variables)
        assert of(findings, "bundle") == []
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        contents[name] = unpacked(path)
    for mine in (log, start_log, central_log, host_file):
        mine.unlink()  # which the rig would take for leaks
    for files in contents.values():
        for name, data in files.items():
            assert not canary.is_in(data), name
            assert b"prs1." not in data
    files = contents["bundle.tar.gz"]
    assert files.keys() == contents["bundle.zip"].keys()
    conversation = home.ps()[0]["conversation"]
    assert files.keys() >= {
        f"pursersd/{name}"
        for name in (
            "doctor.txt",
            "doctor.json",
            "versions.json",
            "environment.json",
            "daemon/status.json",
            "daemon/ps.json",
            f"conversations/{conversation}.json",
            "logs/pursersd.log",
            "logs/start.log",
            "logs/central.log",
            "service.json",
            "doors.json",
            "processes.json",
        )
    }
    assert files["pursersd/logs/pursersd.log"].endswith(b"the end\n")
    settings = json.loads(files[f"pursersd/conversations/{conversation}.json"])["settings"]
    assert {"name": "board", "value": board, "origin": "variable", "origin_name": "ONBOARD_BOARD_ID"} in settings
    environment = json.loads(files["pursersd/environment.json"])
    assert environment["ONBOARD_CENTRAL_TOKEN"] == "<secret>"
    assert environment["ONBOARD_CENTRAL_TOKEN_FILE"] == str(token_file)
    assert json.loads(files["pursersd/doors.json"])[0]["board"] == board


def test_a_bundle_overwrites_nothing(home: Home, tmp_path: Path) -> None:
    mine = tmp_path / "mine.zip"
    mine.write_text("mine")
    findings = examined(home, "--bundle", str(mine))
    assert of(findings, "bundle") == [("fail", f"{mine} cannot be made: File exists")]
    assert mine.read_text() == "mine"
    link = tmp_path / "link.zip"
    link.symlink_to(tmp_path / "elsewhere")
    assert of(examined(home, "--bundle", str(link)), "bundle")[0][0] == "fail"
    assert not (tmp_path / "elsewhere").exists()
    refused = home.ctl("doctor", "--bundle", "bundle.txt")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "must end with .tar.gz, .tgz or .zip" in refused.stderr


def unpacked(path: Path) -> dict[str, bytes]:
    """The files of a bundle; each only for its owner."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as archive:
        assert {member.mode for member in archive} == {0o600}
        return {member.name: file.read() for member in archive if (file := archive.extractfile(member)) is not None}
