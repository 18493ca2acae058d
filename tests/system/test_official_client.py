"""The official Python client talks to a shim in each of its modes: legacy, auto, and pinned to 2026-07-28."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from anyio import to_thread
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage

from rig import processes
from rig.central import Central
from rig.daemon import Home
from rig.shim import SHIM
from rig.wait import until
from system.scene import PATIENCE, WAIT_S, rows, until_blocking

MODES = ["legacy", "auto", "2026-07-28"]

WAITING = "Waiting for a Pursers subscription cue"

EAGER_DAEMON = """
import sys
from pursersd.rules import hosts
hosts.PROGRESS_EVERY_S = 0.1
from pursersd.__main__ import main
sys.exit(main())
"""


class Tap:
    """What passes between a client and its shim."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.said: list[Any] = []
        self.heard: list[Any] = []

    @property
    def cancelled(self) -> list[object]:
        """The ids of the requests that the client cancelled."""
        found = [x for x in self.said if getattr(x, "method", None) == "notifications/cancelled"]
        return [x.params["requestId"] for x in found]

    @property
    def answered(self) -> list[object]:
        """The ids of all answers, in order."""
        return [x.id for x in self.heard if not hasattr(x, "method")]

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Any]:
        """The transport to give to a client."""
        shim = StdioServerParameters(command=SHIM, env=self.environment)
        async with stdio_client(shim) as (read, write), anyio.create_task_group() as tasks:
            to_client, client_reads = anyio.create_memory_object_stream[SessionMessage | Exception]()
            client_writes, from_client = anyio.create_memory_object_stream[SessionMessage]()
            tasks.start_soon(_copy, read, to_client, self.heard)
            tasks.start_soon(_copy, from_client, write, self.said)
            yield client_reads, client_writes
            tasks.cancel_scope.cancel()
            for end in (to_client, client_reads, client_writes, from_client):
                end.close()


async def _copy(source: Any, target: Any, record: list[Any]) -> None:
    async for item in source:
        assert isinstance(item, SessionMessage), item
        record.append(item.message)
        await target.send(item)


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """One home for all of these tests; its daemon reports progress at once instead of after five minutes."""
    with Home() as home:
        command = [sys.executable, "-c", EAGER_DAEMON, "--foreground"]
        environment = home.environment(role=None)
        daemon = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
        until(home.daemon_pid, PATIENCE, "the daemon runs")
        yield home
        processes.stop(daemon, (signal.SIGTERM,))


@pytest.fixture
def tap(central: Central, home: Home, board: str) -> Tap:
    return Tap(home.environment(central.url, central.worker("ann", board), board, "official"))


def run(body: Callable[[], Awaitable[None]]) -> None:
    """Run the body, which ends in any case."""

    async def limited() -> None:
        with anyio.fail_after(3 * PATIENCE):
            await body()

    anyio.run(limited)


@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_lists_the_tools_and_waits(
    central: Central, home: Home, board: str, tap: Tap, mode: str
) -> None:
    async def body() -> None:
        async with Client(tap.transport(), mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            annotations = tools["a2a_wait"].annotations
            assert annotations is not None
            assert annotations.read_only_hint is True
            ticket = ""

            async def create() -> None:
                nonlocal ticket
                await to_thread.run_sync(until_blocking, home, 1)
                ticket = await to_thread.run_sync(central.create_ticket, board, "for the official client")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(create)
                result = await client.call_tool("a2a_wait", {"timeout_s": WAIT_S})
            assert not result.is_error
            assert result.structured_content is not None
            assert [event["ticket_id"] for event in result.structured_content["events"]] == [ticket]

    run(body)
    eras = {"legacy": ["initialize"], "auto": ["server/discover"], "2026-07-28": ["tools/list"]}
    assert [x.method for x in tap.said[:1]] == eras[mode]


@pytest.mark.parametrize("mode", MODES)
def test_a_wait_that_the_official_client_cancels_is_not_answered_and_the_conversation_goes_on(
    central: Central, home: Home, board: str, tap: Tap, mode: str
) -> None:
    tap.environment["PURSERS_HOST"] = "claude-code"
    reports: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append(progress)

    async def body() -> None:
        async with Client(tap.transport(), mode=mode) as client:
            async with anyio.create_task_group() as tasks:
                waiting = partial(client.call_tool, "a2a_wait", {"timeout_s": WAIT_S}, progress_callback=note)
                tasks.start_soon(waiting)
                await to_thread.run_sync(until_blocking, home, 1)
                await to_thread.run_sync(lambda: until(lambda: reports, PATIENCE, "there is progress"))
                tasks.cancel_scope.cancel()
            await to_thread.run_sync(
                lambda: until(lambda: [row["state"] for row in rows(home)] == ["idle"], PATIENCE, "the wait has ended")
            )
            await client.list_tools()  # what was under way has arrived
            heard = len(tap.heard)
            ticket = await to_thread.run_sync(central.create_ticket, board, "after the cancellation")
            result = await client.call_tool("a2a_wait", {"timeout_s": WAIT_S})
            assert result.structured_content is not None
            assert [event["ticket_id"] for event in result.structured_content["events"]] == [ticket]
            assert not [x for x in tap.heard[heard:] if getattr(x, "method", None) == "notifications/progress"]

    run(body)
    assert len(tap.cancelled) == 1
    assert not set(tap.cancelled) & set(tap.answered)


@pytest.mark.parametrize("mode", MODES)
def test_progress_of_a_long_wait_reaches_the_official_client(central: Central, board: str, tap: Tap, mode: str) -> None:
    tap.environment["PURSERS_HOST"] = "claude-code"
    reports: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))
        if len(reports) == 2:
            await to_thread.run_sync(central.create_ticket, board, "enough progress")

    async def body() -> None:
        async with Client(tap.transport(), mode=mode) as client:
            # Only this host may wait for six hours.
            result = await client.call_tool("a2a_wait", {"timeout_s": 21_540}, progress_callback=note)
            assert not result.is_error, result.content

    run(body)
    assert [(total, message) for _, total, message in reports[:2]] == [(21_540, WAITING)] * 2
    assert 0 < reports[0][0] < reports[1][0]
