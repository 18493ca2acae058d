"""The command `pursersd`: become the daemon of this user and serve until told to leave."""

import argparse
import gc
import logging
import os
import sys

from pursers_shim import starts
from pursers_shim.paths import PathError, place
from pursersd import __version__, log
from pursersd.api import log_file
from pursersd.descriptors import raise_limit
from pursersd.errors import OwnershipError
from pursersd.ownership import Ownership, take

IDLE_EXIT = 600.0
"""Seconds without a conversation after which an automatically started daemon leaves."""

IDLE_EXIT_VARIABLE = "PURSERSD_IDLE_EXIT_S"


def main() -> int:
    """Run the daemon. Exit codes: 0 left in order, 1 could not become or stay the daemon, 2 usage."""
    options = _parser().parse_args()
    os.umask(0o077)
    try:
        where = place(os.environ)
        ownership = take(where)
    except (PathError, OwnershipError) as error:
        print(f"pursersd: {error}", file=sys.stderr)
        return 1
    try:
        return _serve(ownership, options)
    except OwnershipError as error:
        print(f"pursersd: {error}", file=sys.stderr)
        return 1
    finally:
        ownership.release()


def _serve(ownership: Ownership, options: argparse.Namespace) -> int:
    raise_limit()
    log_path = None if options.foreground else log_file(ownership.place.home)
    log.set_up(log_path, "DEBUG" if options.verbose else "INFO")
    # A full collection looks at all objects there are, and most are of these imports: without them it takes 1 ms and not
    # the 40 that a wake would have to wait. Not collecting meanwhile is also a tenth of the start.
    gc.disable()
    # Only now the expensive imports: shims may connect already, and a second daemon never gets this far.
    import anyio

    from pursersd.app import App, Options

    app = App(ownership, Options(options.started_by, options.idle_exit, log_path))
    gc.freeze()
    gc.enable()
    try:
        anyio.run(app.run)
    except OwnershipError as error:
        logging.getLogger(__name__).error("%s", error)
        print(f"pursersd: {error}", file=sys.stderr)
        return 1
    starts.forget(ownership.place)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pursersd",
        description="One daemon per user for all MCP conversations that work on a Pursers board.",
        epilog="Hosts start pursers-shim, which starts this when needed. Look at it with: pursersctl status",
    )
    parser.add_argument("--version", action="version", version=f"pursersd {__version__}")
    parser.add_argument("--foreground", action="store_true", help="log to stderr instead of the log file")
    parser.add_argument("--verbose", action="store_true", help="log details")
    parser.add_argument(
        "--started-by", choices=("auto", "user", "service"), default="user", help="who starts it (default: %(default)s)"
    )
    parser.add_argument(
        "--idle-exit",
        type=float,
        metavar="SECONDS",
        default=os.environ.get(IDLE_EXIT_VARIABLE, IDLE_EXIT),
        help=f"leave after this long without conversations when started automatically, 0 for never ({IDLE_EXIT_VARIABLE})",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
