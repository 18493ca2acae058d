"""The daemon in the test's own process, and clients of its socket."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import psutil

from pursers_shim import paths, wire
from pursersd.api import StartedBy
from pursersd.app import App, Options
from pursersd.configured import Configured, config_file
from pursersd.ownership import take
from pursersd.supervisor import Supervisor
from scripted_daemon import short_home
from unit.line_stream import PATIENCE as PATIENCE
from unit.line_stream import LineStream


class Client(LineStream):
    """One connection to the socket."""

    async def ask(self, verb: str, **params: object) -> Any:
        """A control request's answer."""
        await self.say({"id": 7, "verb": verb, "params": params})
        answer = await self.next()
        assert answer["id"] == 7
        return answer.get("error") or answer["result"]

    async def request(self, identity: object, method: str, **params: object) -> None:
        await self.say({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})

    async def shake_hands(self) -> None:
        """The MCP handshake."""
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "unit", "version": "1"}}
        await self.request(0, "initialize", **client)
        assert (await self.next())["id"] == 0
        await self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})


class RunningApp:
    """A daemon that serves; `left` is set when it has gone."""

    def __init__(self, place: paths.Place, app: App) -> None:
        self.place = place
        self.app = app
        self.left = anyio.Event()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with await anyio.connect_unix(self.place.socket) as stream:
            yield Client(stream)

    @asynccontextmanager
    async def control(self) -> AsyncIterator[Client]:
        """A control link that was welcomed."""
        async with self.client() as client:
            await client.say({"pursers": "hello", "protocol": list(wire.PROTOCOL), "role": "control"})
            assert (await client.next())["pursers"] == "welcome"
            yield client

    @asynccontextmanager
    async def shim(self, **fields: object) -> AsyncIterator[tuple[Client, Any]]:
        """A link like a shim's, and its greeting. The shim's process is this one unless `fields` say otherwise."""
        async with self.client() as client:
            await client.say({**hello(), **fields})
            yield client, await client.next()

    async def ps(self) -> list[Any]:
        async with self.control() as client:
            seats: list[Any] = (await client.ask("ps"))["seats"]
            return seats


def hello() -> dict[str, object]:
    parent = psutil.Process().ppid()
    return {
        "pursers": "hello",
        "protocol": list(wire.PROTOCOL),
        "role": "shim",
        "version": "unit",
        "pid": os.getpid(),
        "started": wire.process_start(os.getpid()),
        "ppid": parent,
        "parent_started": wire.process_start(parent),
        "cwd": "/",
        "env": {"ONBOARD_CENTRAL_TOKEN": "token-a", "ONBOARD_BOARD_ID": "b", "ONBOARD_AGENT_NAME": "unit"},
    }


@asynccontextmanager
async def running(
    started_by: StartedBy = "user",
    variables: dict[str, str] | None = None,
    above: Supervisor | None = None,
    log_path: str | None = None,
    file: str | None = None,
    place: paths.Place | None = None,
) -> AsyncIterator[RunningApp]:
    """The daemon in a private home, or at `place`; at the end it is told to stop, if it has not gone by itself.

    `variables` and the text of `file` configure it; `above` hears how it fares.
    """
    with short_home() as folder:
        if file is not None:
            (folder / "config.toml").write_text(file)
        place = place or paths.place({"PURSERSD_HOME": str(folder)})
        ownership = take(place)
        try:
            configured = Configured(config_file(str(folder)), variables or {}, {})
            app = App(ownership, Options(started_by, log_path), configured, above)
            found = RunningApp(place, app)

            async def run() -> None:
                await app.run()
                found.left.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                yield found
                app.leave("stop", False)
                with anyio.fail_after(PATIENCE):
                    await found.left.wait()
        finally:
            ownership.release()


async def until(condition: Any) -> None:
    """Wait for an async condition."""
    with anyio.fail_after(PATIENCE):
        while not await condition():
            await anyio.sleep(0.005)
