"""The command `pursersd`: become the daemon of this user and serve until told to leave."""

import argparse
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial
from types import FrameType

from pursers_shim import starts
from pursers_shim.paths import PathError, Place, place
from pursersd import __version__, log, service_start
from pursersd.api import log_file, shared_state_folder
from pursersd.configured import Configured, Flags, config_file
from pursersd.descriptors import raise_limit
from pursersd.errors import LostOwnership, OwnershipError
from pursersd.machine import claim
from pursersd.ownership import Ownership, take
from pursersd.rules.configuration import Value, flag_value
from pursersd.supervisor import Supervisor, handed, supervisor

LEFT, FAILED, UNUSABLE = 0, 1, 78
"""Exit codes, beside argparse's 2. UNUSABLE (EX_CONFIG) is for a service: starting it again as it is would not help."""


def main() -> int:
    """Run the daemon. Exit codes: 0 left in order, 1 could not become or stay the daemon, 2 usage; see UNUSABLE."""
    options = _parser().parse_args()
    os.umask(0o077)
    sockets, above = handed(os.environ, os.getpid()), supervisor(os.environ, os.getpid())
    unusable = UNUSABLE if options.started_by == "service" else FAILED
    try:
        where = place(os.environ)
        ownership = _become(where, options, sockets, above)
    except service_start.HeldBack as held:
        print(f"pursersd: {held}", file=sys.stderr)
        return LEFT
    except (PathError, OSError, OwnershipError) as error:
        print(f"pursersd: {error}", file=sys.stderr)
        return unusable
    try:
        return _serve(ownership, options, above)
    except OwnershipError as error:
        logging.getLogger(__name__).error("%s", error)
        print(f"pursersd: {error}", file=sys.stderr)
        return FAILED if isinstance(error, LostOwnership) else unusable
    finally:
        ownership.release()


def _become(
    where: Place, options: argparse.Namespace, sockets: Sequence[socket.socket], above: Supervisor
) -> Ownership:
    if options.started_by != "service":
        return take(where, sockets)
    ownership = service_start.become(where, sockets, above)
    if not options.foreground:
        service_start.keep_words(where.start_log)
    return ownership


def _serve(ownership: Ownership, options: argparse.Namespace, above: Supervisor) -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, partial(_leave_early, ownership))
    home = ownership.place.home
    configured = Configured(config_file(home), os.environ, _flags(options))
    raise_limit(configured.now.descriptors)
    claim(shared_state_folder(home))
    log_path = None if options.foreground else log_file(home)
    log.set_up(log_path)
    # A full collection looks at all objects there are, and most are of these imports: with them a wake would have to wait
    # for it some 40 ms. Not collecting meanwhile also saves a tenth of the imports' time.
    gc.disable()
    # Only now the expensive imports: shims may connect already, and a second daemon never gets this far.
    import asyncio

    import anyio

    from pursersd.app import App, Options
    from pursersd.stalls import StallWatch

    stalls = StallWatch()
    app = App(ownership, Options(options.started_by, log_path), configured, above, stalls)
    gc.freeze()
    gc.enable()
    anyio.run(app.run, backend_options={"loop_factory": lambda: asyncio.SelectorEventLoop(stalls)})
    starts.forget(ownership.place)
    return LEFT


def _leave_early(ownership: Ownership, _number: int, _frame: FrameType | None) -> None:
    """Leave in order on a signal that comes before the app listens to it: nobody has been served yet, and no crash is counted."""
    starts.forget(ownership.place)
    ownership.release()
    os._exit(LEFT)


def _flags(options: argparse.Namespace) -> Flags:
    flags: dict[str, tuple[str, Value]] = {}
    if options.idle_exit is not None:
        flags["daemon.idle_exit_s"] = ("--idle-exit", options.idle_exit)
    if options.verbose:
        flags["log.level"] = ("--verbose", "debug")
    return flags


def _seconds(text: str) -> Value:
    try:
        return flag_value("daemon.idle_exit_s", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pursersd",
        description="One daemon per user for all MCP conversations that work on a Pursers board.",
        epilog="Hosts start pursers-shim, which starts this when needed. Look at it with: pursersctl status. "
        "What else can be set, and in which file: pursersctl config show",
    )
    parser.add_argument("--version", action="version", version=f"pursersd {__version__}")
    parser.add_argument("--foreground", action="store_true", help="log to stderr instead of the log file")
    parser.add_argument("--verbose", action="store_true", help="log details")
    parser.add_argument(
        "--started-by", choices=("auto", "user", "service"), default="user", help="who starts it (default: %(default)s)"
    )
    parser.add_argument(
        "--idle-exit",
        type=_seconds,
        metavar="SECONDS",
        help="leave after this long without conversations when started automatically, 0 for never",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
