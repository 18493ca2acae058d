"""An automatically started daemon leaves for idleness: what counts as need, and what becomes of whoever comes at that moment."""

import asyncio
from contextlib import suppress
from typing import Any

import anyio
import pytest

from pursers_shim import wire
from pursersd import app
from unit.running_app import PATIENCE, hello, running

pytestmark = pytest.mark.anyio

OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "unit", "version": "1"}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def forgive(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A race between the end of a task and the last byte of its socket that anyio loses; it means nothing."""
    if not isinstance(context.get("exception"), asyncio.InvalidStateError):
        loop.default_exception_handler(context)


async def test_whoever_only_looks_keeps_nobody_here(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.get_running_loop().set_exception_handler(forgive)
    monkeypatch.setattr(app, "IDLE_LOOK", 0.02)
    async with running("auto", file="daemon.idle_exit_s = 3600") as daemon, daemon.control() as looking:
        async with daemon.control() as listening:
            await listening.say({"id": 1, "verb": "events", "params": {}})
            assert (await listening.next())["id"] == 1
            await anyio.Path(str(daemon.place.home), "config.toml").write_text("daemon.idle_exit_s = 0.1")
            assert (await looking.ask("reload"))["changes"]
            with anyio.fail_after(PATIENCE):
                with suppress(anyio.BrokenResourceError):
                    while not daemon.left.is_set():
                        await looking.say(
                            {"id": 1, "verb": "status", "params": {}}, {"id": 2, "verb": "ps", "params": {}}
                        )
                        if await looking.next() is None or await looking.next() is None:
                            break  # it leaves
                await daemon.left.wait()


@pytest.mark.parametrize("moment", ["accepted", "hello", "welcomed", "opened"])
async def test_whoever_comes_while_it_leaves_is_sent_to_the_next_one(moment: str) -> None:
    """Never an error, and never silence: the end of the link, at most after `pursers/drain`, makes a shim look again."""
    asyncio.get_running_loop().set_exception_handler(forgive)
    async with running("auto", {"PURSERSD_IDLE_EXIT_S": "3600"}) as daemon:
        async with daemon.control():
            pass  # it accepts
        async with daemon.client() as client:
            await anyio.wait_all_tasks_blocked()
            if moment in ("hello", "welcomed", "opened"):
                await client.say(hello())
            if moment in ("welcomed", "opened"):
                assert (await client.next())["pursers"] == "welcome"
            if moment == "opened":
                await client.request(0, "initialize", **OPENING)
            daemon.app.leave(wire.IDLE, False)
            while (line := await client.next()) is not None:
                assert line.get("pursers") == "welcome" or line.get("method") == wire.DRAIN or "result" in line, line
        with anyio.fail_after(PATIENCE):
            await daemon.left.wait()
