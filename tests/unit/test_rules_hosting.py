"""Whether a server's host lives, told from who is around it: never an orphan as long as somebody may be its host."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.hosting import Process, Scene, verdict

SERVER = Process(50, 100.0, 40, "pursers-wait-bridge", is_server=True)
"""Of the group of its host, 40."""

INIT = Process(1, 0.0, 1, "systemd")
HOST = Process(40, 90.0, 40, "claude")
ORPHAN = Scene(SERVER, above=INIT)


def test_nobody_reads_it_and_init_has_adopted_it() -> None:
    found = verdict(ORPHAN)
    assert (found.host_lives, found.host) == (False, None)
    assert found.why == "its host has ended, adopted by systemd (pid 1): nobody reads its output"


@pytest.mark.parametrize("name", ["init", "process_api", "node"])
def test_whatever_has_pid_1_adopts(name: str) -> None:
    assert verdict(replace(ORPHAN, above=replace(INIT, name=name))).host_lives is False


def test_a_service_manager_of_the_user_adopts() -> None:
    assert verdict(replace(ORPHAN, above=Process(900, 1.0, 900, "systemd"))).host_lives is False
    assert verdict(replace(ORPHAN, above=Process(900, 1.0, 900, "containerd-shim-runc-v2"))).host_lives is False


def test_a_subreaper_of_any_name_is_told_by_the_group() -> None:
    assert verdict(replace(ORPHAN, above=Process(30, 1.0, 30, "python3"))).host_lives is False
    own = replace(SERVER, group=SERVER.pid)  # where it leads its own group, the one above may be the host
    assert verdict(Scene(own, above=Process(30, 1.0, 30, "python3"))).host_lives is True


def test_an_ancestor_that_is_younger_has_adopted_it() -> None:
    assert verdict(replace(ORPHAN, above=replace(HOST, started=101.0))).host_lives is False


def test_the_host_above_it_lives_however_idle_it_is() -> None:
    found = verdict(replace(ORPHAN, above=HOST))
    assert (found.host_lives, found.host, found.why) == (True, HOST, "its host claude (pid 40) lives")


def test_a_wrapper_with_a_group_of_its_own_hides_no_host() -> None:
    uv = Process(45, 95.0, 45, "uv")
    scene = Scene(replace(SERVER, group=45), wrappers=(uv,), above=HOST)
    assert verdict(scene).host_lives is True
    assert verdict(replace(scene, above=INIT)).host_lives is False
    assert verdict(replace(scene, above=INIT, readers=(HOST,))).host_lives is True


def test_a_runner_that_has_ended_hides_no_host() -> None:
    """The server has the group of the runner that is gone; the host, in another one, reads it."""
    scene = Scene(replace(SERVER, group=45), above=INIT, readers=(HOST,))
    assert verdict(replace(scene, by_runner=True)).host_lives is True
    assert verdict(scene).host_lives is False


def test_whoever_reads_it_may_be_its_host() -> None:
    found = verdict(replace(ORPHAN, readers=(HOST,)))
    assert (found.host_lives, found.why) == (True, "claude (pid 40) reads its output and may be its host")


@pytest.mark.parametrize(
    "reader",
    [replace(HOST, started=101.0), replace(HOST, group=77), replace(HOST, is_server=True)],
    ids=["younger", "of another group", "a server itself"],
)
def test_who_cannot_have_started_it_is_not_its_host(reader: Process) -> None:
    found = verdict(replace(ORPHAN, readers=(reader,)))
    assert found.host_lives is False
    assert "claude (pid 40) holds its output but did not start it" in found.why


def test_an_ancestor_that_reads_it_is_its_host_whatever_else() -> None:
    for above in (replace(HOST, group=77, started=101.0), replace(INIT, name="node")):
        assert verdict(Scene(SERVER, above=above, readers=(above,))).host_lives is True


def test_what_cannot_be_seen_leaves_it_alone() -> None:
    assert verdict(replace(ORPHAN, is_read_unseen=True)).host_lives is None
    assert verdict(replace(ORPHAN, on_terminal=True)).host_lives is None


def test_where_no_reader_can_be_told_the_group_decides() -> None:
    scene = replace(ORPHAN, readers=None)
    assert verdict(scene).host_lives is False
    assert verdict(replace(scene, group=(HOST,))).host_lives is None
    assert verdict(replace(scene, above=Process(30, 1.0, 30, "python3"))).host_lives is None
    assert verdict(replace(scene, group=(replace(HOST, started=101.0),))).host_lives is False
    assert verdict(replace(scene, group=(replace(HOST, is_server=True),))).host_lives is False
    assert verdict(replace(scene, server=replace(SERVER, group=SERVER.pid))).host_lives is None


PROCESSES = st.builds(
    Process,
    pid=st.integers(1, 5),
    started=st.sampled_from([0.0, 1.0, 2.0]),
    group=st.integers(1, 5),
    name=st.sampled_from(["claude", "systemd", "sh", "pursers-shim"]),
    is_server=st.booleans(),
)


@given(
    scene=st.builds(
        Scene,
        server=PROCESSES,
        wrappers=st.lists(PROCESSES, max_size=2).map(tuple),
        above=st.none() | PROCESSES,
        readers=st.none() | st.lists(PROCESSES, max_size=2).map(tuple),
        is_read_unseen=st.booleans(),
        on_terminal=st.booleans(),
        by_runner=st.booleans(),
        group=st.lists(PROCESSES, max_size=2).map(tuple),
    ),
    host=PROCESSES,
)
def test_a_reader_of_its_group_that_is_older_always_saves_it(scene: Scene, host: Process) -> None:
    """Whatever else is there."""
    outermost = scene.wrappers[-1] if scene.wrappers else scene.server
    reader = replace(host, started=outermost.started, group=outermost.group, is_server=False)
    assert verdict(replace(scene, readers=(*(scene.readers or ()), reader))).host_lives is not False
