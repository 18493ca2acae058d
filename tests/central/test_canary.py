"""The canary: every token has it, and it is found where a program of ours could show one."""

from collections.abc import Iterator

import pytest

from rig import canary
from rig.central import Central
from rig.daemon import Home


@pytest.fixture
def seen() -> Iterator[list[str]]:
    """Where the canary was seen; the test expects it there."""
    yield canary.leaks
    canary.leaks.clear()


def test_every_token_of_the_rig_has_it(central: Central) -> None:
    for lifetime in (-60, 3600):
        assert canary.is_in(central.mint("somebody", "board:read", "anywhere", lifetime).encode())
    assert not canary.is_in(b"eyJhbGciOiJSUzI1NiJ9")


def test_it_is_found_in_files_and_environments(seen: list[str], central: Central, home: Home) -> None:
    token = central.worker("ann", "alpha")
    (home.folder / "some.log").write_text(f"line\nBearer {token}\n")
    (home.folder / canary.DOORS[0]).write_text(token)
    with Home(SOMETHING=token) as careless:  # gives the daemon what it must not have
        started = careless.start_daemon()
        canary.look_at_home(careless.folder)
    canary.look_at_home(home.folder)
    found = " ".join(seen)
    assert "some.log" in found
    assert canary.DOORS[0] not in found
    assert f"environment of {started.pid}" in found


def test_it_is_found_in_what_a_shim_answers(seen: list[str], central: Central, home: Home) -> None:
    shim = home.shim()
    token = central.worker("ann", "alpha")
    shim.say({"jsonrpc": "2.0", "id": token, "method": "ping"})
    shim.initialize()
    assert any("a line to ShimProcess" in where for where in seen)
