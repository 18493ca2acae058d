"""The process of the local board's Central: serves for as long as a daemon is there, and ends by itself without one.

It is started by the daemon and outlives it, so that a daemon that is replaced costs no conversation its Central; the next
daemon finds it by the lock that it holds for life (docs/decisions/0029). A daemon that never comes back must not leave it
behind for ever: no daemon for GRACE seconds, and it ends.

    python -m pursersd.local.keeper INSTANCE LOCK DAEMON_LOCK GRACE
"""

import os
import runpy
import signal
import sys
import threading
import time

from pursers_shim.launch import lock_holder, take_lock

LOOKS = 12
"""How often a daemon is looked for in GRACE seconds."""

PATIENCE = 3.0
"""Seconds that each signal has for its effect."""


def main(words: list[str]) -> int:
    """Serve the instance unless somebody else does. Central ends the process itself when it fails."""
    instance, lock, daemon_lock, grace = words
    if take_lock(lock) is None:
        print("another process serves this board already", file=sys.stderr)
        return 0
    threading.Thread(target=_end_without_daemon, args=(daemon_lock, float(grace)), daemon=True).start()
    sys.argv = ["pursers-central", "run", instance]
    runpy.run_module("pursers_central", run_name="__main__")
    return 0


def _end_without_daemon(daemon_lock: str, grace: float) -> None:
    # Counted in looks, not in time: while the machine sleeps nobody could have come.
    missed = 0
    while missed < LOOKS:
        time.sleep(grace / LOOKS)
        missed = 0 if _is_held(daemon_lock) else missed + 1
    print("no pursersd has been there for a while: ending", file=sys.stderr, flush=True)
    # An open stream blocks a lone SIGTERM (central.md §1.3).
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(os.getpid(), number)
        time.sleep(PATIENCE)
    os._exit(1)


def _is_held(lock: str) -> bool:
    try:
        return lock_holder(lock) is not None
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
