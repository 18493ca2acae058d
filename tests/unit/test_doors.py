"""state/doors: a file that several programs change at once, one of them the bridge."""

import fcntl
import json
import os
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import door_state
import pytest

from pursersd.errors import DoorsError
from pursersd.rules.door import decode
from pursersd.rules.door_file import serialise
from pursersd.state.doors import DoorFolders, Doors, folder
from rig import processes
from rig.doors import packed, token

BRIDGE = str(processes.BIN / "pursers-wait-bridge")


def bridge(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a verb of the real bridge on a folder."""
    return subprocess.run(
        [BRIDGE, *arguments, "--state-dir", str(folder)],
        env=processes.environment({"HOME": str(folder)}),
        capture_output=True,
        text=True,
        timeout=30,
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def kept(doors: Doors) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(door.board, door.role, door.seat_names_used) for door in doors.load()]


@pytest.fixture
def doors(tmp_path: Path) -> Doors:
    return Doors(tmp_path / "state", hostname=lambda: "box.example", lock_timeout=0.2)


def test_no_folder_means_no_doors_and_reading_makes_none(doors: Doors) -> None:
    assert doors.load() == ()
    assert not doors.forget("b", "worker")
    assert not doors.folder.exists()


def test_a_door_is_stored_with_its_name(doors: Doors) -> None:
    door = doors.store(decode(packed()), name="me")
    assert doors.load() == (door,)
    assert door.seat_names_used == ("me",)
    assert door.joined_at.endswith("+00:00")
    assert sorted(os.listdir(doors.folder)) == ["doors.json", "doors.json.lock"]
    assert (mode(doors.folder), mode(doors.folder / "doors.json"), mode(doors.folder / "doors.json.lock")) == (
        0o700,
        0o600,
        0o600,
    )


def test_a_folder_that_is_open_to_others_is_closed(doors: Doors) -> None:
    doors.folder.mkdir(mode=0o755)
    doors.store(decode(packed()))
    assert mode(doors.folder) == 0o700


def test_a_folder_for_everybody_is_refused(doors: Doors) -> None:
    doors.folder.mkdir()
    os.chmod(doors.folder, 0o1777)
    with pytest.raises(DoorsError, match="not yours alone"):
        doors.store(decode(packed()))
    assert mode(doors.folder) == 0o1777
    assert os.listdir(doors.folder) == []


def test_names_are_reserved(doors: Doors) -> None:
    doors.store(decode(packed()))
    assert [doors.reserve("b", "worker"), doors.reserve("b", "worker"), doors.reserve("b", "worker", "me")] == [
        "worker-box-1",
        "worker-box-2",
        "me",
    ]
    assert kept(doors) == [("b", "worker", ("worker-box-1", "worker-box-2", "me"))]


def test_a_refused_change_leaves_the_file_as_it_was(doors: Doors) -> None:
    doors.store(decode(packed(t=token("k-1"))))
    before = doors.stamp
    for change in (
        lambda: doors.store(decode(packed(t=token("k-2")))),
        lambda: doors.store(decode(packed(r="reviewer")), rotate=True),
        lambda: doors.store(decode(packed(t=token("k-1"))), name="-"),
        lambda: doors.reserve("b", "reviewer"),
    ):
        with pytest.raises(DoorsError):
            change()
    assert not doors.forget("c", "worker")
    assert doors.stamp == before


def test_a_door_is_forgotten(doors: Doors) -> None:
    doors.store(decode(packed()))
    doors.store(decode(packed(r="reviewer")))
    assert doors.forget("b", "worker")
    assert not doors.forget("b", "worker")
    assert kept(doors) == [("b", "reviewer", ())]


def test_coordinating_doors_stay_out_of_the_file_of_the_bridge(doors: Doors) -> None:
    doors.store(decode(packed()))
    doors.store(replace(decode(packed(r="named")), role="coordinator"))
    assert [door.role for door in doors.load()] == ["worker", "coordinator"]
    assert [door["r"] for door in door_state.load(doors.folder / "doors.json")["doors"]] == ["worker"]
    assert doors.forget("b", "coordinator")
    assert [door.role for door in doors.load()] == ["worker"]


def test_it_is_read_again_only_when_another_program_changed_it(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    path = doors.folder / "doors.json"
    doors.store(decode(packed()))
    doors.load()
    stamp = doors.stamp
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", None)
        assert len(doors.load()) == 1
    assert doors.stamp == stamp
    door_state.reserve_name(path, "b", "worker", "somebody")
    assert doors.stamp != stamp
    assert kept(doors) == [("b", "worker", ("somebody",))]
    path.unlink()
    assert doors.load() == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe{\x00}\x00", "doors.json is unreadable or invalid: "),
        (b"{", "doors.json is unreadable or invalid: "),
        (b'{"schema_version":2}', "doors.json has an unsupported schema: "),
        (b'{"schema_version":1,"doors":[1]}', "doors.json contains an invalid entry: "),
    ],
)
def test_a_bad_file_is_named_and_never_written_over(doors: Doors, content: bytes, words: str) -> None:
    path = doors.folder / "doors.json"
    doors.folder.mkdir()
    path.write_bytes(content)
    for use in (doors.load, lambda: doors.store(decode(packed())), lambda: doors.forget("b", "worker")):
        with pytest.raises(DoorsError) as caught:
            use()
        assert str(caught.value).startswith(words)
        assert str(path) in str(caught.value)
        assert "Repair it, or move it away" in str(caught.value)
    assert path.read_bytes() == content


def test_something_else_than_a_file_is_refused_at_once(doors: Doors) -> None:
    doors.folder.mkdir()
    os.mkfifo(doors.folder / "doors.json")
    with pytest.raises(DoorsError, match=r"unreadable or invalid \(not a regular file\)"):
        doors.load()


def test_a_file_without_end_is_not_read(doors: Doors) -> None:
    doors.folder.mkdir()
    with (doors.folder / "doors.json").open("wb") as file:
        file.truncate(5 * 1024 * 1024)
    with pytest.raises(DoorsError, match="unreadable or invalid"):
        doors.load()


def test_a_text_of_a_token_is_in_no_error(doors: Doors) -> None:
    secret = token("k-1")
    doors.store(decode(packed(t=secret)))
    path = doors.folder / "doors.json"
    path.write_text(path.read_text()[:-3])
    with pytest.raises(DoorsError) as caught:
        doors.load()
    error: BaseException | None = caught.value
    while error is not None:
        assert secret not in f"{error} {vars(error)}"
        error = error.__cause__
    assert caught.value.__suppress_context__


def test_what_a_crash_left_is_written_over(doors: Doors) -> None:
    doors.folder.mkdir()
    (doors.folder / "doors.json.new").write_text("half a d")
    doors.store(decode(packed()))
    assert sorted(os.listdir(doors.folder)) == ["doors.json", "doors.json.lock"]


def test_a_write_that_fails_leaves_the_old_file(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    doors.store(decode(packed()))
    before = (doors.folder / "doors.json").read_bytes()

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DoorsError, match=r"doors\.json cannot be written: No space left on device\. "):
        doors.reserve("b", "worker")
    assert (doors.folder / "doors.json").read_bytes() == before
    assert sorted(os.listdir(doors.folder)) == ["doors.json", "doors.json.lock"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DoorsError, match="cannot be written: Not a directory"):
        Doors(tmp_path / "file" / "state").store(decode(packed()))


def test_a_lock_that_is_never_given_back(doors: Doors) -> None:
    doors.store(decode(packed()))
    with (doors.folder / "doors.json.lock").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DoorsError, match=r"Another program has held .*doors\.json\.lock for more than"):
            doors.reserve("b", "worker")
        assert len(doors.load()) == 1, "reading needs no lock"
    assert doors.reserve("b", "worker") == "worker-box-1"


def test_a_lock_that_is_given_back_is_waited_for(tmp_path: Path) -> None:
    doors = Doors(tmp_path, lock_timeout=30.0)
    doors.store(decode(packed()))
    with (tmp_path / "doors.json.lock").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        release = threading.Timer(0.1, fcntl.flock, (other, fcntl.LOCK_UN))
        release.start()
        assert doors.reserve("b", "worker", "me") == "me"
        release.join()


CONTENDER = """
import sys
from pathlib import Path
import door_state
from pursersd.state.doors import Doors
folder, who, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
for number in range(rounds):
    if who == "bridge":
        door_state.reserve_name(folder / "doors.json", "b", "worker")
    else:
        Doors(folder, lock_timeout=30.0).reserve("b", "worker")
"""


def test_processes_that_contend_lose_nothing(tmp_path: Path) -> None:
    rounds, contenders = 15, ("bridge", "daemon", "bridge", "daemon")
    Doors(tmp_path).store(decode(packed()))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", CONTENDER, str(tmp_path), who, str(rounds)],
            env=processes.environment(),
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        for who in contenders
    ]
    try:
        for process in running:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.close()
        assert [process.wait(60) for process in running] == [0] * len(contenders)
    finally:
        for process in running:
            processes.stop(process, ())
    (door,) = Doors(tmp_path).load()
    assert len(door.seat_names_used) == len(set(door.seat_names_used)) == rounds * len(contenders)


def test_the_bridge_reads_and_changes_what_we_wrote(doors: Doors) -> None:
    doors.store(decode(packed(t=token("k-1", 1900000000))), name="me")
    doors.store(decode(packed(r="reviewer", t=token("k-2", 1900000001))))
    shown = bridge(doors.folder, "status")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == (
        "push_mode=push\n"
        "board=b role=reviewer kid=k-2 exp=1900000001 seat_names_used=-\n"
        "board=b role=worker kid=k-1 exp=1900000000 seat_names_used=me\n"
    )
    assert bridge(doors.folder, "forget", "--board", "b", "--role", "reviewer").stdout.startswith("forgot=yes")
    assert kept(doors) == [("b", "worker", ("me",))]


def test_we_read_what_the_bridge_wrote_and_write_it_back_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "doors.json"
    # Its join stores the door before it asks Central, so none is needed here.
    refused = bridge(tmp_path, "join", packed(u="http://127.0.0.1:1/mcp"), "--name", "me")
    assert refused.returncode == 1
    written = path.read_text()
    doors = Doors(tmp_path)
    assert kept(doors) == [("b", "worker", ("me",))]
    assert serialise(doors.load()) == written
    doors.store(decode(packed(b="c")))
    doors.forget("c", "worker")
    assert path.read_text() == written
    assert json.loads(written)["schema_version"] == 1


@pytest.mark.parametrize(
    ("environ", "home", "expected"),
    [
        ({"HOME": "/home/me"}, None, "/home/me/.pursers/wait-bridge"),
        ({"HOME": "/home/me", "PURSERS_BRIDGE_STATE_DIR": " "}, None, "/home/me/.pursers/wait-bridge"),
        ({"HOME": "/home/me", "PURSERS_BRIDGE_STATE_DIR": " /a/../b "}, None, "/b"),
        ({"HOME": "/home/me", "PURSERS_BRIDGE_STATE_DIR": "~/d"}, None, "/home/me/d"),
        ({"HOME": "/home/me", "PURSERS_BRIDGE_STATE_DIR": "~"}, None, "/home/me"),
        ({"HOME": "/home/me", "PURSERS_BRIDGE_STATE_DIR": "d"}, None, "/work/d"),
        ({"HOME": "/home/me", "PURSERS_BRIDGE_STATE_DIR": "/d"}, "/private", "/private/state"),
    ],
)
def test_where_the_doors_lie(environ: dict[str, str], home: str | None, expected: str) -> None:
    assert folder(environ, home, "/work") == Path(expected)


def test_without_a_home_the_system_knows_it() -> None:
    assert folder({}, None) == Path(os.path.expanduser("~"), ".pursers", "wait-bridge")


def test_a_folder_has_one_object_as_long_as_somebody_has_it() -> None:
    folders = DoorFolders("/home")
    first, second = folders.of({}, "/"), folders.of({}, "/elsewhere")
    assert first is second
    assert repr(folders) == "<DoorFolders 1>"
    del first, second
    assert repr(folders) == "<DoorFolders 0>"
