"""Which of our programs a command line starts."""

import pytest

from pursersctl.hosts_argv import Start, start

BRIDGES = [
    "pursers-wait-bridge",
    "/home/me/.local/bin/pursers-wait-bridge",
    "uvx pursers-wait-bridge",
    "/opt/homebrew/bin/uvx pursers-wait-bridge==0.1.7",
    "uvx --from pursers-wait-bridge pursers-wait-bridge",
    "uvx --python 3.12 --from pursers-wait-bridge==0.1.7 pursers-wait-bridge",
    "uvx pursers-wait-bridge@latest",
    "uv tool run pursers-wait-bridge",
    "uv run --project /x pursers-wait-bridge",
    "uv run python -m pursers_wait_server",
    "pipx run pursers-wait-bridge",
    "pipx run --spec pursers-wait-bridge[x]>=0.1 pursers-wait-bridge",
    "python -m pursers_wait_server",
    "python3.12 -u -m pursers_wait_server",
    "/venv/bin/python /venv/bin/pursers-wait-bridge",
]
OTHERS = [
    "",
    "npx -y something",
    "uvx mcp-server-fetch",
    "uv run server.py",
    "python -m http.server",
    "python server.py pursers-wait-bridge",
    "python -m",
    "sh -c true",
    "env",
    "env A=b",
    "echo pursers-wait-bridge",
]


@pytest.mark.parametrize("line", BRIDGES)
def test_the_bridge(line: str) -> None:
    assert start(line.split()) == Start("bridge", (), ())


@pytest.mark.parametrize("line", BRIDGES)
def test_what_stands_before_it_is_kept(line: str) -> None:
    assert start(["env", "A=b", "C=", *line.split()]) == Start("bridge", ("env", "A=b", "C="), ())


@pytest.mark.parametrize(
    "line", ["pursers-shim", "/a/pursers-shim", "uvx --from pursersd pursers-shim", "python -m pursers_shim"]
)
def test_the_shim(line: str) -> None:
    assert start(line.split()) == Start("shim", (), ())


@pytest.mark.parametrize("line", OTHERS)
def test_something_else(line: str) -> None:
    assert start(line.split()) is None


def test_arguments_are_told() -> None:
    assert start(["uvx", "pursers-wait-bridge", "status"]) == Start("bridge", (), ("status",))


def test_a_shell_command_is_recognised_and_not_taken_apart() -> None:
    found = start(["/bin/sh", "-c", "TOKEN=$(pass x) exec pursers-wait-bridge"])
    assert found is not None
    assert (found.kind, found.in_shell) == ("bridge", True)
