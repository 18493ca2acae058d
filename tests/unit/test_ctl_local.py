"""pursersctl local: what it shows, compared with template files, and what it asks the daemon."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from pursersctl import errors, local, render_local
from pursersctl.render import plain, status
from pursersctl.table import Line
from pursersd import api
from rig.daemon import Home
from unit.ctl_daemon import ScriptedDaemon
from unit.ctl_samples import STATUS

DATA = Path(__file__).parents[1] / "data"

FAILING = api.LocalStatus(
    state="failing",
    board="local",
    url="http://127.0.0.1:28731/mcp",
    port=28731,
    pid=None,
    up_s=None,
    restarts=3,
    folder="/home/me/.local/state/pursersd/local",
    log="/home/me/.local/state/pursersd/local/central.log",
    last_error="Central ended at its start: sqlite3.DatabaseError: file is not a database",
    last_error_s=4.2,
    next_try_s=3.0,
)
RUNNING = msgspec.structs.replace(
    FAILING,
    state="running",
    pid=20500,
    up_s=7300.0,
    restarts=1,
    last_error="Central ended: it was ended by signal 9",
    next_try_s=None,
)
DOWN = msgspec.structs.replace(FAILING, state="down", restarts=0, last_error=None, last_error_s=None, next_try_s=None)
BOARD = api.LocalBoard(
    local=msgspec.structs.replace(RUNNING, last_error=None),
    doors=[
        api.LocalDoor(
            board="local", role="worker", kid="door-local-worker-v1", is_new=True, token_file="/f/worker.jwt"
        ),
        api.LocalDoor(
            board="local", role="reviewer", kid="door-local-reviewer-v1", is_new=False, token_file="/f/r.jwt"
        ),
    ],
    notes=["Doors for other boards are stored, too."],
)
GONE = api.LocalGone(
    local=DOWN,
    removed=["door local (worker) in /home/me/.pursers/wait-bridge", "/home/me/.local/state/pursersd/local/instance"],
    kept=["/home/me/.local/state/pursersd/local/notes.txt"],
)


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


def same_as(name: str, lines: list[Line]) -> None:
    assert plain(lines) == (DATA / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 120])
def test_status(width: int) -> None:
    pages = [render_local.status(shown, width) for shown in (FAILING, RUNNING, DOWN)]
    same_as(f"ctl_local_status_{width}.txt", [line for page in pages for line in (*page, ())])


def test_status_fits() -> None:
    text = plain(render_local.status(FAILING, 50))
    assert all(cell_len(line) <= 50 for line in text.splitlines() if "/" not in line)


def test_up_and_down() -> None:
    same_as("ctl_local_up.txt", [*render_local.up(BOARD), (), *render_local.gone(GONE)])


def test_nothing_there_yet() -> None:
    none = msgspec.structs.replace(DOWN, state="none", board=None)
    assert plain(render_local.status(none)) == "There is no local board. Make one with: pursersctl local up\n"


def test_up_asks_for_what_was_typed_and_notes_go_to_stderr(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers={"local_up": {"result": msgspec.to_builtins(BOARD)}}) as daemon:
        done = home.ctl("local", "up", "--board", "b", "--port", "28731")
        machine = home.ctl("local", "up", "--json")
        requests = [message for message in daemon.received() if "verb" in message]
    assert (done.returncode, done.stdout) == (0, plain(render_local.up(BOARD)))
    assert done.stderr == BOARD.notes[0] + "\n"
    assert json.loads(machine.stdout) == msgspec.to_builtins(BOARD)
    folder = str(home.folder / "state")
    assert [request["params"] for request in requests] == [
        {"folder": folder, "board": "b", "port": 28731},
        {"folder": folder, "board": None, "port": None},
    ]


@pytest.mark.parametrize("verb", ["up", "down"])
def test_nothing_is_deleted_without_a_word(home: Home, verb: str) -> None:
    with ScriptedDaemon(home.folder, answers={}) as daemon:
        done = home.ctl("local", verb, "--reset")
        assert daemon.received() == []
    assert (done.returncode, done.stdout) == (1, "")
    assert "--yes" in done.stderr


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "no\n", "yes please\n"])
def test_nothing_is_deleted_unless_that_is_said(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    typed = io.StringIO(answer)
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", typed)
    with pytest.raises(errors.Failed, match=r"^Nothing was deleted\.$"):
        local.confirm_deletion(yes=False)


@pytest.mark.parametrize("answer", ["y\n", "YES\n"])
def test_it_is_deleted_when_that_is_said(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    typed = io.StringIO(answer)
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", typed)
    local.confirm_deletion(yes=False)


def test_what_stands_in_the_way_is_named(home: Home) -> None:
    refusal = {"error": {"code": "local_missing", "text": "Install it with: pip install 'pursersd[local]'"}}
    with ScriptedDaemon(home.folder, answers={"local_up": refusal}):
        done = home.ctl("local", "up", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (1, "local_missing")
    assert done.stderr == "Install it with: pip install 'pursersd[local]'\n"


def test_the_daemons_page_has_the_local_board(home: Home) -> None:
    answer = msgspec.to_builtins(msgspec.structs.replace(STATUS, local=RUNNING))
    with ScriptedDaemon(home.folder, answers={"status": {"result": answer}}):
        assert home.ctl("status").stdout.endswith("\n\n" + plain(render_local.status(RUNNING, 80)))


def test_status_starts_nothing(home: Home) -> None:
    done = home.ctl("local", "status")
    assert (done.returncode, done.stdout) == (3, "")
    assert list(home.folder.iterdir()) == []


@pytest.mark.parametrize("options", [(), ("--reset", "--yes")])
def test_what_never_was_is_not_taken_down_by_a_new_daemon(home: Home, options: tuple[str, ...]) -> None:
    done = home.ctl("local", "down", *options)
    assert (done.returncode, done.stdout) == (0, "There is no local board.\n")
    answer = json.loads(home.ctl("local", "down", *options, "--json").stdout)
    assert (answer["local"]["state"], answer["local"]["folder"]) == ("none", str(home.folder / "state" / "local"))
    assert list(home.folder.iterdir()) == []


def test_a_daemon_that_stays_for_the_local_board_says_so() -> None:
    answers = [msgspec.structs.replace(STATUS, local=local) for local in (RUNNING, DOWN)]
    pages = [plain(status(answer, stopped=False, version="0.1.0")) for answer in answers]
    assert ["stays while the local board is up" in page for page in pages] == [True, False]
    assert ["ends when nobody needs it" in page for page in pages] == [False, True]
