"""Which command lines are bridges and shims: however they are started, and nothing that only names them."""

import pytest

from pursersd.rules.server_command import hosts_nobody, server_kind


@pytest.mark.parametrize(
    "words",
    [
        ["/usr/bin/python3", "/home/me/.local/bin/pursers-wait-bridge"],
        ["python", "-m", "pursers_wait_server"],
        ["python3.12", "-Im", "pursers_wait_server"],
        ["python3.13t", "-X", "dev", "-W", "ignore", "-u", "/src/pursers_wait_server.py"],
        ["/home/me/.cache/uv/archive-v0/x/bin/python", "/home/me/.cache/uv/archive-v0/x/bin/pursers-wait-bridge"],
        ["/home/me/.local/pipx/venvs/p/bin/python", "/home/me/.local/bin/pursers-wait-bridge"],
        ["/opt/pursers-wait-bridge"],
        ["python", "-c", "from pursers_wait_server import main; main()"],
    ],
    ids=" ".join,
)
def test_bridges(words: list[str]) -> None:
    assert server_kind(words) == "bridge"
    assert hosts_nobody(words)


@pytest.mark.parametrize(
    "words",
    [
        ["/venv/bin/python3", "/venv/bin/pursers-shim"],
        ["python", "-m", "pursers_shim"],
        ["python", "-m", "pursers_shim.__main__"],
    ],
    ids=" ".join,
)
def test_shims(words: list[str]) -> None:
    assert server_kind(words) == "shim"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["python"],
        ["python", "-m"],
        ["python", "-c"],
        ["python", "-X"],
        ["python", "-c", "print('pursers_wait_server')"],
        ["grep", "pursers-wait-bridge"],
        ["vim", "/bin/pursers-shim"],
        ["uvx", "pursers-wait-bridge"],
        ["sh", "-c", "pursers-wait-bridge"],
        ["python", "/bin/pursers-wait-bridge", "join", "-"],
        ["python", "-m", "pursers_wait_server", "--version"],
        ["/bin/pursers-shim", "--help"],
        ["python", "/bin/pursers-wait-bridge-2"],
    ],
    ids=" ".join,
)
def test_nothing_else(words: list[str]) -> None:
    assert server_kind(words) is None


def test_the_daemon_is_nobodys_host() -> None:
    assert hosts_nobody(["/venv/bin/python", "-m", "pursersd", "--started-by", "auto"])
    assert not hosts_nobody(["claude"])
