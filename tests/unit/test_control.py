"""control: what pursersctl is told, over the daemon's own socket."""

import os

import msgspec
import pytest

from pursers_shim import wire
from pursersd import __version__, api
from unit.running_app import running

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_status_of_a_daemon_without_work() -> None:
    async with running(log_path="/somewhere/log", started_by="auto") as daemon, daemon.control() as client:
        status = msgspec.convert(await client.ask("status"), api.Status)
        assert (status.schema, status.centrals, status.conversations, status.warnings) == (1, [], 0, [])
        assert status.daemon.pid == os.getpid()
        assert status.daemon.version == __version__
        assert (status.daemon.epoch, status.daemon.state) == (1, "ready")
        assert (status.daemon.home, status.daemon.socket) == (daemon.place.home, daemon.place.socket)
        assert (status.daemon.log, status.daemon.started_by) == ("/somewhere/log", "auto")
        assert status.daemon.uptime_s >= 0
        assert status.daemon.rss_bytes > 0
        assert msgspec.convert(await client.ask("ping"), api.DaemonStatus).pid == os.getpid()


async def test_ps_has_a_row_per_conversation() -> None:
    async with running() as daemon, daemon.shim(), daemon.shim(), daemon.control() as client:
        listed = msgspec.convert(await client.ask("ps"), api.Ps)
        assert [(row.state, row.seat, row.shim_pid) for row in listed.seats] == [("idle", None, os.getpid())] * 2
        assert msgspec.convert(await client.ask("status"), api.Status).conversations == 2


async def test_stats_name_the_file_of_each_conversation() -> None:
    other = {"env": {"PURSERS_BRIDGE_STATS": "named.json"}, "cwd": "/somewhere"}
    async with running() as daemon, daemon.shim(), daemon.shim(), daemon.shim(**other), daemon.control() as client:
        found = await client.ask("stats")
        own = f"{daemon.place.home}/state/bridge-stats.json"
        assert [(file["path"], file["writes"], file["trouble"]) for file in found["files"]] == [
            ("/somewhere/named.json", 0, None),
            (own, 0, None),
        ]


async def test_looking_changes_nothing() -> None:
    async with running() as daemon, daemon.shim(), daemon.control() as client:
        for _ in range(3):
            for verb in ("ps", "status", "stats", "ping"):
                await client.ask(verb)
        status = msgspec.convert(await client.ask("status"), api.Status)
        assert (status.daemon.state, status.centrals, status.conversations) == ("ready", [], 1)


async def test_an_unknown_verb_says_what_to_do() -> None:
    async with running() as daemon, daemon.control() as client:
        refused = await client.ask("dance")
        assert refused["code"] == "unknown_verb"
        assert "pursersctl restart" in refused["text"]


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"[]",
        b"{}",
        b'{"id":"7","verb":"ps"}',
        b'{"id":7,"verb":1}',
        b'{"id":7,"verb":"ps","params":[]}',
        b'{"id":7,"verb":"ps","params":{"x":' + b"[" * 100_000,
        b"x" * (wire.MAX_LINE + 1),
    ],
    ids=lambda line: line[:30].decode(),
)
async def test_a_bad_request_is_answered_and_the_link_goes_on(line: bytes) -> None:
    async with running() as daemon, daemon.control() as client:
        await client.send(line + b"\n")
        answer = await client.next()
        assert (answer["id"], answer["error"]["code"]) == (0, "bad_request")
        assert (await client.ask("ping"))["pid"] == os.getpid()


async def test_requests_with_the_hello_and_in_one_piece() -> None:
    async with running() as daemon, daemon.client() as client:
        greeting = wire.encode({"pursers": "hello", "protocol": list(wire.PROTOCOL), "role": "control"})
        await client.send(greeting + b'{"id":1,"verb":"ps"}\n{"id":2,"verb":"ping"}\n')
        assert (await client.next())["pursers"] == "welcome"
        assert [(await client.next())["id"] for _ in range(2)] == [1, 2]


async def test_a_join_that_is_none_is_refused_without_a_word_of_it() -> None:
    async with running() as daemon, daemon.control() as client:
        for params in ({}, {"door": 7, "folder": "/"}, {"door": "prs1.secret", "folder": "/", "rotate": "yes"}):
            refused = await client.ask("join", **params)
            assert refused["code"] == "bad_request"
            assert "secret" not in refused["text"]
        refused = await client.ask("join", door="prs1.secret", folder=daemon.place.home)
        assert (refused["code"], refused["text"]) == ("doors", "door is not valid base64url JSON")


async def test_the_change_of_doors_of_nobody() -> None:
    async with running() as daemon, daemon.shim(), daemon.control() as client:
        assert await client.ask("doors_changed") == {"conversations": 0, "schema": api.SCHEMA}


def test_a_request_does_not_show_its_door() -> None:
    request = api.Request(id=1, verb="join", params={"door": "prs1.secret"})
    assert "secret" not in repr(request)
    assert "secret" not in repr(api.Join(door="prs1.secret", folder="/"))


async def test_stop_is_answered_and_then_happens() -> None:
    async with running() as daemon, daemon.shim() as (shim, _), daemon.control() as client:
        stopping = msgspec.convert(await client.ask("stop", reason="restart"), api.Stopping)
        assert (stopping.pid, stopping.conversations) == (os.getpid(), 1)
        assert await shim.next() == {"jsonrpc": "2.0", "method": "pursers/drain", "params": {"reason": "restart"}}
        assert await shim.next() is None
        assert await client.next() is None
        await daemon.left.wait()


async def test_one_conversation_in_detail() -> None:
    async with running() as daemon, daemon.shim() as (_, greeting), daemon.control() as client:
        name = greeting["conversation"]
        for which in (name, name[:5], str(os.getpid())):
            found = msgspec.convert(await client.ask("conversation", which=which), api.ConversationStatus)
            assert (found.row.conversation, found.seats, found.problems, found.notes) == (name, [], [], [])
            origins = {setting.name: (setting.value, setting.origin, setting.origin_name) for setting in found.settings}
            assert origins["board"] == ("b", "variable", "ONBOARD_BOARD_ID")
            assert origins["role"] == (None, "default", None)
            assert origins["url"][1] == "default"
            assert "token-a" not in repr(found)
        async with daemon.shim():
            for which, code in (
                ("c-", "ambiguous_conversation"),
                ("x", "unknown_conversation"),
                ("", "unknown_conversation"),
            ):
                assert (await client.ask("conversation", which=which))["code"] == code
