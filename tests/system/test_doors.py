"""`pursersctl join`, `doors` and `forget` with a real Central and doors of the real door tool."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rig.central import Central, free_port
from rig.daemon import Home
from rig.doors import Issuer, kid_of, packed, token, token_of
from rig.proxy import Proxy
from rig.wait import until
from system.scene import Caller, ask, until_blocking

HOST = socket.gethostname().split(".")[0].lower()
IN_USE = "seat name already active under this principal; choose another name or pass allow_takeover=true"


@pytest.fixture(scope="module")
def issuer(central: Central) -> Issuer:
    return Issuer(central)


@pytest.fixture(scope="module")
def shared() -> Iterator[Home]:
    """A home for the tests that need a fresh board but no fresh daemon."""
    with Home() as home:
        home.start_daemon()
        yield home


@pytest.fixture
def home(shared: Home) -> Home:
    (stored := shared.folder / "state" / "doors.json").unlink(missing_ok=True)
    stored.with_name("coordinator-doors.json").unlink(missing_ok=True)
    return shared


def stored(home: Home) -> list[dict[str, Any]]:
    doors: list[dict[str, Any]] = json.loads(home.ctl("doors", "--json").stdout)["doors"]
    return doors


def seats(central: Central, board: str) -> dict[str, dict[str, Any]]:
    """The board's seats by name, but for the owner's."""
    found = central.call(central.admin, "board_snapshot", board_id=board, agent_name="boss")["agents"]
    return {agent["agent_name"]: agent for agent in found if agent["agent_name"] != "boss"}


def refusal(home: Home, *arguments: str, **more: str) -> str:
    """What a command that fails says; it prints nothing else."""
    done = home.ctl(*arguments, **more)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("pursersctl: ")
    return done.stderr.removeprefix("pursersctl: ").strip()


def test_a_fresh_join_and_what_it_leaves(central: Central, home: Home, board: str, issuer: Issuer) -> None:
    issuer.admit(board)
    door = issuer.issue(board)
    done = home.ctl("join", door, PURSERS_HOST="zed", PURSERS_SKILLS="rust, c", PURSERS_CAN_REVIEW="1")
    assert (done.returncode, done.stderr) == (0, "")
    name = f"worker-{HOST}-1"
    assert done.stdout == f"board={board}\nrole=worker\nseat_name={name}\npush=yes\nverifier=accepted\n"
    (kept,) = stored(home)
    assert (kept["kid"], kept["seat_names_used"]) == (kid_of(door), [name])
    capabilities = seats(central, board)[name]["capabilities"]
    assert (capabilities["host"], capabilities["skills"]) == ("zed", ["c", "rust"])
    assert (capabilities["can_work"], capabilities["can_review"]) == (True, False)
    # The seat that was probed is in no stream of ours, and its Central is let go of.
    until(lambda: central.streams() == 0, message="the probe's stream is closed")
    assert ask(home, "status")["centrals"] == []


def test_a_door_comes_from_stdin(home: Home, board: str, issuer: Issuer) -> None:
    issuer.admit(board)
    done = home.ctl("join", "-", "--name", "me", stdin=f"\n{issuer.issue(board)}\n")
    assert done.stdout.splitlines()[2] == "seat_name=me"
    assert home.ctl("doors").stdout.splitlines()[1].endswith(" seat_names_used=me")


def test_the_same_door_again_is_another_seat(home: Home, board: str, issuer: Issuer) -> None:
    issuer.admit(board)
    door = issuer.issue(board)
    names = [home.ctl("join", door).stdout.splitlines()[2] for _ in range(2)]
    assert names == [f"seat_name=worker-{HOST}-{n}" for n in (1, 2)]


def test_who_comes_next_sits_on_the_seat_that_was_joined(home: Home, board: str, issuer: Issuer) -> None:
    issuer.admit(board)
    door = issuer.issue(board)
    for arguments in ((), ("--name", "me")):
        assert home.ctl("join", door, *arguments).returncode == 0
    shims = [home.shim(home.environment(agent=agent, role=None)) for agent in (None, "me", None)]
    for shim in shims:
        shim.initialize()
        assert shim.call_tool("a2a_wait", {"timeout_s": 1, "since_seq": 0})["mode"] != "error"
    found = {row["shim_pid"]: row["seat"] for row in ask(home, "ps")["seats"]}
    assert [found[shim.pid] for shim in shims] == [f"worker-{HOST}-1", "me", f"worker-{HOST}-2"]
    for shim in shims:
        shim.close()
    until(lambda: ask(home, "ps")["seats"] == [], message="they are gone")


def test_a_newcomer_works_with_one_pasted_door(central: Central, home: Home, board: str, issuer: Issuer) -> None:
    issuer.admit(board)
    assert home.ctl("join", "-", stdin=issuer.issue(board)).returncode == 0
    shim = home.shim(home.environment(role=None, extra={"PURSERS_HOST": "claude-code"}))
    shim.initialize()
    caller = Caller(shim, central.head(board))
    caller.arm()
    until_blocking(home, 1)
    ticket = central.create_ticket(board, "for whoever can work")
    # The seat declared at its join that it can work; whoever sits on it now is offered work.
    (event,) = caller.take()["events"]
    assert (event["ticket_id"], event["kind"], event["reason"]) == (ticket, "ticket_offered", "offer")
    shim.close()
    until(lambda: ask(home, "ps")["seats"] == [], message="it is gone")


def test_a_name_in_use_is_refused_in_the_words_of_central(home: Home, board: str, issuer: Issuer) -> None:
    issuer.admit(board)
    door = issuer.issue(board)
    home.ctl("join", door, "--name", "me")
    before = stored(home)
    assert refusal(home, "join", door, "--name", "me") == IN_USE
    assert stored(home) == before


def test_an_automatic_name_in_use_elsewhere_is_passed_over(
    home: Home, board: str, issuer: Issuer, tmp_path: Path
) -> None:
    issuer.admit(board)
    door = issuer.issue(board)
    home.ctl("join", door, "--state-dir", str(tmp_path))
    assert home.ctl("join", door).stdout.splitlines()[2] == f"seat_name=worker-{HOST}-2"


def test_rotation(home: Home, board: str, issuer: Issuer) -> None:
    issuer.admit(board)
    old = issuer.issue(board)
    assert refusal(home, "join", old, "--rotate") == "--rotate requires an existing door for the same board and role"
    assert home.ctl("join", old, "--name", "me").returncode == 0
    new = issuer.rotate(board)
    assert refusal(home, "join", new) == "a door already exists for this board and role; use --rotate"
    assert refusal(home, "join", old, "--name", "other").startswith("Central does not accept the token of this door")
    assert home.ctl("join", new, "--rotate", "--name", "again").returncode == 0
    (kept,) = stored(home)
    assert (kept["kid"], kept["seat_names_used"]) == (kid_of(new), ["me", "again"])


def test_a_join_that_central_refuses_leaves_nothing(central: Central, home: Home, board: str, issuer: Issuer) -> None:
    assert refusal(home, "join", issuer.issue(board)) == "board access denied: invite required"
    assert refusal(home, "join", packed(central.url, board)).startswith(
        "Central does not accept the token of this door"
    )
    nowhere = f"http://127.0.0.1:{free_port()}/mcp"
    assert refusal(home, "join", packed(nowhere, board)).startswith(f"Central is unreachable at {nowhere}. ")
    assert stored(home) == []
    assert seats(central, board) == {}


def test_a_door_for_no_board_founds_none(central: Central, home: Home) -> None:
    boards = central.board_count()
    door = packed(central.url, "no-such-board", "worker", central.mint("somebody", "board:read board:write"))
    assert "'no-such-board' is not one of this credential's boards" in refusal(home, "join", door)
    assert central.board_count() == boards


def test_a_seat_whose_door_cannot_be_kept_is_taken_back(
    central: Central, home: Home, board: str, issuer: Issuer, tmp_path: Path
) -> None:
    issuer.admit(board)
    folder = tmp_path / "doors"
    folder.mkdir()
    (folder / "doors.json.new").mkdir()  # in the way of the write, and of nothing before it
    arguments = ("join", issuer.issue(board), "--name", "me", "--state-dir", str(folder))
    assert "doors.json cannot be written" in refusal(home, *arguments)
    assert seats(central, board) == {}
    assert home.ctl("doors", "--state-dir", str(folder)).stdout == "push_mode=push\n"
    (folder / "doors.json.new").rmdir()
    assert home.ctl(*arguments).returncode == 0


def test_a_daemon_that_dies_in_the_middle_leaves_nothing_half(
    central: Central, board: str, issuer: Issuer, proxy: Proxy
) -> None:
    issuer.admit(board)
    door = packed(proxy.url, board, "worker", token_of(issuer.issue(board)))
    proxy.hold("board_join")
    with Home() as home, ThreadPoolExecutor() as pool:
        daemon = home.start_daemon()
        joining = pool.submit(home.ctl, "join", door, "--name", "me")
        until(lambda: proxy.holding("board_join") == 1, message="Central is about to be asked")
        daemon.kill()
        done = joining.result(30)
        assert (done.returncode, done.stdout) == (3, "")
        assert home.ctl("doors").stdout == "push_mode=push\n"
        assert not (home.folder / "state" / "doors.json").exists()
        proxy.release("board_join")
        assert home.ctl("start").returncode == 0
        assert home.ctl("join", door, "--name", "you").returncode == 0


def test_a_lost_answer_stores_nothing(central: Central, home: Home, board: str, issuer: Issuer, proxy: Proxy) -> None:
    issuer.admit(board)
    door = packed(proxy.url, board, "worker", token_of(issuer.issue(board)))
    proxy.cut_after("board_join")
    assert refusal(home, "join", door).startswith(f"The connection to Central at {proxy.url} was lost")
    assert stored(home) == []
    assert proxy.count("board_join") == 1, "a repetition would collide with itself"
    assert home.ctl("join", door).stdout.splitlines()[2] == f"seat_name=worker-{HOST}-2"


def test_a_seat_that_gets_no_stream(home: Home, board: str, issuer: Issuer, proxy: Proxy) -> None:
    issuer.admit(board)
    proxy.deny(f"board://{board}/journal")
    done = home.ctl("join", packed(proxy.url, board, "worker", token_of(issuer.issue(board))))
    assert (done.returncode, done.stdout.splitlines()[3]) == (0, "push=no")


def test_a_reviewer(central: Central, home: Home, board: str, issuer: Issuer) -> None:
    issuer.admit(board, "reviewer")
    assert home.ctl("join", issuer.issue(board, "reviewer")).stdout.splitlines()[1] == "role=reviewer"
    capabilities = seats(central, board)[f"reviewer-{HOST}-1"]["capabilities"]
    assert (capabilities["can_work"], capabilities["can_review"]) == (False, True)


@pytest.mark.parametrize(
    ("scope", "arguments", "role", "is_shared"),
    [
        ("board:read board:write board:coordinate", (), "worker", True),
        ("board:read board:write board:coordinate", ("--role", "coordinator"), "coordinator", False),
        ("board:read board:coordinate", (), "coordinator", False),
        ("board:read board:coordinate", ("--role", "orchestrator"), "orchestrator", False),
    ],
)
def test_a_named_door(
    central: Central,
    home: Home,
    board: str,
    issuer: Issuer,
    scope: str,
    arguments: tuple[str, ...],
    role: str,
    is_shared: bool,
) -> None:
    central.admit(board, "lead", "member", "lead")
    done = home.ctl("join", issuer.named(board, "lead", scope), "--name", "lead", *arguments)
    assert done.stdout == f"board={board}\nrole={role}\nseat_name=lead\npush=yes\nverifier=accepted\n"
    assert seats(central, board)["lead"]["role"] == role
    assert [(door["board"], door["role"]) for door in stored(home)] == [(board, role)]
    assert (home.folder / "state" / "doors.json").exists() == is_shared
    assert home.ctl("forget", "--board", board, "--role", role).stdout == f"forgot=yes board={board} role={role}\n"
    assert stored(home) == []


def test_the_role_of_another_door_cannot_be_chosen(home: Home) -> None:
    text = "--role is for named doors; this one is for the role worker"
    assert refusal(home, "join", packed(), "--role", "reviewer") == text
    assert refusal(home, "join", packed(), "--role", "king").startswith("--role must be worker, ")


BAD = [
    (("prs1.e30",), "door string JSON must contain exactly u, b, r, and t"),
    (("",), "door must use the prs1.<base64url-json> format"),
    ((packed(), "--name", "a b"), "--name must be a safe 1-80 character identifier"),
    ((packed("ftp://localhost/"),), "door URL must be an http or https URL"),
    ((packed("http://me@localhost/"),), "door URL must not include user information"),
    ((packed("https://central.invalid/mcp"),), "remote door URL requires --allow-remote confirmation"),
    ((packed(t=token(pursers_board="c")),), "door board does not match its token board restriction"),
]


def test_a_bad_door_starts_no_daemon() -> None:
    with Home() as home:
        for arguments, text in BAD:
            assert refusal(home, "join", *arguments) == text
        assert home.daemons() == []
        assert [path.name for path in home.folder.iterdir()] == []


def test_a_bad_setting_is_refused_before_central_is_asked(
    central: Central, home: Home, board: str, issuer: Issuer
) -> None:
    issuer.admit(board)
    door = issuer.issue(board)
    assert refusal(home, "join", door, PURSERS_TIER_MAX="4").startswith("PURSERS_TIER_MAX must be 1, 2, or 3")
    instance = {"ONBOARD_CENTRAL_INSTANCE_ID": f"CI-{'0' * 64}"}
    assert refusal(home, "join", door, **instance).startswith("Central instance mismatch")
    assert stored(home) == []
    assert seats(central, board) == {}


def test_join_starts_a_daemon_where_a_shim_may(central: Central, board: str, issuer: Issuer) -> None:
    issuer.admit(board)
    door = issuer.issue(board)
    with Home() as home:
        off = home.ctl("join", door, PURSERSD_AUTOSTART="0")
        assert (off.returncode, off.stdout) == (3, "")
        assert home.daemons() == []
        assert home.ctl("join", door, "--name", "me").returncode == 0
        assert ask(home, "status")["daemon"]["started_by"] == "auto"
        home.ctl("stop")
        until(lambda: home.daemons() == [], message="the stopped daemon is gone")
        stopped = home.ctl("join", door, "--name", "you")
        assert stopped.returncode == 3
        assert "It was stopped with pursersctl stop" in stopped.stderr
        assert home.daemons() == [], "no other one was started"


def test_doors_and_forget_need_no_daemon_and_start_none() -> None:
    with Home() as home:
        assert home.ctl("doors", PURSERS_WAIT_MODE="POLL").stdout == "push_mode=poll\n"
        for _ in range(2):
            done = home.ctl("forget", "--board", "b", "--role", "worker")
            assert (done.returncode, done.stdout, done.stderr) == (0, "forgot=no board=b role=worker\n", "")
        assert home.daemons() == []
        assert [path.name for path in home.folder.iterdir()] == []


def test_a_bad_file_is_shown_as_such(home: Home, board: str, issuer: Issuer) -> None:
    issuer.admit(board)
    file = home.folder / "state" / "doors.json"
    file.write_text("{}")
    for arguments in (("doors",), ("forget", "--board", board, "--role", "worker"), ("join", issuer.issue(board))):
        assert refusal(home, *arguments).startswith(f"doors.json has an unsupported schema: see {file}. ")
    assert json.loads(home.ctl("doors", "--json").stdout)["error"]["code"] == "doors"
    assert file.read_text() == "{}"
