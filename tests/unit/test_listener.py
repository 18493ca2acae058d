"""listener: who is there, whose link is the live one, and that nobody can stop the others."""

import errno
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from pursers_shim import wire
from pursersd import __version__, descriptors, listener
from rig import processes
from unit.running_app import RunningApp, hello, running, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that can be a shim's host."""
    with processes.idle() as child:
        yield child


async def works(daemon: RunningApp) -> None:
    async with daemon.control() as client:
        assert (await client.ask("ping"))["pid"] == os.getpid()


async def test_a_shim_is_welcomed_and_served() -> None:
    async with running() as daemon, daemon.shim() as (shim, greeting):
        conversation = greeting.pop("conversation")
        assert conversation.startswith("c-")
        assert greeting == {
            "pursers": "welcome",
            "protocol": wire.PROTOCOL[1],
            "version": __version__,
            "daemon_epoch": 1,
            "link_epoch": 1,
            "limits": {"line": wire.MAX_LINE},
        }
        await shim.shake_hands()
        await shim.request("x", "ping")
        assert (await shim.next())["id"] == "x"
        (row,) = await daemon.ps()
        assert (row["conversation"], row["state"], row["shim_pid"]) == (conversation, "idle", os.getpid())


async def test_lines_in_the_same_breath_as_the_hello_are_not_lost() -> None:
    async with running() as daemon, daemon.client() as shim:
        await shim.send(wire.encode(hello()) + b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,')
        assert (await shim.next())["pursers"] == "welcome"
        assert (await shim.next())["id"] == 1
        await shim.send(b'"method":"ping"}\n')
        assert (await shim.next())["id"] == 2


async def test_the_newest_link_of_a_conversation_is_the_live_one() -> None:
    async with running() as daemon, daemon.shim() as (old, first):
        resume = {"conversation": first["conversation"], "link_epoch": 1, "daemon_epoch": 1}
        async with daemon.shim(resume=resume) as (new, second):
            assert second["conversation"] == first["conversation"]
            assert second["link_epoch"] == 2
            assert await old.next() == {"jsonrpc": "2.0", "method": "pursers/fence", "params": {"link_epoch": 2}}
            assert await old.next() is None
            await new.shake_hands()
            (row,) = await daemon.ps()
            assert (row["state"], row["link_epoch"]) == ("idle", 2)

    # and the end of that link, not of the older one, detaches it


async def test_a_lost_link_detaches_and_a_new_one_goes_on() -> None:
    async with running() as daemon:
        async with daemon.shim() as (_, first):
            pass

        async def detached() -> bool:
            return [row["state"] for row in await daemon.ps()] == ["detached"]

        await until(detached)
        async with daemon.shim(resume={"conversation": first["conversation"], "link_epoch": 1}) as (shim, second):
            assert (second["conversation"], second["link_epoch"]) == (first["conversation"], 2)
            await shim.shake_hands()


async def test_after_a_restart_the_shim_keeps_its_conversation() -> None:
    async with running() as daemon, daemon.shim(resume={"conversation": "c-old", "link_epoch": 4}) as (_, greeting):
        assert (greeting["conversation"], greeting["link_epoch"]) == ("c-old", 5)


async def test_a_dead_host_ends_the_shim(child: "subprocess.Popen[bytes]") -> None:
    """Its pipe may be held open by somebody else: it must be told."""
    started = wire.process_start(child.pid)
    async with running() as daemon, daemon.shim(ppid=child.pid, parent_started=started) as (shim, _):
        await shim.shake_hands()
        child.kill()
        assert await shim.next() == {"jsonrpc": "2.0", "method": "pursers/exit", "params": {"reason": "the host ended"}}
        assert await shim.next() is None
        await until(lambda: _nobody(daemon))


async def _nobody(daemon: RunningApp) -> bool:
    return not await daemon.ps()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"GET / HTTP/1.1\r\n", "bad_hello"),
        (b"{}\n", "bad_hello"),
        (wire.encode({**hello(), "mood": "x"}).replace(b'"x"', b"[" * 100_000), "bad_hello"),
        (b"x" * (wire.MAX_LINE + 1) + b"\n", "bad_hello"),
        (wire.encode({**hello(), "protocol": [90, 99]}), "protocol"),
        (wire.encode({**hello(), "pid": 2**22 + 1}), "bad_hello"),
        (wire.encode({**hello(), "pid": 1}), "bad_hello"),
        (wire.encode({**hello(), "started": 1}), "bad_hello"),
    ],
    ids=["http", "empty", "deep", "long", "protocol", "no process", "init", "reused pid"],
)
async def test_a_bad_hello_is_refused_with_words(line: bytes, code: str) -> None:
    async with running() as daemon:
        async with daemon.client() as client:
            await client.send(line)
            refusal = await client.next()
            assert (refusal["pursers"], refusal["code"], refusal["retryable"]) == ("refuse", code, False)
            assert len(refusal["text"]) > 20
            assert await client.next() is None
        await works(daemon)


async def test_a_shim_of_another_container_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_peer_pid", lambda connection: 0)
    async with running() as daemon, daemon.shim(pid=2**22 + 1) as (_, refusal):
        assert refusal["code"] == "bad_hello"
        assert "another container" in refusal["text"]
        assert "set PURSERSD_HOME there" in refusal["text"]


async def test_silence_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "HELLO_TIMEOUT", 0.02)
    async with running() as daemon:
        async with daemon.client() as client:
            await client.send(b'{"pursers":"hel')
            assert await client.next() is None
        monkeypatch.undo()
        await works(daemon)


async def test_a_client_that_goes_at_once_harms_nobody() -> None:
    async with running() as daemon, daemon.shim() as (shim, _):
        for data in (b"", b"x", wire.encode(hello())):
            async with daemon.client() as client:
                await client.send(data)
        await shim.shake_hands()
        await works(daemon)


async def test_another_user_gets_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as daemon:
        with monkeypatch.context() as other:
            other.setattr(listener, "peer_uid", lambda connection: os.getuid() + 1)
            async with daemon.client() as client:
                await client.say(hello())
                assert await client.next() is None
        assert await daemon.ps() == []


async def test_a_defect_in_one_connection_is_logged_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as daemon, daemon.shim() as (shim, _):
        with monkeypatch.context() as broken:
            broken.setattr(listener, "resolve", lambda *arguments: 1 / 0)
            async with daemon.client() as client:
                await client.say(hello())
                assert await client.next() is None
        assert "a connection failed" in caplog.text
        await shim.shake_hands()
        await works(daemon)


async def problem(daemon: RunningApp, cwd: Path, **environ: str) -> str:
    """What a2a_wait says to a conversation with this environment."""
    async with daemon.shim(cwd=str(cwd), env={"ONBOARD_CENTRAL_URL": "http://127.0.0.1:1/mcp", **environ}) as (shim, _):
        await shim.shake_hands()
        await shim.request(1, "tools/call", name="project_registry_get", arguments={})
        return str((await shim.next())["result"]["content"][0]["text"])


async def test_a_relative_token_file_is_looked_for_where_the_shim_is(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("token-abc\n")
    async with running() as daemon:
        text = await problem(daemon, tmp_path, ONBOARD_CENTRAL_TOKEN_FILE="token")
        assert "unreachable" in text  # it got as far as Central
        assert "is not readable" in await problem(daemon, tmp_path / "elsewhere", ONBOARD_CENTRAL_TOKEN_FILE="token")


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
async def test_a_token_file_that_is_no_file_stops_nobody(tmp_path: Path, kind: str) -> None:
    """Opening a pipe waits for a writer: the whole daemon would."""
    path = tmp_path / "token"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path = Path("/dev/zero")
    async with running() as daemon:
        with anyio.fail_after(30):
            text = await problem(daemon, tmp_path, ONBOARD_CENTRAL_TOKEN_FILE=str(path))
        assert "ONBOARD_CENTRAL_TOKEN_FILE is not readable (not a regular file)" in text
        await works(daemon)


async def test_without_descriptors_for_another_conversation_it_is_refused_with_words_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running() as daemon, daemon.shim() as (shim, _):
        with monkeypatch.context() as short:
            short.setattr(descriptors, "RESERVE", 1_000_000)
            async with daemon.shim() as (_, refusal):
                assert (refusal["code"], refusal["retryable"]) == ("too_many", True)
                assert "Close chats that nobody uses" in refusal["text"]
            async with daemon.control() as client:
                status = await client.ask("status")
                assert "descriptors_short" in [warning["code"] for warning in status["warnings"]]
        await shim.shake_hands()
        async with daemon.shim() as (_, greeting):
            assert greeting["pursers"] == "welcome"


async def test_when_nothing_can_be_accepted_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listener, "ACCEPT_PAUSE", 0.01)
    failures = iter([errno.EMFILE, errno.ENFILE])
    accept = socket.socket.accept

    def short(connection: socket.socket) -> object:
        number = next(failures, None)
        if number is not None:
            raise OSError(number, os.strerror(number))
        return accept(connection)

    monkeypatch.setattr(socket.socket, "accept", short)
    async with running() as daemon:
        await works(daemon)
    assert caplog.text.count("no connection can be accepted") == 2
