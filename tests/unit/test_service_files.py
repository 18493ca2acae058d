"""The files of the service: what systemd and launchd make of them, and how they are compared, shown and put in place."""

import os
import plistlib
import subprocess
import sys
from pathlib import Path

import pytest

from pursers_shim import service
from pursers_shim.paths import Place
from pursersctl import printed
from pursersctl import service as commands
from pursersctl.errors import Failed
from pursersctl.render import plain
from pursersctl.service_files import File, Programs, agent, program_in, programs, units
from pursersctl.service_folders import MadeFolders
from pursersctl.service_managers import Launchd, State, Systemd, ask

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
ANALYZE = "/usr/bin/systemd-analyze"
USERS = Place("/tmp/pursersd-1000", None)
ODD = Place('/srv/a "b" %c\\d/run', '/srv/a "b" %c\\d')
FOUND = Programs("/opt/pursersd/bin/pursersd", "/opt/pursersd/bin/pursersctl")


@pytest.mark.parametrize("kind", ["socket", "service"])
def test_the_units_are_those_that_were_agreed(kind: str) -> None:
    (file,) = (file for file in units(USERS, FOUND, Path("/u")) if file.path.suffix == f".{kind}")
    assert file.path == Path(f"/u/pursersd.{kind}")
    assert file.text == (DATA / f"service_{kind}.txt").read_text(encoding="utf-8")


def test_the_agent_is_the_one_that_was_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(
        "pursersd.api.log_file", lambda home: f"{home or '/Users/me/Library/Logs/pursersd'}/pursersd.log"
    )
    file = agent(USERS, FOUND, Path("/a"), is_shared=False)
    assert file.path == Path("/a/local.pursersd.plist")
    assert file.text == (DATA / "service_plist.txt").read_text(encoding="utf-8")
    job = plistlib.loads(file.text.encode())
    # The rules of restart that do not loop for ever: neither holds after a clean end.
    assert job["KeepAlive"] == {"Crashed": True, "SuccessfulExit": False}
    assert job["ProgramArguments"] == [FOUND.daemon, "--started-by", "service"]
    assert "PURSERSD_HOME" not in job["EnvironmentVariables"]
    private = plistlib.loads(agent(ODD, FOUND, Path("/a"), is_shared=False).text.encode())
    assert private["EnvironmentVariables"]["PURSERSD_HOME"] == ODD.home
    shared = plistlib.loads(agent(USERS, FOUND, Path("/a"), is_shared=True).text.encode())
    assert shared["StandardErrorPath"] == "/dev/null"


@pytest.mark.skipif(not os.access(ANALYZE, os.X_OK), reason=f"{ANALYZE} is not installed")
@pytest.mark.parametrize("place", [USERS, ODD], ids=["the user's", "one with an odd path"])
def test_systemd_finds_nothing_wrong(tmp_path: Path, place: Place) -> None:
    made = []
    for program in ("a pursersd", "pursersctl"):
        path = tmp_path / program
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        made.append(str(path))
    folder = tmp_path / "units"
    for file in units(place, Programs(*made), folder):
        file.write()
    paths = sorted(str(path) for path in folder.iterdir())
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        [ANALYZE, "verify", "--user", "--man=no", *paths], env=environ, capture_output=True, text=True, timeout=60
    )
    ours = [line for line in done.stderr.splitlines() if "pursersd" in line]
    assert (done.returncode, ours) == (0, [])


def test_an_odd_path_is_the_same_for_systemd_and_for_us() -> None:
    socket, unit = units(ODD, Programs('/x y/"d"', "/x y/c"), Path("/u"))
    assert 'ListenStream=/srv/a "b" %%c\\d/run/pursersd.sock\n' in socket.text
    assert 'Environment="PURSERSD_HOME=/srv/a \\"b\\" %%c\\\\d"\n' in unit.text
    assert 'ExecStart="/x y/\\"d\\"" --started-by service\n' in unit.text
    assert program_in(units(ODD, Programs("/x y/d%", "/x y/c"), Path("/u"))[1].text) == "/x y/d%"
    names = {service.name(Place(f"{home}/run", home)) for home in ("/a/b", "/a-b", "/a_b", "/a/b/c", "/a b")}
    assert len(names) == 5


def test_programs_lie_beside_the_one_that_runs(tmp_path: Path) -> None:
    for name in ("pursersd", "pursersctl"):
        (tmp_path / name).touch(mode=0o755)
    link = tmp_path / "bin"
    link.symlink_to(tmp_path)
    assert programs(str(link / "pursersctl")) == Programs(str(link / "pursersd"), str(link / "pursersctl"))
    assert programs("pursersctl").daemon.endswith("/bin/pursersd")


def test_a_file_is_written_in_one_step_and_taken_away(tmp_path: Path) -> None:
    file = File(tmp_path / "config" / "systemd" / "user" / "a.socket", "text\n")
    assert file.state == "missing"
    assert file.shown() == f"{file.path} (new):\n  text\n"
    file.write()
    assert (file.state, file.shown()) == ("as rendered", f"{file.path}: as it should be\n")
    assert [path.name for path in file.path.parent.iterdir()] == ["a.socket"]
    file.path.write_text("other\n")
    assert file.state == "differs"
    assert "  -other\n  +text\n" in file.shown()
    assert file.remove()
    assert not file.remove()


def test_only_folders_that_were_made_are_taken_away_again(tmp_path: Path) -> None:
    (tmp_path / "config" / "systemd").mkdir(parents=True)
    for _ in range(2):  # the second install makes nothing
        for name in ("a.socket", "a.service"):
            file = File(tmp_path / "config" / "systemd" / "user" / name, "")
            MadeFolders(str(tmp_path / "state"), "a").expect(file.path)
            file.write()
    inner = tmp_path / "config" / "systemd" / "user" / "inner" / "a.socket"
    MadeFolders(str(tmp_path / "state"), "a").expect(inner)  # and somebody else takes it away
    for path in file.path.parent.iterdir():
        path.unlink()
    MadeFolders(str(tmp_path / "state"), "a").remove()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["config", "state", "systemd"]
    MadeFolders(str(tmp_path / "state"), "a").remove()


def test_a_folder_with_anything_else_in_it_stays(tmp_path: Path) -> None:
    file = File(tmp_path / "systemd" / "user" / "a.socket", "")
    made = MadeFolders(str(tmp_path / "state"), "a")
    made.expect(file.path)
    file.write()
    (tmp_path / "systemd" / "other").touch()
    file.remove()
    made.remove()
    assert sorted(path.name for path in (tmp_path / "systemd").iterdir()) == ["other"]


def test_a_note_that_cannot_be_written_is_said_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(Failed, match=r"Cannot write .*/a-folders.json: "):
        MadeFolders(str(tmp_path / "state"), "a").expect(tmp_path / "user" / "a.socket")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "a-folders.json").write_text("{")
    MadeFolders(str(tmp_path / "damaged"), "a").remove()
    assert list((tmp_path / "damaged").iterdir()) == []


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "user").touch()
    with pytest.raises(Failed, match=r"Cannot write .*user/a.socket: "):
        File(tmp_path / "user" / "a.socket", "").write()


# --- who is asked ---


def test_systemd_is_asked_where_a_user_manager_runs(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    environ = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "PATH": str(tmp_path / "bin")}
    assert service.start_command(USERS, environ) is None
    for file in units(USERS, FOUND, Path(service.unit_folders(environ)[0])):
        file.write()
    assert "There is no systemctl here" in str(Systemd(USERS, environ).unavailable())
    (tmp_path / "bin" / "systemctl").touch(mode=0o755)
    assert service.start_command(USERS, environ) is None  # nobody to ask
    assert "No systemd user manager runs for you" in str(Systemd(USERS, environ).unavailable())
    (tmp_path / "run" / "systemd").mkdir(parents=True)
    (tmp_path / "run" / "systemd" / "private").touch()
    assert Systemd(USERS, environ).unavailable() is None
    systemctl = str(tmp_path / "bin" / "systemctl")
    assert service.start_command(USERS, environ) == [systemctl, "--user", "--no-block", "start", "pursersd.service"]
    assert service.start_command(ODD, environ) is None  # another instance is no service


class Mac:
    """A launchctl that notes what it is asked and knows of a job when it was told of one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "launchctl"
        self.program.write_text(
            f'#!/bin/sh\necho "$*" >> {folder}/calls\ncase $1 in\nbootstrap) touch {folder}/job;;\n'
            f"bootout) rm {folder}/job || exit 3;;\n"
            f'print) case $2 in */*/*) cat {folder}/job || exit 113;; esac;;\nesac\n[ ! -e {folder}/fail-"$1" ]\n'
        )
        self.program.chmod(0o755)

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mac:
    mac = Mac(tmp_path)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(service, "LAUNCHCTL", str(mac.program))
    return mac


def test_launchd_is_asked_in_order(mac: Mac, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    job = f"gui/{os.getuid()}/local.pursersd"
    ours = Launchd(USERS, environ)
    assert ours.unavailable() is None
    assert ours.state() == State(enabled=False, activity="inactive")
    (file,) = ours.files(FOUND, None)
    file.write()
    assert ours.is_ours(file.text)
    assert program_in(file.text) == FOUND.daemon
    for step in (*ours.before_start(), *ours.begin()):
        ask(step, environ)
    assert mac.calls()[2:] == [f"bootout {job}", f"enable {job}", f"bootstrap gui/{os.getuid()} {file.path}"]
    assert service.start_command(USERS, environ) == [str(mac.program), "kickstart", job]
    (tmp_path / "job").write_text(
        f"{job} = {{\n\tstate = running\n\tpid = 4711\n\tlast exit code = (never exited)\n}}\n"
    )
    assert ours.state() == State(enabled=True, activity="running", pid=4711)
    (tmp_path / "job").write_text(f"{job} = {{\n\tstate = not running\n\tlast exit code = 78: EX_CONFIG\n}}\n")
    assert ours.state() == State(enabled=True, activity="failed", detail="exit code 78: EX_CONFIG")
    for step in (*ours.before_removal(), *ours.after_removal()):
        ask(step, environ)
    assert not (tmp_path / "job").exists()


def test_launchd_refuses_in_its_own_words_or_has_no_domain(mac: Mac, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    ours = Launchd(USERS, environ)
    (tmp_path / "fail-bootstrap").touch()
    enable, bootstrap = ours.begin()
    ask(enable, environ)
    with pytest.raises(Failed, match="bootstrap"):
        ask(bootstrap, environ)
    (tmp_path / "fail-print").touch()
    assert "log in at the screen" in str(ours.unavailable())


# --- what is shown ---

WELL = printed.ServiceStatus(
    manager="systemd",
    name="pursersd",
    installed=True,
    files=[
        printed.ServiceFile(path="/home/me/.config/systemd/user/pursersd.socket", state="as rendered"),
        printed.ServiceFile(path="/home/me/.config/systemd/user/pursersd.service", state="differs"),
    ],
    changes=["/home/me/.config/systemd/user/pursersd.service.d/override.conf"],
    enabled=True,
    activity="running",
    pid=20400,
    program="/home/me/.local/bin/pursersd",
    lingers=False,
    problems=[
        "/home/me/.config/systemd/user/pursersd.service is not what this version would write. "
        "Run: pursersctl service install"
    ],
)


@pytest.mark.parametrize("width", [80, 120])
def test_the_status_looks_as_agreed(width: int) -> None:
    text = plain(commands.rendered(WELL, width))
    assert text == (DATA / f"service_status_{width}.txt").read_text(encoding="utf-8")


def test_the_status_of_no_service_says_how_to_get_one() -> None:
    none = printed.ServiceStatus(
        manager="launchd",
        name="local.pursersd",
        installed=False,
        files=[printed.ServiceFile(path="/Users/me/Library/LaunchAgents/local.pursersd.plist", state="missing")],
        changes=[],
        enabled=None,
        activity="unknown",
        pid=None,
        program=None,
        lingers=None,
        problems=[],
    )
    text = plain(commands.rendered(none))
    assert text.startswith("local.pursersd  not installed\n")
    assert "Install it with: pursersctl service install" in text


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a source archive has no symbolic links")
def test_the_templates_are_shown_at_the_top_of_the_repository() -> None:
    for folder in ("systemd", "launchd"):
        assert (ROOT / folder).resolve() == ROOT / "cli" / "pursersctl" / folder
