"""fence: a daemon that is the daemon no more has no effect, leaves and says why."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from pursers_shim.paths import Place
from pursersd import fence, machine
from pursersd.errors import OwnershipError
from pursersd.rules.configuration import DEFAULTS
from unit.running_app import PATIENCE, RunningApp, running

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fence, "LOOK", 0.02)


def epoch_file(daemon: RunningApp) -> Path:
    return Path(str(daemon.place.home), "state", "epoch")


Damage = Callable[[RunningApp], object]


async def leaves_after(damage: Damage) -> None:
    """Its shims are told to look for the next one; calls may end first unless there is a newer one already."""
    async with running() as daemon, daemon.shim() as (shim, _):
        damage(daemon)
        while (told := await shim.next())["params"] != {"reason": "restart"}:
            assert told["params"] == {"reason": "restart", "limit_s": DEFAULTS.drain_s}
            await shim.say({"jsonrpc": "2.0", "method": "pursers/drained", "params": {}})
        assert await shim.next() is None
        with anyio.fail_after(PATIENCE):
            await daemon.left.wait()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda daemon: epoch_file(daemon).write_text("9\n"), "newer pursersd has counted epoch 9 .*another machine"),
        (lambda daemon: os.unlink(daemon.place.socket), "nobody reaches"),
        (lambda daemon: shutil.rmtree(daemon.place.folder), "nobody reaches"),
    ],
    ids=["a higher epoch", "no socket", "no folder"],
)
async def test_it_leaves_and_says_why(damage: Damage, words: str) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await leaves_after(damage)
    assert caught.group_contains(OwnershipError, match=words)


async def test_daemons_of_two_machines_in_one_state_folder_do_not_fence_one_another(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Their runtime folders are their own, as /tmp is. Each counts above what was counted before, and for itself."""
    one, other = machine.Machine("1" * 12, "one"), machine.Machine("2" * 12, "other")
    monkeypatch.setattr(machine, "this_machine", lambda: one)
    async with running() as daemon:
        async with daemon.control():
            pass  # it has started
        home, looks = str(daemon.place.home), 0
        machine.claim(f"{home}/state")
        looked = fence.Fence._look

        def look(it: fence.Fence) -> fence.Lost | None:
            nonlocal looks
            looks += 1
            return looked(it)

        monkeypatch.setattr(fence.Fence, "_look", look)
        monkeypatch.setattr(machine, "this_machine", lambda: other)
        place = Place(f"{home}/elsewhere", home)
        async with running(place=place) as second, second.control():
            part = Path(home, "state", "machine-222222222222")
            assert (epoch_file(daemon).read_text(), (part / "epoch").read_text()) == ("1\n", "2\n")
            seen = looks
            with anyio.fail_after(PATIENCE):
                while looks < seen + 6:
                    await anyio.sleep(0.005)
            assert not daemon.left.is_set()
            assert not second.left.is_set()
    assert "newer pursersd" not in caplog.text


@pytest.mark.parametrize("restored", ["", "0\n", None])
async def test_a_count_that_went_back_is_written_again(restored: str | None) -> None:
    async with running() as daemon:
        async with daemon.control():
            pass  # it has started
        if restored is None:
            shutil.rmtree(epoch_file(daemon).parent)
        else:
            epoch_file(daemon).write_text(restored)
        with anyio.fail_after(PATIENCE):
            while not epoch_file(daemon).exists() or epoch_file(daemon).read_text() != "1\n":
                await anyio.sleep(0.005)
        assert not daemon.left.is_set()


async def test_what_lies_in_the_way_makes_it_stay(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody else can become the daemon, so those who have a link are served as ever."""
    async with running() as daemon, daemon.shim() as (shim, _):
        aside = f"{daemon.place.home}/aside"
        os.rename(daemon.place.folder, aside)
        os.close(os.open(daemon.place.folder, os.O_CREAT))
        with anyio.fail_after(PATIENCE):
            while "nobody new reaches" not in caplog.text:
                await anyio.sleep(0.005)
        await shim.shake_hands()
        os.unlink(daemon.place.folder)
        os.rename(aside, daemon.place.folder)
        async with daemon.control():
            pass
        assert caplog.text.count("nobody new reaches") == 1
        assert not daemon.left.is_set()


async def test_a_removed_lock_is_taken_again_and_nobody_notices() -> None:
    async with running() as daemon, daemon.shim() as (shim, _):
        lock = daemon.place.lock
        os.unlink(lock)
        with anyio.fail_after(PATIENCE):
            while os.path.basename(lock) not in os.listdir(daemon.place.folder):
                await anyio.sleep(0.005)
        await shim.shake_hands()
        assert not daemon.left.is_set()
