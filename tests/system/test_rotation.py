"""A stored door is replaced or forgotten while conversations use it, some of them in the middle of a wait."""

from pathlib import Path

import door_state
import pytest

from pursersd.rules.door import decode
from pursersd.state.doors import Doors
from rig.central import WORKER_SCOPE, Central
from rig.daemon import Home
from rig.doors import Issuer, kid_of, packed
from rig.shim import ShimProcess
from rig.wait import until
from system.scene import PATIENCE, Caller, Json, ask, journal, rows, until_blocking, until_listed


class Office:
    """A board that is reached through a stored door, and its operator."""

    def __init__(self, central: Central, home: Home, board: str) -> None:
        self.central = central
        self.home = home
        self.board = board
        self.issuer = Issuer(central)
        self.issuer.admit(board)
        self.path = home.folder / "state" / "doors.json"
        self.door = self.issuer.issue(board)
        Doors(Path(self.path.parent)).store(decode(self.door))

    def conversation(self, name: str, **environment: str) -> ShimProcess:
        """A conversation that knows nothing but its name."""
        shim = self.home.shim(self.home.environment(agent=name, role=None, extra=environment))
        shim.initialize()
        return shim

    def waiting(self, *names: str) -> list[Caller]:
        """Conversations that wait, each from the end of the journal."""
        callers = [Caller(self.conversation(name), self.central.head(self.board)) for name in names]
        for caller in callers:
            caller.arm()
        until_blocking(self.home, len(callers))
        return callers

    def rotate(self) -> str:
        """A door with another key; the one that is stored is refused from now on."""
        self.door = self.issuer.rotate(self.board)
        return self.door

    def replace_behind_our_back(self) -> None:
        """Store the newest door as the bridge does, without a word to the daemon."""
        door_state.store(self.path, self.door, rotate=True)

    def make(self, title: str) -> str:
        return self.central.create_ticket(self.board, title)

    def credentials(self) -> list[str]:
        """What the daemon's pools are called, without fingerprints."""
        return [central["credential"].partition("/")[0] for central in ask(self.home, "status")["centrals"]]

    def until_only_the_new_one_is_used(self, waits: int) -> None:
        until(lambda: self.credentials() == [kid_of(self.door)], PATIENCE, "the old pool is closed")
        until_blocking(self.home, waits)


@pytest.fixture
def office(central: Central, home: Home, board: str) -> Office:
    home.start_daemon("--verbose")
    return Office(central, home, board)


def tickets(result: Json) -> list[str]:
    return [event["ticket_id"] for event in journal(result)]


def test_a_wait_goes_on_with_the_token_that_replaced_its_own(office: Office) -> None:
    # The seat that `join` takes declares what it can do, so the board gives its work to seats that do so, too.
    caller = Caller(office.conversation("ann", PURSERS_CAN_WORK="1"), office.central.head(office.board))
    wait = caller.arm()
    until_blocking(office.home, 1)
    conversation = rows(office.home)[0]["conversation"]
    done = office.home.ctl("join", "-", "--rotate", stdin=office.rotate())
    assert done.returncode == 0, done.stderr
    office.until_only_the_new_one_is_used(1)
    assert not wait.done
    assert office.central.streams() == 2, "those of the old token are closed"
    ticket = office.make("after the rotation")
    assert tickets(caller.take()) == [ticket]
    assert [row["conversation"] for row in rows(office.home)] == [conversation]
    caller.assert_once()


def test_a_token_that_central_refuses_is_looked_up_again(office: Office) -> None:
    ann, bob = callers = office.waiting("ann", "bob")
    office.rotate()
    office.replace_behind_our_back()
    assert office.credentials() == [kid_of(office.door).replace("-v2", "-v1")], "nobody has noticed yet"
    first = office.make("refused with the old token")
    for caller in callers:
        assert tickets(caller.take()) == [first]
        caller.arm()
    office.until_only_the_new_one_is_used(2)
    second = office.make("and all is well")
    assert [tickets(caller.take()) for caller in (ann, bob)] == [[second], [second]]
    for caller in callers:
        caller.assert_once()


def test_the_next_call_uses_what_is_stored_by_then(office: Office) -> None:
    (ann,) = office.waiting("ann")
    (before,) = ask(office.home, "status")["centrals"]
    ticket = office.make("first")
    assert tickets(ann.take()) == [ticket]
    board, central = office.board, office.central
    # Another token of the same principal; Central would go on taking the first one, too.
    token = central.mint(f"door:{board}:worker", WORKER_SCOPE, board, client_id=f"door-{board}-worker")
    office.door = packed(central.url, board, "worker", token)
    office.replace_behind_our_back()
    ann.arm(timeout_s=1)
    assert ann.take()["timed_out"]
    (after,) = ask(office.home, "status")["centrals"]
    assert before["credential"] != after["credential"]


def test_an_omitted_cursor_is_acknowledged_with_the_new_token(office: Office) -> None:
    office.make("before it came")
    ann = Caller(office.conversation("ann"))
    ann.arm()
    ann.take()
    ann.cursor = None
    ann.arm()
    until_blocking(office.home, 1)
    office.rotate()
    office.replace_behind_our_back()
    ticket = office.make("told once")
    assert tickets(ann.take()) == [ticket]
    ann.cursor = None
    ann.arm(timeout_s=1)
    assert journal(ann.take()) == []


def test_a_forgotten_door_is_used_no_more_until_it_is_stored_again(office: Office) -> None:
    (ann,) = office.waiting("ann")
    cursor = ann.cursor
    assert ann.wait is not None
    assert office.home.ctl("forget", "--board", office.board, "--role", "worker").stdout.startswith("forgot=yes")
    ended = ann.wait.result(PATIENCE)
    assert (ended["mode"], ended["new_seq"]) == ("error", cursor)
    assert ended["error"]["cause_class"] == "configuration"
    assert f"the stored door for board {office.board} and role worker was forgotten" in ended["error"]["detail"]
    assert ask(office.home, "status")["centrals"] == []
    until(lambda: office.central.streams() == 0, PATIENCE, "nothing is open with its token")
    Doors(office.path.parent).store(decode(office.door))
    ticket = office.make("again")
    ann.arm()
    assert tickets(ann.take()) == [ticket]


def test_another_door_does_not_move_a_conversation(office: Office, central: Central) -> None:
    (ann,) = office.waiting("ann")
    other = f"{office.board}-other"
    central.create_board(other)
    office.issuer.admit(other)
    assert office.home.ctl("join", office.issuer.issue(other), "--name", "bob").returncode == 0
    ticket = office.make("on the board where it began")
    assert tickets(ann.take()) == [ticket]
    ann.arm(timeout_s=1)
    assert ann.take()["timed_out"]
    until_listed(office.home, 1)
    assert rows(office.home)[0]["board"] == office.board


def test_a_file_that_cannot_be_read_takes_no_credential_away(office: Office) -> None:
    (ann,) = office.waiting("ann")
    office.path.write_text("{")
    ticket = office.make("all the same")
    assert tickets(ann.take()) == [ticket]
    ann.arm(timeout_s=1)
    assert ann.take()["timed_out"]


def test_a_token_file_is_read_again_when_its_token_is_refused(
    central: Central, home: Home, board: str, tmp_path: Path
) -> None:
    issuer = Issuer(central)
    issuer.admit(board)
    file = tmp_path / "token"

    def write(door: str) -> None:
        file.write_text(decode(door).token.reveal())

    write(issuer.issue(board))
    filed = {"ONBOARD_CENTRAL_TOKEN_FILE": str(file)}
    shim = home.shim(home.environment(central.url, None, board, "ann", extra=filed))
    shim.initialize()
    caller = Caller(shim, central.head(board))
    caller.arm()
    until_blocking(home, 1)
    write(issuer.rotate(board))
    ticket = central.create_ticket(board, "with the next token")
    assert tickets(caller.take()) == [ticket]
