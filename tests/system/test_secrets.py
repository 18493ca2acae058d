"""A bearer token is nowhere but in the memory of shim and daemon; and the log has a ceiling."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pursersd import log
from rig import processes
from rig.central import WORKER_SCOPE, Central, free_port
from rig.daemon import Home
from rig.shim import ShimProcess
from system.scene import Caller, until_blocking, until_listed


def secret_parts(token: str) -> list[bytes]:
    """What must not show: the token's claims and its signature (its head only names the key)."""
    return [part.encode() for part in token.split(".")[1:]]


def outputs(home: Home, shims: list[ShimProcess]) -> Iterator[tuple[str, bytes]]:
    """Everything that somebody could read: files, what the programs print, arguments, the daemon's environment."""
    for folder, _, names in os.walk(home.folder):
        for name in names:
            file = Path(folder, name)
            if file.is_file():  # not the socket
                yield str(file), file.read_bytes()
    for shim in shims:
        yield f"stderr of shim {shim.pid}", shim.stderr.encode()
    for process in processes.of_home(home.folder):
        yield f"arguments of {process.pid}", "\0".join(process.cmdline()).encode()
    for command in (["ps"], ["ps", "--json"], ["status"], ["status", "--json"], ["logs", "-n", "10000"]):
        done = home.ctl(*command)
        yield " ".join(command), (done.stdout + done.stderr).encode()
    for shim in shims:
        done = home.ctl("status", "--conversation", str(shim.pid))
        assert done.returncode == 0, done.stderr
        yield f"status of the conversation of shim {shim.pid}", (done.stdout + done.stderr).encode()
    daemon = psutil.Process(home.daemon_pid())
    yield "environment of the daemon", "\0".join(f"{k}={v}" for k, v in daemon.environ().items()).encode()


@pytest.mark.parametrize("started_by", ["a shim", "the user, to tell all"])
def test_no_file_no_output_and_no_argument_has_the_token(
    central: Central, home: Home, board: str, tmp_path: Path, started_by: str
) -> None:
    if started_by != "a shim":
        home.start_daemon("--verbose")
    good = central.worker("ann", board)
    expired = central.mint("ann", WORKER_SCOPE, board, lifetime=-60)
    file = tmp_path / "token"
    file.write_text(good)
    filed = {"ONBOARD_CENTRAL_TOKEN_FILE": str(file)}
    environments = [
        home.environment(central.url, good, board, "works"),
        home.environment(central.url, None, board, "from-a-file", extra=filed),
        home.environment(central.url, good, board, "token-as-boards", extra={"PURSERS_BOARDS": good}),
        home.environment(central.url, expired, board, "expired"),
        home.environment(f"http://127.0.0.1:{free_port()}/mcp", good, board, "nowhere"),
        home.environment(central.url, f"{good} {expired}", board, "two-tokens"),
        home.environment(central.url, good, good, "token-as-board"),
        home.environment(good, good, board, "token-as-address"),
    ]
    shims = [home.shim(environment) for environment in environments]
    for shim in shims:
        shim.initialize()
    until_listed(home, len(shims))
    callers = [Caller(shim) for shim in shims[:2]]
    for caller in callers:
        caller.arm()
    until_blocking(home, 2)
    ticket = central.create_ticket(board, "something happens")
    for caller in callers:
        assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
    told = [shim.call_tool("a2a_wait", {"timeout_s": 1})["error"] for shim in shims[3:]]
    secrets = [*secret_parts(good), *secret_parts(expired)]
    for where, text in [*outputs(home, shims), ("errors", str(told).encode())]:
        assert not [secret for secret in secrets if secret in text], where
    for log_file in (home.folder / "log").glob("*"):
        assert log_file.stat().st_mode & 0o077 == 0


def test_the_log_has_a_ceiling_and_keeps_no_credential(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_BYTES", 1000)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    file = tmp_path / "log" / "pursersd.log"
    try:
        log.set_up(str(file))
        for number in range(200):
            logging.getLogger("pursersd").info("line %d of eyJhbGciOi.eyJzdWIi.c2ln and prs1.ZG9vcg", number)
        root.handlers[0].close()
    finally:
        root.handlers[:], root.level = handlers, level
    files = sorted(file.parent.iterdir())
    assert len(files) == 1 + log.KEPT
    assert all(found.stat().st_size <= 1000 for found in files)
    assert "line 199 of <secret> and <secret>" in file.read_text()
    assert not any("eyJ" in found.read_text() or "prs1" in found.read_text() for found in files)
