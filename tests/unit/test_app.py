"""app: how the daemon leaves, and when it does so by itself."""

import logging
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus
from mcp.server.mcpserver import Context

from pursers_shim import starts
from pursersd import app, clock, suspension
from pursersd.api import StartedBy
from pursersd.configured import Configured
from pursersd.conversation import link
from pursersd.conversation.registry import Conversations
from pursersd.errors import OwnershipError
from pursersd.feed.centrals import Centrals
from pursersd.listener import Listener
from pursersd.local.board import LocalBoard
from pursersd.rules.configuration import DEFAULTS
from pursersd.state.stats import StatsWriters
from pursersd.supervisor import Supervisor
from pursersd.suspension import Suspension
from pursersd.tools import server as tools
from unit.running_app import PATIENCE, RunningApp, running

pytestmark = pytest.mark.anyio

DRAINED = {"jsonrpc": "2.0", "method": "pursers/drained", "params": {}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def gone(daemon: RunningApp) -> None:
    with anyio.fail_after(PATIENCE):
        await daemon.left.wait()


async def ready(daemon: RunningApp) -> None:
    """It serves: everything has been started."""
    async with daemon.control():
        pass


async def test_it_counts_its_start() -> None:
    async with running() as daemon, daemon.shim() as (_, greeting):
        assert greeting["daemon_epoch"] == epoch(daemon) == 1


def epoch(daemon: RunningApp) -> int:
    """The count in the state folder of its home."""
    return int(Path(str(daemon.place.home), "state", "epoch").read_text())


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGTERM, "restart"), (signal.SIGINT, "restart")])
async def test_a_signal_makes_it_leave_in_order(number: int, reason: str) -> None:
    before = signal.getsignal(number)
    async with running() as daemon, daemon.shim() as (shim, _):
        await ready(daemon)
        os.kill(os.getpid(), number)
        assert (await shim.next())["params"] == {"reason": reason, "limit_s": DEFAULTS.drain_s}
        await shim.say(DRAINED)
        assert (await shim.next())["params"] == {"reason": reason}
        assert await shim.next() is None
        await gone(daemon)
    assert signal.getsignal(number) == before  # so that a second one had ended us at once


async def test_the_first_reason_counts() -> None:
    async with running() as daemon, daemon.shim() as (shim, _):
        daemon.app.leave("idle", False)
        daemon.app.leave("stop", False)
        assert (await shim.next())["params"] == {"reason": "idle"}


async def test_an_automatic_daemon_leaves_when_nobody_needs_it() -> None:
    async with running("auto", {"PURSERSD_IDLE_EXIT_S": "0.02"}) as daemon:
        await gone(daemon)


@pytest.mark.parametrize(("started_by", "idle_exit_s"), [("user", "0.02"), ("service", "0.02"), ("auto", "0")])
async def test_others_stay(started_by: StartedBy, idle_exit_s: str) -> None:
    async with running(started_by, {"PURSERSD_IDLE_EXIT_S": idle_exit_s}) as daemon:
        await ready(daemon)
        with anyio.move_on_after(0.1):
            await daemon.left.wait()
        assert not daemon.left.is_set()


async def test_a_start_that_takes_long_is_no_idleness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever had it started is waiting in the queue of the socket."""
    running_stats = StatsWriters.run
    started = [0.0]

    async def slow(writers: StatsWriters, *, task_status: TaskStatus[None]) -> None:
        await anyio.sleep(0.05)
        started[0] = time.monotonic()
        await running_stats(writers, task_status=task_status)

    monkeypatch.setattr(StatsWriters, "run", slow)
    async with running("auto") as daemon:
        await ready(daemon)
        assert daemon.app._conversations.idle_s <= time.monotonic() - started[0]


async def test_a_conversation_keeps_an_automatic_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "IDLE_LOOK", 0.005)
    async with running("auto") as daemon, daemon.shim() as (shim, _):
        soon = replace(DEFAULTS, idle_exit_s=0.02)  # from now on: before, nobody was there
        monkeypatch.setattr(Configured, "now", soon)
        with anyio.move_on_after(0.2):
            await daemon.left.wait()
        assert not daemon.left.is_set()
        await shim.shake_hands()


async def begin(board: LocalBoard) -> None:
    """It is not served really."""


async def test_a_local_board_that_is_wanted_keeps_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalBoard, "is_wanted", True)
    monkeypatch.setattr(LocalBoard, "_begin", begin)
    async with running("auto", {"PURSERSD_IDLE_EXIT_S": "0.02"}) as daemon:
        await ready(daemon)
        with anyio.move_on_after(0.2):
            await daemon.left.wait()
        assert not daemon.left.is_set()
        monkeypatch.setattr(LocalBoard, "is_wanted", False)
        await gone(daemon)


class Tool:
    """A call that lasts until the test lets it go."""

    def __init__(self) -> None:
        self.runs = anyio.Event()
        self.go = anyio.Event()

    async def block(self, ctx: Context[Any, Any]) -> dict[str, Any]:
        """Wait."""
        self.runs.set()
        await self.go.wait()
        return {"done": True}


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Tool:
    tool = Tool()

    async def block(ctx: Context[Any, Any]) -> dict[str, Any]:
        """Wait."""
        return await tool.block(ctx)

    monkeypatch.setattr(tools, "TOOLS", (block,))
    return tool


async def test_draining_lets_a_running_call_finish(tool: Tool) -> None:
    async with running() as daemon, daemon.shim() as (shim, _), daemon.control() as client:
        await shim.shake_hands()
        await shim.request(1, "tools/call", name="block", arguments={})
        await tool.runs.wait()
        await client.ask("stop", reason="stop", drain=True)
        assert (await shim.next())["params"] == {"reason": "stop", "limit_s": DEFAULTS.stop_drain_s}
        assert (await client.ask("ping"))["state"] == "draining"
        async with daemon.shim() as (_, refusal):
            assert (refusal["code"], refusal["retryable"]) == ("stopping", True)
        # What crossed the news on its way is done as well: the shim does not take it back.
        await shim.request(2, "tools/call", name="block", arguments={})
        await shim.say(DRAINED)
        tool.go.set()
        assert (await shim.next())["result"]["structuredContent"] == {"done": True}
        assert (await shim.next())["result"]["structuredContent"] == {"done": True}
        assert (await shim.next())["params"] == {"reason": "stop"}
        await gone(daemon)


async def test_a_call_that_does_not_end_is_left_to_the_next_daemon(tool: Tool) -> None:
    async with running(variables={"PURSERSD_DRAIN_S": "0.05"}) as daemon, daemon.shim() as (shim, _):
        await shim.shake_hands()
        await shim.request(1, "tools/call", name="block", arguments={})
        await tool.runs.wait()
        daemon.app.leave("restart", True)
        assert [(await shim.next())["method"], (await shim.next())["method"]] == ["pursers/drain"] * 2
        assert await shim.next() is None
        await gone(daemon)


async def test_a_shim_that_does_not_say_that_it_holds_its_work_delays_us_a_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "DRAIN_TIMEOUT", 0.02)
    async with running() as daemon, daemon.shim():
        daemon.app.leave("restart", True)
        await gone(daemon)


async def test_without_draining_it_does_not_wait(tool: Tool) -> None:
    async with running() as daemon, daemon.shim() as (shim, _), daemon.control() as client:
        await shim.shake_hands()
        await shim.request(1, "tools/call", name="block", arguments={})
        await tool.runs.wait()
        await client.ask("stop", reason="stop")
        assert (await shim.next())["params"] == {"reason": "stop"}
        assert await shim.next() is None  # and no answer: the next daemon gives it
        await gone(daemon)


async def test_a_sleep_of_the_machine_is_noticed_and_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sleeps = iter([True])
    monkeypatch.setattr(suspension, "TICK", 0.01)
    monkeypatch.setattr(clock.SleepWatch, "slept", lambda self: next(sleeps, False))
    monkeypatch.setattr(app, "HEALTH_LOOK", 0.01)
    woken: list[Centrals] = []
    monkeypatch.setattr(Centrals, "woke", lambda self: woken.append(self))
    async with running() as daemon, daemon.control() as client:
        with anyio.fail_after(PATIENCE):
            while not (status := await client.ask("status"))["daemon"]["suspensions"]:
                await anyio.sleep(0.005)
        assert [warning["code"] for warning in status["warnings"]] == ["time_passed"]
        assert (await client.ask("ps"))["warnings"][0]["code"] == "time_passed"
        assert len(woken) == 1
        with anyio.fail_after(PATIENCE):
            while "warning time_passed" not in caplog.text:
                await anyio.sleep(0.005)


async def test_a_state_folder_that_cannot_be_used_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExceptionGroup) as caught:
        async with running():
            pass
    assert caught.group_contains(OwnershipError, match="No space left on device")


class Listening(Supervisor):
    """Notes what a service manager would hear."""

    def __init__(self) -> None:
        super().__init__("/nowhere")
        self.every_s = 0.01
        self.heard: list[str] = []

    def _say(self, words: str) -> None:
        self.heard.append(words)


async def test_a_service_manager_hears_the_whole_life_in_order() -> None:
    above = Listening()
    async with running("service", above=above, file="[log]\nkept = 5\n") as daemon:
        async with daemon.control() as client:
            with anyio.fail_after(PATIENCE):
                while sum(words.startswith("WATCHDOG=1") for words in above.heard) < 3:
                    await anyio.sleep(0.005)
            assert (await client.ask("reload"))["changes"] == []
        assert starts.read(daemon.place) is None  # counted by whoever started it, and not by the app
    first, *_, last = above.heard
    assert (first, last) == ("READY=1", "STOPPING=1\nSTATUS=leaving: stop")
    reloaded = next(i for i, words in enumerate(above.heard) if words.startswith("RELOADING=1"))
    assert above.heard[reloaded + 1] == "READY=1"


@pytest.mark.parametrize(
    ("owner", "method"),
    [(Listener, "serve"), (Centrals, "run"), (Conversations, "run"), (StatsWriters, "run"), (Suspension, "run")],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
async def test_a_part_that_fails_ends_the_daemon_so_that_no_watchdog_is_fed_without_it(
    owner: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = Listening()

    async def fail(_: object, *__: object, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        with anyio.fail_after(PATIENCE):
            while len(above.heard) < 3:
                await anyio.sleep(0.005)
        raise RuntimeError("this part is no more")

    monkeypatch.setattr(owner, method, fail)
    with pytest.raises(ExceptionGroup) as caught:
        async with running("service", above=above):
            await anyio.sleep_forever()
    assert caught.group_contains(RuntimeError, match="this part is no more")


def configure(daemon: RunningApp, text: str) -> None:
    Path(str(daemon.place.home), "config.toml").write_text(text)


async def test_the_configuration_is_followed_and_a_reload_changes_what_is_followed() -> None:
    async with running(file="[conversations]\nmax_calls = 3\nresume_grace_s = 7\n[log]\nlevel = 'warning'\n") as daemon:
        async with daemon.control() as client:
            assert logging.getLogger().level == logging.WARNING
            assert (daemon.app._limits.requests, daemon.app._conversations.reattach_s) == (3, 7)
            configure(daemon, "[conversations]\nmax_calls = 4\n[statistics]\nwrite_every_s = 9\n")
            os.kill(os.getpid(), signal.SIGHUP)
            with anyio.fail_after(PATIENCE):
                while daemon.app._limits.requests != 4:
                    await anyio.sleep(0.005)
            assert (daemon.app._conversations.reattach_s, daemon.app._stats.every_s) == (10, 9)
            assert logging.getLogger().level == logging.INFO
            configure(daemon, "[conversations]\nmax_calls = 5\nmin_calls = 1\n")
            refused = await client.ask("reload")
            assert refused["code"] == "configuration"
            assert "line 3: there is no key 'min_calls'" in refused["text"]
            assert daemon.app._limits.requests == 4
            os.kill(os.getpid(), signal.SIGHUP)  # which ends nobody either
            codes = [warning["code"] for warning in (await client.ask("status"))["warnings"]]
            assert codes == ["configuration_wrong"]
            shown = {row["key"]: row for row in (await client.ask("config"))["rows"]}
            assert shown["conversations.max_calls"]["origin"] == "file"
            assert not daemon.left.is_set()
