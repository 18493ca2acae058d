"""One Central endpoint with one credential: tool calls and subscription streams over HTTP (MCP 2026-07-28).

Each request stands alone on this wire (central.md §2.1), so there is no session here. The mcp SDK's client is not used
because it always names itself, which makes Central parse every board for each call (central.md §9.3), and because it hides
what a feed must know: pings, repeated cues and the difference between an overflow and a cut (docs/decisions/).
"""

import errno
import itertools
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import anyio
import httpx2
import msgspec

from pursersd.central.account import Charge
from pursersd.central.frame import Frame, parse, raise_refusal, tool_result
from pursersd.central.served_time import ServedTime
from pursersd.errors import (
    Exhausted,
    Forbidden,
    Overloaded,
    ProtocolRefused,
    Unauthenticated,
    Unreachable,
)
from pursersd.ids import instance_uri
from pursersd.secret import Secret

PROTOCOL = "2026-07-28"
META = "io.modelcontextprotocol/"
EXPECTED_INSTANCE = "io.onboard/expected-instance"
EXPECTED_GENERATION = "io.onboard/expected-generation"

CONNECT_TIMEOUT = 5.0
"""Seconds to establish a connection."""

SILENCE = 45.0
"""Seconds without a byte after which an answer or a stream counts as lost: Central pings every 15 s (central.md §4.1)."""

KEEPALIVE = 3.0
"""Seconds that an idle connection is kept: below Central's own 5 s, so that we never send into a closing one."""

MAX_CONNECTIONS = 6
"""Two streams and four calls."""


Admit = Callable[[], Awaitable[None]]
"""Returns when an effect outside this process is ours to have; see pursersd.fence."""


class _Health(msgspec.Struct):
    """What Central says of itself under /healthz, as far as we look."""

    instance_id: str = ""


_INSTANCE = re.compile(r"CI-[0-9a-f]{64}")


class Cues:
    """An open stream: iterate it for the URIs that were cued.

    Iteration ends normally when Central closed the stream with a result, which means that cues were dropped (central.md
    §4.3), and with Unreachable when the connection was lost.
    """

    def __init__(self, frames: AsyncIterator[Frame]) -> None:
        self._frames = frames

    async def __aiter__(self) -> AsyncIterator[str]:
        async for frame in self._frames:
            if frame.method == "notifications/resources/updated" and frame.params and frame.params.uri:
                yield frame.params.uri


async def freely() -> None:
    """Every effect is ours."""


class CentralClient:
    """Requests to one URL with one bearer token; the token leaves this object only in the Authorization header.

    Each request asks `admit` when its connection is made and its first byte is next, so that a process that was stopped
    anywhere before sends nothing that is no longer its own.
    """

    def __init__(self, url: str, token: Secret, instance_id: str | None = None, admit: Admit = freely) -> None:
        self.url = url
        self._token = token
        self._instance_id = instance_id
        self._admit = admit
        self.served_time = ServedTime()
        self._ids = itertools.count(1)
        self._http = _http()
        self._users: Counter[httpx2.AsyncClient] = Counter()
        """Requests in progress, by the set of connections that they use; the earlier sets are closed after their last."""

    async def aclose(self) -> None:
        """Close every connection."""
        for http in {self._http, *self._users}:
            await http.aclose()

    async def renew(self) -> None:
        """Use no connection again that is open now: it may have died unseen. What is in progress may finish."""
        before, self._http = self._http, _http()
        await self._close_unused(before)

    async def ask(self) -> None:
        """Ask whether Central answers and takes the credential; costs it nothing of the boards. Raises as `call` does."""
        async with self._post("server/discover", {"_meta": self._meta()}) as response:
            raise_refusal(await _answer(response))

    async def call(self, tool: str, arguments: Mapping[str, Any], *, generation: str | None = None) -> dict[str, Any]:
        """Call a Central tool; returns its structured result.

        `generation` is the board generation to insist on (central.md §6.5). Raises ToolFailed for a failure that the tool
        reports, InstanceMismatch, and the other CentralErrors for a request that got no answer.
        """
        expected = {} if generation is None else {EXPECTED_GENERATION: generation}
        params = {"name": tool, "arguments": dict(arguments), "_meta": self._meta() | expected}
        with Charge(tool, arguments, expected or None) as charge:
            async with self._post("tools/call", params, name=tool) as response:
                frame = await _answer(response)
            result, text = tool_result(tool, frame)
            charge.answered(text, result)
            return result

    async def instance(self) -> str | None:
        """The id that the Central at this URL gives itself, asked without the token; None if it does not say."""
        try:
            async with self._http.stream("GET", urljoin(self.url, "/healthz")) as response:
                found = msgspec.json.decode(await response.aread(), type=_Health)
        except (httpx2.HTTPError, httpx2.InvalidURL, msgspec.DecodeError):
            return None
        return found.instance_id if _INSTANCE.fullmatch(found.instance_id) else None

    @asynccontextmanager
    async def listen(self, uris: Iterable[str]) -> AsyncGenerator[Cues]:
        """Open a subscription stream; entered once Central has acknowledged all of `uris`.

        Raises ProtocolRefused when Central denies one of them or has no stream left.
        """
        wanted = sorted(uris)
        if self._instance_id:
            wanted.append(instance_uri(self._instance_id))
        params = {"notifications": {"resourceSubscriptions": wanted}, "_meta": self._meta()}
        async with self._post("subscriptions/listen", params) as response:
            if not _is_stream(response):
                raise_refusal(await _answer(response))
                raise ProtocolRefused("Central answered a subscription with something else than a stream")
            frames = _frames(response)
            first = await anext(frames, None)
            if first is None:
                raise Unreachable("Central closed a subscription stream before acknowledging it")
            if first.method != "notifications/subscriptions/acknowledged":
                raise_refusal(first)
                raise ProtocolRefused("Central did not acknowledge the subscription")
            yield Cues(frames)

    def _meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = {META + "protocolVersion": PROTOCOL, META + "clientCapabilities": {}}
        if self._instance_id:
            meta[EXPECTED_INSTANCE] = self._instance_id
        return meta

    @asynccontextmanager
    async def _post(
        self, method: str, params: dict[str, Any], name: str | None = None
    ) -> AsyncGenerator[httpx2.Response]:
        headers = {
            "Authorization": f"Bearer {self._token.reveal()}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL,
            "Mcp-Method": method,
        }
        if name is not None:
            headers["Mcp-Name"] = name
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})
        http = self._http
        self._users[http] += 1
        try:
            async with http.stream(
                "POST", self.url, content=body, headers=headers, extensions={"trace": self._on_progress}
            ) as response:
                self.served_time.told(response.headers.get("date"))
                await _check_status(response)
                yield response
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if _is_our_lack(error):
                raise Exhausted(
                    "This daemon has no file descriptor left for a connection to Central", sent=False
                ) from error
            raise Unreachable(
                f"Central is unreachable at {self.url}: {_text(error)}. Start it, or correct ONBOARD_CENTRAL_URL.",
                sent=False,
                silent=isinstance(error, httpx2.ConnectTimeout),
            ) from error
        except httpx2.PoolTimeout as error:
            # Nothing was refused: a Central that is only slow must not cost us the streams.
            raise Exhausted(f"Central at {self.url} keeps every connection of ours busy", sent=False) from error
        except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
            raise ProtocolRefused(f"{self.url} is not a usable Central URL: {_text(error)}") from error
        except httpx2.DecodingError as error:
            raise ProtocolRefused(f"Central's answer cannot be decoded: {_text(error)}", is_answer=False) from error
        except (httpx2.TransportError, httpx2.StreamError) as error:
            if isinstance(error, httpx2.TimeoutException):
                raise Unreachable(
                    f"Central at {self.url} has said nothing for {SILENCE:.0f} s. It may hang, or the way to it be cut.",
                    silent=True,
                ) from error
            raise Unreachable(f"The connection to Central at {self.url} was lost: {_text(error)}") from error
        finally:
            self._users[http] -= 1
            await self._close_unused(http)

    async def _on_progress(self, step: str, details: Mapping[str, Any]) -> None:
        """Called by httpcore, and awaited, at each step of a request."""
        if step == "http11.send_request_headers.started":
            await self._admit()

    async def _close_unused(self, http: httpx2.AsyncClient) -> None:
        if http is not self._http and not self._users[http]:
            del self._users[http]
            with anyio.CancelScope(shield=True):
                await http.aclose()


def _http() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=httpx2.Timeout(SILENCE, connect=CONNECT_TIMEOUT),
        limits=httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=4, keepalive_expiry=KEEPALIVE),
    )


def _is_our_lack(error: BaseException | None) -> bool:
    """Whether it was us who could not open a connection: nothing says that Central refused it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            return True
        error = error.__cause__ or error.__context__
    return False


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").startswith("text/event-stream")


_ELSEWHERE = (*range(300, 400), 404, 405)
"""HTTP statuses of a server that has Central at another path, or not at all."""


_MEANWHILE = (404, 408, 409, 410, 425)
"""HTTP statuses that a proxy gives in Central's place while Central is away, or while it still has our last stream."""


async def _check_status(response: httpx2.Response) -> None:
    """Raise for an HTTP status that carries no JSON-RPC answer (central.md §2.3, §2.4)."""
    status = response.status_code
    if status == 401:
        raise Unauthenticated(
            "Central does not accept the credential (HTTP 401): it is unknown, expired or revoked. "
            "Get a new token from the board's admin and set ONBOARD_CENTRAL_TOKEN or its file."
        )
    if status == 403:
        raise Forbidden(
            "Central refuses the credential (HTTP 403): it lacks the scope board:read. "
            "Ask the board's admin for a token that has it."
        )
    if status == 429 or status >= 500:
        hint = response.headers.get("retry-after", "")
        seconds = float(hint) if hint.isascii() and hint.isdigit() else None  # a date would need clocks that agree
        words = (
            f"Central answered HTTP {status}. It, or a proxy before it, is overloaded or not ready; call again later."
        )
        raise Overloaded(words, sent=status != 429, retry_after_s=seconds)
    if status >= 300 and not response.headers.get("content-type", "").startswith("application/json"):
        text = (await response.aread())[:200].decode(errors="replace").strip()
        elsewhere = (
            f" Is {response.request.url} Central's address? It mostly ends in /mcp." if status in _ELSEWHERE else ""
        )
        kind = Overloaded if status in _MEANWHILE else ProtocolRefused
        raise kind(f"Central answered HTTP {status}{text and ': '}{text}.{elsewhere}")


async def _answer(response: httpx2.Response) -> Frame:
    """The one JSON-RPC answer in a response; a call slower than 15 s arrives as a stream (central.md §2.1)."""
    if _is_stream(response):
        async for frame in _frames(response):
            if frame.result is not None or frame.error is not None:
                return frame
        raise Unreachable("Central ended the answer before its result")
    return parse(await response.aread())


async def _frames(response: httpx2.Response) -> AsyncIterator[Frame]:
    source = httpx2.EventSource(response, max_event_size=None)
    async for event in source:
        if not event.data:
            continue
        frame = parse(event.data)
        yield frame
        if frame.result is not None:
            return
