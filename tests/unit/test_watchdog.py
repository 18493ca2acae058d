"""conversation/watchdog: the death of a process is noticed, with and without the kernel's help."""

import os
import signal
import subprocess
from collections.abc import Iterator

import anyio
import pytest

from pursersd.conversation import watchdog
from pursersd.conversation.identity import ProcessIdentity, identify
from pursersd.conversation.watchdog import wait_for_end
from rig import processes

pytestmark = pytest.mark.anyio

PATIENCE = 30.0  # seconds in which a death must be noticed
HAS_PIDFD = hasattr(os, "pidfd_open")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that lives until its standard input ends. Nobody buries it before the test is over."""
    with processes.idle() as child:
        yield child


@pytest.fixture(params=["kernel", "refused", "missing"])
def help_of_the_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ways to be told: as the platform does, or by looking, because the kernel has no pidfd (for this process)."""

    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(24, "Too many open files")

    kind: str = request.param
    is_told = kind == "kernel" and HAS_PIDFD
    monkeypatch.setattr(watchdog, "POLL", 10 * PATIENCE if is_told else 0.01)
    if kind == "refused":
        monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    if kind == "missing":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
        monkeypatch.delattr("select.kqueue", raising=False)
    return kind


def known(process: "subprocess.Popen[bytes]") -> ProcessIdentity:
    found = identify(process.pid, None)
    assert found is not None
    return found


async def test_a_death_is_noticed_even_if_nobody_buries_it(
    child: "subprocess.Popen[bytes]", help_of_the_kernel: str
) -> None:
    noticed = anyio.Event()

    async def watch(process: ProcessIdentity) -> None:
        await wait_for_end(process)
        noticed.set()

    descriptors = len(os.listdir("/dev/fd"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch, known(child))
        await anyio.wait_all_tasks_blocked()
        assert not noticed.is_set()
        child.kill()
        with anyio.fail_after(PATIENCE):
            await noticed.wait()
    assert len(os.listdir("/dev/fd")) == descriptors


async def test_a_stopped_process_lives(child: "subprocess.Popen[bytes]", help_of_the_kernel: str) -> None:
    child.send_signal(signal.SIGSTOP)
    with anyio.move_on_after(0.1) as scope:  # long enough for ten looks
        await wait_for_end(known(child))
    assert scope.cancelled_caught


async def test_who_is_gone_already_is_not_waited_for(child: "subprocess.Popen[bytes]", help_of_the_kernel: str) -> None:
    process = known(child)
    child.kill()
    child.wait()
    with anyio.fail_after(PATIENCE):
        await wait_for_end(process)


async def test_a_pid_used_again_is_not_waited_for(child: "subprocess.Popen[bytes]", help_of_the_kernel: str) -> None:
    with anyio.fail_after(PATIENCE):
        await wait_for_end(ProcessIdentity(child.pid, known(child).started - 1))


async def test_giving_up_leaves_no_descriptor(child: "subprocess.Popen[bytes]") -> None:
    before = len(os.listdir("/dev/fd"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_end, known(child))
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert len(os.listdir("/dev/fd")) == before
