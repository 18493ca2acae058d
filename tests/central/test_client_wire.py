"""central/client against a scripted HTTP peer: what a Central in trouble, or none at all, may answer."""

import gzip
import json
import os
import resource
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from central.feeding import TOKEN, client
from central.scripted_http import Reply, answer, event, peer, stream_head
from pursersd.central import client as module
from pursersd.errors import (
    CentralError,
    Exhausted,
    Overloaded,
    ProtocolRefused,
    Unreachable,
)

pytestmark = pytest.mark.anyio

RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"isError": False, "structuredContent": {"ok": True}, "content": []}}
WRONG_INSTANCE = "CI-" + "0" * 64


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def encoded(message: object) -> bytes:
    return json.dumps(message).encode()


def same(error: BaseException, kind: type[BaseException]) -> None:
    """Exactly this class: whoever catches them decides by it."""
    assert type(error) is kind, repr(error)


# --- a scripted peer --------------------------------------------------------------------------------------------------


async def fails(*replies: Reply) -> CentralError:
    """What a call to this peer fails with."""
    async with peer(*replies) as central, client(central.url) as ours:
        with pytest.raises(CentralError) as caught, anyio.fail_after(30):
            await ours.call("board_list", {})
        return caught.value


async def test_the_request_on_the_wire() -> None:
    async with peer(answer(encoded(RESULT))) as central, client(central.url, instance_id=WRONG_INSTANCE) as ours:
        assert await ours.call("board_status", {"board_id": "é"}, generation="g-1") == {"ok": True}
        (request,) = central.requests
    assert request.line == "POST /mcp HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["mcp-protocol-version"] == "2026-07-28"
    assert (request.headers["mcp-method"], request.headers["mcp-name"]) == ("tools/call", "board_status")
    assert "application/json" in request.headers["accept"]
    assert "text/event-stream" in request.headers["accept"]
    params = json.loads(request.body)["params"]
    assert params["arguments"] == {"board_id": "é"}
    assert params["_meta"] == {  # and no clientInfo, which costs Central a look at every board
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.onboard/expected-instance": WRONG_INSTANCE,
        "io.onboard/expected-generation": "g-1",
    }
    assert TOKEN not in request.body.decode()


@pytest.mark.parametrize(
    "status", ["500 Internal Server Error", "502 Bad Gateway", "503 Busy", "429 Too Many Requests"]
)
@pytest.mark.parametrize("body", [b"oops", encoded({"error": "busy"})], ids=["text", "json"])
async def test_a_server_in_trouble(status: str, body: bytes) -> None:
    error = await fails(answer(body, status, "application/json" if body.startswith(b"{") else "text/html"))
    same(error, Overloaded)
    assert isinstance(error, Overloaded)
    assert status[:3] in str(error)
    assert error.sent is (status[:3] != "429")  # what was refused for its number was not carried out


@pytest.mark.parametrize(
    ("asked", "seconds"), [("7", 7.0), ("0", 0.0), ("-1", None), ("Mon, 30 Nov 2026 14:00:00 GMT", None)]
)
async def test_a_server_that_says_when_to_come_again(asked: str, seconds: float | None) -> None:
    error = await fails(answer(b"busy", "503 Busy", "text/plain", **{"Retry-After": asked}))
    assert isinstance(error, Overloaded)
    assert error.retry_after_s == seconds


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize("kind", ["text/html", "application/json"])
async def test_a_redirect_is_not_followed_and_carries_no_token(status: str, kind: str) -> None:
    async with peer(answer(encoded(RESULT))) as elsewhere:
        error = await fails(answer(b"{}", status, kind, Location=elsewhere.url))
        same(error, ProtocolRefused)
        assert elsewhere.requests == []


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with peer(answer(b"from the proxy", "200 OK", "text/plain")) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://user:pass@127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        async with peer(answer(encoded(RESULT))) as central, client(central.url) as ours:
            assert await ours.call("board_list", {}) == {"ok": True}
        assert proxy.requests == []


async def test_a_netrc_of_the_user_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with peer(answer(encoded(RESULT))) as central, client(central.url) as ours:
        await ours.call("board_list", {})
        assert central.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


async def test_a_slow_call_that_turns_into_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pings keep it alive beyond the silence that would end it (central.md §2.1)."""
    monkeypatch.setattr(module, "SILENCE", 0.2)

    async def slowly(stream: SocketStream) -> None:
        await stream.send(stream_head())
        for _ in range(8):
            await anyio.sleep(0.05)  # Central's pace, made shorter
            await stream.send(b": ping - 2026\r\n\r\n")
        progress = encoded({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}})
        await stream.send(event(progress) + event(encoded(RESULT)))

    async with peer(slowly) as central, client(central.url) as ours:
        assert await ours.call("ticket_create", {}) == {"ok": True}


async def test_an_error_that_comes_as_a_stream() -> None:
    refusal = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Subscription limit reached"}}

    async def refuse(stream: SocketStream) -> None:
        await stream.send(stream_head() + event(encoded(refusal)))

    error = await fails(refuse)
    same(error, ProtocolRefused)
    assert (str(error), getattr(error, "rpc_code", 0)) == ("Subscription limit reached", -32603)


async def test_silence_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENCE", 0.1)

    async def nothing(stream: SocketStream) -> None:
        await stream.receive()

    async def half(stream: SocketStream) -> None:
        await stream.send(stream_head())
        await stream.receive()

    for silent in (nothing, half):
        error = await fails(silent)
        same(error, Unreachable)
        assert error.sent


LOST: dict[str, bytes] = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Ty",
    "half a body": answer(encoded(RESULT))[:-10],
    "no http": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a stream without its end": stream_head() + b": ping\r\n\r\n",
    "a stream with half an event": stream_head() + event(encoded(RESULT))[:-20],
}


@pytest.mark.parametrize("reply", LOST.values(), ids=LOST)
async def test_a_connection_that_breaks(reply: bytes) -> None:
    error = await fails(reply)
    same(error, Unreachable)
    assert error.sent


RUBBISH: dict[str, bytes] = {
    "text": answer(b"hello", kind="text/plain"),
    "no json": answer(b"{"),
    "not utf-8": answer(b'{"result":{"structuredContent":{"a":"\xff"}}}'),
    "a list": answer(b"[]"),
    "neither result nor error": answer(b"{}"),
    "an empty answer": answer(b"", "202 Accepted"),
    "a page": answer(b"<html>no such page</html>", "400 Bad Request", "text/html"),
    "somebody else's json": answer(encoded({"error": "not_found"}), "404 Not Found"),
    "wrong types": answer(encoded({"result": {"isError": "no", "content": 7}})),
    "rubbish in a stream": stream_head() + event(b"rubbish"),
    "a broken compression": answer(b"\x1f\x8b not gzip", Content_Encoding="gzip"),
}


@pytest.mark.parametrize("reply", RUBBISH.values(), ids=RUBBISH)
async def test_an_answer_that_is_not_mcp(reply: bytes) -> None:
    same(await fails(reply), ProtocolRefused)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("404 Not Found", Overloaded),  # or a proxy whose Central is away: a wait goes on, and the address is doubted
        ("405 Method Not Allowed", ProtocolRefused),
        ("308 Permanent Redirect", ProtocolRefused),
    ],
)
async def test_a_server_without_a_central_there_is_named_with_its_address(
    status: str, kind: type[CentralError]
) -> None:
    async with peer(answer(b"", status, "text/plain")) as server, client(server.url) as ours:
        with pytest.raises(kind, match=f"HTTP {status[:3]}. Is {server.url} Central's address?"):
            await ours.call("board_list", {})


async def test_compressed_answers_are_read() -> None:
    packed = answer(gzip.compress(encoded(RESULT)), Content_Encoding="gzip")
    async with peer(packed) as central, client(central.url) as ours:
        assert await ours.call("board_list", {}) == {"ok": True}


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "http://[::1/mcp",
        "http://a..b/mcp",
        "http://" + "x" * 300 + "/mcp",
        "http://%00/",
        "http://\u2488.com/",
    ],
)
async def test_a_url_that_is_none(url: str) -> None:
    try:
        async with client(url) as ours:
            with pytest.raises(CentralError):
                await ours.call("board_list", {})
    except ValueError:
        pytest.fail("an error that is not ours")


async def heard(*frames: bytes) -> tuple[list[str], CentralError | None]:
    """The cues of a stream of these frames, and how it ended."""
    uris: list[str] = []

    async def play(stream: SocketStream) -> None:
        await stream.send(stream_head() + b"".join(frames))

    async with peer(play) as central, client(central.url) as ours:
        try:
            async with ours.listen(["board://b/journal"]) as cues:
                async for uri in cues:
                    uris.append(uri)
        except CentralError as error:
            return uris, error
    return uris, None


ACK = event(encoded({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}}))


def cue(uri: object) -> bytes:
    params = {"uri": uri, "_meta": {"io.modelcontextprotocol/subscriptionId": "1"}}
    return event(encoded({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}))


async def test_every_cue_is_told_also_a_repeated_one() -> None:
    other = event(encoded({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    over = event(encoded({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}}))
    uris, error = await heard(ACK, cue("a"), b": ping\r\n\r\n", cue("a"), other, cue("b"), over, cue("too late"))
    assert uris == ["a", "a", "b"]
    assert error is None  # a normal end: cues were dropped


async def test_a_cut_stream_is_not_a_normal_end() -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = ACK + cue("a")

    async def play(stream: SocketStream) -> None:
        await stream.send(cut + f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")

    async with peer(play) as central, client(central.url) as ours:
        with pytest.raises(Unreachable):
            async with ours.listen(["board://b/journal"]) as cues:
                assert [uri async for uri in cues] == ["a"]


@pytest.mark.parametrize(
    ("frames", "kind"),
    [
        ((), Unreachable),
        ((b": ping\r\n\r\n",), Unreachable),
        ((cue("a"),), ProtocolRefused),
        ((event(encoded(RESULT)),), ProtocolRefused),
        ((ACK, event(b"rubbish")), ProtocolRefused),
        ((ACK, cue(7)), ProtocolRefused),
    ],
    ids=["nothing", "pings only", "no acknowledgement", "a result at once", "rubbish", "a wrong cue"],
)
async def test_a_stream_that_is_not_in_order(frames: tuple[bytes, ...], kind: type[CentralError]) -> None:
    _, error = await heard(*frames)
    assert error is not None
    same(error, kind)


async def test_an_answer_instead_of_a_stream() -> None:
    async with peer(answer(encoded(RESULT))) as central, client(central.url) as ours:
        with pytest.raises(CentralError) as caught:
            async with ours.listen(["board://b/journal"]):
                pass
    same(caught.value, ProtocolRefused)


async def test_it_is_us_who_have_no_descriptor_left() -> None:
    """Nothing says that Central refused: its streams must not be given up for it."""
    async with client("http://127.0.0.1:1/mcp") as ours:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest_free = os.dup(0)
        os.close(lowest_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        try:
            with pytest.raises(Exhausted) as caught:
                await ours.ask()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert not caught.value.sent


async def test_a_pause_that_a_server_in_trouble_asks_for() -> None:
    async with peer(answer(b"", "503 Service Unavailable", Retry_After="7")) as server, client(server.url) as ours:
        with pytest.raises(Overloaded) as caught:
            await ours.ask()
        assert caught.value.retry_after_s == 7.0


async def test_connections_are_not_used_again_after_a_sleep_and_what_is_under_way_may_finish() -> None:
    go = anyio.Event()

    async def slow(stream: SocketStream) -> None:
        await go.wait()
        await stream.send(answer(encoded(RESULT)))

    async with (
        peer(slow, answer(encoded(RESULT))) as server,
        client(server.url) as ours,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(ours.ask)
        await until(lambda: len(server.requests) == 1)
        await ours.renew()
        await ours.ask()
        go.set()


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not condition():
            await anyio.sleep(0.005)
