"""pursersctl doctor: what it shows, compared with template files; each check on real files; checks that hang or fail."""

import dataclasses
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from pursersctl import doctor as command
from pursersctl import (
    doctor_daemon,
    doctor_doors,
    doctor_folders,
    doctor_hosts,
    doctor_install,
    doctor_local,
    doctor_service,
)
from pursersctl.doctor_doors import Examined
from pursersctl.doctor_patient import Patient, advised, doubtful, ill, patient, well
from pursersctl.doctor_shown import doctor as shown
from pursersctl.found import Doctor, Finding
from pursersctl.render import plain
from pursersd import api
from pursersd.door_check import DoorCheck
from pursersd.local.record import Record, record_file, save
from pursersd.rules.door import decode
from pursersd.rules.local_board import url as local_url
from pursersd.state.doors import Doors
from rig import doors as rig_doors
from rig.daemon import Home
from unit.ctl_samples import STATUS

DATA = Path(__file__).parents[1] / "data"

FINDINGS = [
    well("python", "Python 3.12.3 at /home/me/.local/share/pipx/venvs/pursersd/bin/python"),
    doubtful(
        "programs",
        "not on PATH but in /home/me/.local/share/pipx/venvs/pursersd/bin: pursersd, pursers-shim",
        "Give hosts the full path /home/me/.local/share/pipx/venvs/pursersd/bin/pursers-shim, or run: pipx ensurepath",
    ),
    well("socket", "/tmp/pursersd-1000/pursersd.sock is served: pursersd (pid 20400) holds the lock"),
    well("central", "http://127.0.0.1:8766/mcp answers", of="http://127.0.0.1:8766/mcp"),
    ill(
        "door",
        "my-board worker: Central does not take the token of door-my-board-worker-v1: it expired 2h ago",
        doctor_doors.RENEW,
        of="my-board worker",
    ),
    well("orphans", "every bridge and shim that runs may have a host"),
]


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


@pytest.fixture
def who(home: Home) -> Patient:
    return patient(home.environment(role=None))


def results(findings: Iterable[Finding]) -> list[str]:
    return [finding.result for finding in findings]


@pytest.mark.parametrize("width", [80, 120])
def test_what_it_shows(width: int) -> None:
    answer = Doctor(result="fail", findings=FINDINGS, bundle="/tmp/pursersd.tar.gz")
    assert plain(shown(answer, width)) == (DATA / f"ctl_doctor_{width}.txt").read_text(encoding="utf-8")


def test_it_fits() -> None:
    short = [well("central", "word " * 60), ill("door", "word " * 40, "word " * 40)]
    for width in (60, 80, 120):
        lines = plain(shown(Doctor(result="fail", findings=short), width)).splitlines()
        assert all(cell_len(line) <= width for line in lines)


def test_a_check_that_hangs_or_fails_holds_up_no_other(who: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda told: printed.append(told.exc_value))
    release = threading.Event()

    def hangs(_: Patient) -> Iterator[Finding]:
        release.wait(60)
        yield well("hangs", "too late")

    def fails(_: Patient) -> Iterator[Finding]:
        yield well("fails", "this is lost")
        raise ZeroDivisionError

    def works(_: Patient) -> list[Finding]:
        return [well("works", "well")]

    found = command.examine(who, (("hangs", hangs), ("fails", fails), ("works", works)), limit=2.0)
    release.set()
    assert [(finding.check, finding.result) for finding in found] == [
        ("hangs", "fail"),
        ("fails", "fail"),
        ("works", "pass"),
    ]
    assert "did not end within" in found[0].text
    assert "failed itself" in found[1].text
    assert [type(error) for error in printed] == [ZeroDivisionError]


@pytest.mark.parametrize(
    ("findings", "result", "code"),
    [(FINDINGS[:1], "pass", 0), (FINDINGS[:2], "warn", 1), (FINDINGS, "fail", 2), ([], "pass", 0)],
)
def test_the_worst_decides(findings: list[Finding], result: str, code: int) -> None:
    assert command.worst(findings) == result
    assert command.EXIT[command.worst(findings)] == code


def test_texts_are_parted_into_fact_and_advice() -> None:
    assert advised("It is open. Run: chmod 700 x", "-") == ("It is open", "Run: chmod 700 x")
    assert advised("It hangs. It is busy.\nSee: logs", "-") == ("It hangs. It is busy", "See: logs")
    assert advised("It is gone.", "look") == ("It is gone", "look")


def test_a_home_that_cannot_work_is_one_finding_among_others() -> None:
    for bad in ("/tmp/" + "x" * 200, "relative"):
        found = list(doctor_folders.runtime_folder(patient({"PURSERSD_HOME": bad})))
        assert results(found) == ["fail"]


def test_a_path_of_any_bytes_is_shown(home: Home) -> None:
    odd = str(home.folder) + os.fsdecode(b"/\xff")
    os.mkdir(odd)
    done = home.ctl("doctor", "--json", PURSERSD_HOME=odd)
    assert "\ufffd/state is made by the first start" in done.stdout
    assert "PURSERSD_HOME is not UTF-8" in done.stdout
    os.rmdir(odd)


def test_a_runtime_folder_that_is_open_to_others(who: Patient) -> None:
    folder = Path(who.place.folder)
    folder.mkdir(mode=0o755)
    (found,) = doctor_folders.runtime_folder(who)
    assert (found.result, found.action) == ("fail", f"Run: chmod 700 {folder}")
    folder.chmod(0o700)
    assert results(doctor_folders.runtime_folder(who)) == ["pass"]


def test_what_lies_at_the_socket(who: Patient) -> None:
    Path(who.place.folder).mkdir(mode=0o700)
    assert results(doctor_folders.socket_and_lock(who)) == ["pass"]
    Path(who.place.socket).write_text("mine")
    (found,) = doctor_folders.socket_and_lock(who)
    assert (found.result, found.text) == ("fail", f"{who.place.socket} is no socket")
    Path(who.place.socket).unlink()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(who.place.socket)
    (found,) = doctor_folders.socket_and_lock(who)
    assert (found.result, "takes the place of the socket that was left" in found.text) == ("pass", True)


def test_a_daemon_that_was_stopped_or_did_not_start(who: Patient) -> None:
    Path(who.place.folder).mkdir(mode=0o700)
    Path(who.place.stopped).touch()
    (found,) = doctor_folders.socket_and_lock(who)
    assert (found.result, found.action) == ("warn", "pursersctl start")
    Path(who.place.starts).write_text("4 1000 0\nno room\n")
    Path(who.place.start_log).write_text("pursersd: no room\n")
    failed, stopped = doctor_folders.socket_and_lock(who)
    assert (failed.result, stopped.result) == ("fail", "warn")
    assert failed.text == "the last 4 starts of the daemon failed: pursersd: no room"
    Path(who.place.starts).write_text("1 1000 0\nno room\n")
    assert next(iter(doctor_folders.socket_and_lock(who))).text.startswith("the last start of the daemon failed: ")


def test_the_first_conversation_has_an_installed_service_start_the_daemon(
    who: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pursers_shim.service.start_command", lambda *_: ["systemctl"])
    (found,) = doctor_folders.socket_and_lock(who)
    assert (found.result, found.text) == ("pass", "no daemon runs; the first conversation has the service start one")


def test_automatic_start_is_off(who: Patient) -> None:
    (found,) = doctor_folders.socket_and_lock(Patient(who.place, {**who.environ, "PURSERSD_AUTOSTART": "0"}, "/"))
    assert (found.result, found.action) == ("warn", "pursersctl start")


def test_a_package_that_is_missing_is_said_by_doctor_itself(home: Home) -> None:
    code = "import sys; sys.modules['psutil'] = None; from pursersctl.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor"], env=home.environment(), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.startswith("fail  packages        missing: psutil; nothing else could be looked at\n")
    assert "pip install --force-reinstall pursersd" in done.stdout


def test_a_state_folder_that_may_not_be_looked_into_is_a_finding(who: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(api.state_folder(who.place.home))
    folder.mkdir(mode=0o700)
    real = os.stat

    def closed(path: str | Path, **options: bool) -> os.stat_result:
        if Path(path).parent == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, **options)

    monkeypatch.setattr(os, "stat", closed)
    assert list(doctor_folders.state_folder(who))


def test_a_damaged_state(who: Patient) -> None:
    folder = Path(api.state_folder(who.place.home))
    folder.mkdir(mode=0o700)
    (folder / "epoch").write_text("7\n")
    (folder / "names.json").write_text("{}")
    assert results(doctor_folders.state_folder(who)) == ["pass", "pass"]
    (folder / "epoch").write_text("many")
    (folder / "names.json").write_text("{")
    found = list(doctor_folders.state_folder(who))
    assert [(finding.subject, finding.result) for finding in found[2:]] == [("epoch", "fail"), ("names.json", "warn")]
    folder.chmod(0o777)
    assert next(iter(doctor_folders.state_folder(who))).action == f"chmod 700 {folder}"


def test_a_folder_that_cannot_be_written(who: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(api.state_folder(who.place.home))
    folder.mkdir()
    real = os.statvfs(folder)
    read_only = os.statvfs_result((*real[:8], real.f_flag | os.ST_RDONLY, *real[9:]))
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere else
    assert f"{folder} is not writable" in next(iter(doctor_folders.state_folder(who))).text
    monkeypatch.setattr(os, "statvfs", lambda _: read_only)
    assert f"{folder} lies on a read-only file system" in next(iter(doctor_folders.state_folder(who))).text


@pytest.mark.parametrize(("blocks", "inodes", "result"), [(0, 9, "fail"), (10**6, 0, "fail"), (9000, 9, "warn")])
def test_a_disk_that_is_full(
    who: Patient, monkeypatch: pytest.MonkeyPatch, blocks: int, inodes: int, result: str
) -> None:
    found = os.statvfs_result((4096, 4096, 10**7, blocks, blocks, 10**6, inodes, inodes, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: found)
    assert [one.result for one in doctor_folders.state_folder(who) if one.check == "disk"] == [result]


def test_statistics(who: Patient) -> None:
    assert results(doctor_folders.stats_file(who)) == ["pass"]
    file = Path(who.environ["PURSERS_BRIDGE_STATS"])
    file.write_text("{")
    (found,) = doctor_folders.stats_file(who)
    assert (found.result, found.action) == ("warn", f"mv {file} {file}.damaged")
    file.unlink()
    os.mkfifo(file)  # reading it would hang
    assert results(doctor_folders.stats_file(who)) == ["warn"]


def test_doors_that_others_may_read(who: Patient, home: Home) -> None:
    folder = home.folder / "state"
    folder.mkdir(mode=0o700)
    (folder / "doors.json").write_text('{"schema_version": 1, "doors": []}')
    (folder / "doors.json").chmod(0o644)
    found = [finding for finding in doctor_doors.doors(who) if finding.result == "warn"]
    assert [finding.action for finding in found] == [f"chmod 600 {folder}/doors.json"]
    (folder / "doors.json").write_text("{")
    assert "fail" in results(doctor_doors.doors(who))


def test_a_name_that_is_never_resolved_holds_nobody_up(
    who: Patient, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def hangs(*_: object, **__: object) -> list[object]:
        released.wait(60)
        raise socket.gaierror

    monkeypatch.setattr(doctor_doors, "LIMIT", 0.5)
    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    Doors(home.folder / "state").store(decode(rig_doors.packed(u="https://board.example/mcp")))
    try:
        found = [finding for finding in doctor_doors.doors(who) if finding.check == "central"]
    finally:
        released.set()
    assert [(finding.result, finding.text) for finding in found] == [
        ("fail", "https://board.example/mcp: no answer within 0 s")
    ]


DOOR = decode(rig_doors.packed(b="b"))
GOOD = {"ahead_s": 0.2, "expires_s": 30 * 86400.0, "membership": "member", "has_push": True}


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (DoorCheck(unreachable="nobody"), []),
        (DoorCheck(**GOOD), ["pass", "pass", "pass"]),
        (DoorCheck(**{**GOOD, "expires_s": 3600.0}), ["warn", "pass", "pass"]),
        (DoorCheck(ahead_s=0.0, expires_s=-5.0, refused="401"), ["fail"]),
        (DoorCheck(**{**GOOD, "membership": None, "has_push": False}), ["pass", "fail"]),
        (DoorCheck(**{**GOOD, "membership": None, "unlisted": "503", "has_push": False}), ["pass", "fail"]),
        (DoorCheck(**{**GOOD, "has_push": False, "no_push": "cap"}), ["pass", "pass", "warn"]),
    ],
)
def test_a_door(check: DoorCheck, expected: list[str]) -> None:
    assert results(doctor_doors.one_door(Examined(DOOR, check))) == expected


@pytest.mark.parametrize(
    ("ahead", "text"), [(90.0, "90 s ahead of"), (-120.0, "120 s behind"), (2.0, "agrees with"), (None, "nobody")]
)
def test_the_clock_is_that_of_the_central(ahead: float | None, text: str) -> None:
    check = DoorCheck(unreachable="nobody answers" if ahead is None else None, ahead_s=ahead)
    found = list(doctor_doors.centrals([Examined(DOOR, check), Examined(DOOR, check)]))
    assert text in found[-1].text
    assert len(found) == (1 if ahead is None else 2)  # one Central, however many doors


@pytest.mark.parametrize(
    ("wanted", "runs", "result", "action"),
    [
        (False, False, "warn", "pursersctl local up"),
        (True, False, "warn", "pursersctl start"),
        (True, True, "fail", "pursersctl local status"),
    ],
)
def test_a_local_board_that_is_silent(
    who: Patient, monkeypatch: pytest.MonkeyPatch, wanted: bool, runs: bool, result: str, action: str
) -> None:
    url = local_url(28731)
    assert doctor_local.silence(who) is None
    save(record_file(Path(api.state_folder(who.place.home), "local")), Record(board="b", port=28731, wanted=wanted))
    monkeypatch.setattr("pursers_shim.dial.daemon_pid", lambda _: 1 if runs else None)
    local = doctor_local.silence(who)
    silent = DoorCheck(unreachable="nobody answers", ahead_s=None)
    here = Examined(dataclasses.replace(DOOR, url=url), silent)
    (found, other) = doctor_doors.centrals([here, Examined(DOOR, silent)], local)
    assert (found.result, found.action, found.subject) == (result, action, url)
    assert (other.result, other.action) == ("fail", "Start it, or repair the way to it")


def test_programs_of_another_version_or_none(tmp_path: Path, who: Patient) -> None:
    for name, words in (("pursersd", "pursersd 0.0.9"), ("pursers-shim", "")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{f'echo {words}' if words else 'exit 1'}\n")
        program.chmod(0o755)
    own = str(Path(sys.executable).parent)
    found = list(doctor_install.programs(Patient(who.place, {"PATH": f"{tmp_path}:{own}"}, "/")))
    assert [(finding.subject, finding.result) for finding in found] == [("pursersd", "fail"), ("pursers-shim", "fail")]
    assert "is version 0.0.9" in found[0].text
    assert found[1].text == f"{tmp_path}/pursers-shim does not run"
    (hidden,) = doctor_install.programs(Patient(who.place, {"PATH": "/nowhere"}, "/"))
    assert (hidden.result, f"{own}/pursers-shim" in (hidden.action or "")) == ("warn", True)
    (sound,) = doctor_install.programs(Patient(who.place, {"PATH": own}, "/"))
    assert (sound.result, f"hosts start {own}/pursers-shim" in sound.text) == ("pass", True)


def test_every_package_that_we_depend_on_is_looked_for() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    wanted = {re.split("[<>=]", text)[0] for text in project["dependencies"]}
    assert wanted - {"pyjwt"} < set(doctor_install.NEEDED)
    assert "jwt" in doctor_install.NEEDED


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("0::/user.slice/user-7.slice/user@7.service/app.slice/app-editor-9.scope\n", "app-editor-9.scope"),
        ("9:name=systemd:/user.slice/session-3.scope\n8:pids:/other.slice\n0::/\n", "session-3.scope"),
        ("0::/docker/abc\n", None),
        ("0::/\n", None),
        (None, None),
    ],
)
def test_the_control_group_of_whoever_started_the_daemon(
    monkeypatch: pytest.MonkeyPatch, text: str | None, group: str | None
) -> None:
    def read(path: Path, **_: str) -> str:
        assert str(path) == "/proc/42/cgroup"
        if text is None:
            raise FileNotFoundError
        return text

    monkeypatch.setattr(Path, "read_text", read)
    assert doctor_daemon.control_group(42) == group


def test_who_started_the_daemon_and_what_ends_it_is_said(who: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_daemon, "control_group", lambda _: "app-editor-9.scope")
    said = {}
    for by in ("auto", "user", "service"):
        daemon = msgspec.structs.replace(STATUS.daemon, started_by=by)
        answer = msgspec.json.encode(msgspec.structs.replace(STATUS, daemon=daemon))
        monkeypatch.setattr(doctor_daemon.client, "ask", lambda *_, answer=answer: answer)
        (said[by],) = (found.text for found in doctor_daemon.daemon(who) if found.subject == "started_by")
    assert "a shim started it, no service. It is in the control group app-editor-9.scope" in said["auto"]
    assert "a person" in said["user"]
    assert "control group" not in said["service"]


@pytest.mark.parametrize(("runs", "lingers", "says"), [(True, False, True), (True, True, False), (False, False, False)])
def test_lingering_that_is_off_is_told_where_no_service_is_installed(
    who: Patient, monkeypatch: pytest.MonkeyPatch, runs: bool, lingers: bool, says: bool
) -> None:
    monkeypatch.setattr(doctor_service, "runs", lambda _: runs)
    monkeypatch.setattr("pursersctl.service_managers.Systemd.lingers", lambda _: lingers)
    monkeypatch.setattr("sys.platform", "linux")
    (*_, found) = doctor_service.installed(who)
    assert ("lingering is off" in found.text) == says


def test_few_descriptors(who: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_daemon.resource, "getrlimit", lambda _: (256, 256))
    assert [finding.result for finding in doctor_daemon.daemon(who)] == ["pass", "warn"]


def test_nothing_of_it_made_a_file(who: Patient, home: Home) -> None:
    for _, check in command.CHECKS:
        list(check(who))
    assert list(home.folder.rglob("*")) == []
    assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700


def test_a_host_that_starts_something_else_and_one_that_starts_the_shim(who: Patient, home: Home) -> None:
    user = home.folder / "user"
    (user / ".gemini").mkdir(parents=True)
    file = user / ".gemini" / "settings.json"
    file.write_text('{"mcpServers": {}}')
    found = {finding.subject: finding for finding in doctor_hosts.hosts(who)}
    assert found[None].result == "warn"
    assert found[None].action.startswith("pursersctl hosts add ")
    assert home.ctl("hosts", "add", "gemini-cli", "--force").returncode == 0
    found = {finding.subject: finding for finding in doctor_hosts.hosts(who)}
    assert (found["gemini-cli"].result, found["gemini-cli"].text) == ("pass", "Gemini CLI starts the shim")
    file.write_text("{ broken")
    found = {finding.subject: finding for finding in doctor_hosts.hosts(who)}
    assert found["gemini-cli"].result == "fail"
    assert str(file) in found["gemini-cli"].text


def test_a_service_that_is_not_installed_is_no_fault(who: Patient) -> None:
    (finding,) = doctor_service.installed(who)
    assert finding.result == "pass"
    assert "no " in finding.text
    assert "shims start the daemon" in finding.text
