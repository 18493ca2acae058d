"""Notice the death of processes: at once where the kernel offers it, within a second elsewhere."""

import os
import select

import anyio

from pursersd.conversation.identity import ProcessIdentity

POLL = 1.0
"""Seconds between looks where the kernel does not tell."""


async def wait_for_end(process: ProcessIdentity) -> None:
    """Return once this very process has ended."""
    waiter = _pidfd_wait if hasattr(os, "pidfd_open") else _kqueue_wait if hasattr(select, "kqueue") else None
    if waiter is not None and await waiter(process):
        return
    while process.is_alive:
        await anyio.sleep(POLL)


async def _pidfd_wait(process: ProcessIdentity) -> bool:
    """Wait with a pidfd; False when the kernel gives none for this process."""
    try:
        fd = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if process.is_alive:  # the pid may have been used again between the identity and the descriptor
            await anyio.wait_readable(fd)
        return True
    finally:
        os.close(fd)


async def _kqueue_wait(process: ProcessIdentity) -> bool:
    """Wait with a kqueue; False when the process cannot be watched."""
    try:
        queue = select.kqueue()  # type: ignore[attr-defined,unused-ignore]
    except OSError:
        return False
    try:
        event = select.kevent(  # type: ignore[attr-defined,unused-ignore]
            process.pid,
            filter=select.KQ_FILTER_PROC,  # type: ignore[attr-defined,unused-ignore]
            flags=select.KQ_EV_ADD | select.KQ_EV_ONESHOT,  # type: ignore[attr-defined,unused-ignore]
            fflags=select.KQ_NOTE_EXIT,  # type: ignore[attr-defined,unused-ignore]
        )
        try:
            queue.control([event], 0)
        except OSError:
            return False
        if process.is_alive:
            await anyio.wait_readable(queue.fileno())
        return True
    finally:
        queue.close()
