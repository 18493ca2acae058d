"""pursers-shim: the program that a host starts for each conversation.

Only what is needed before stdout is safe is imported at the top; a stray print of anything later goes to stderr.
"""

import os
import sys

from pursers_shim import __version__

__all__ = ["main"]

USAGE = """\
usage: pursers-shim [--version | --help]

Connects one conversation of an MCP host (Claude Code, Codex, Zed, ...) to pursersd, the daemon of this user, and starts
the daemon if there is none. A host starts it with stdin and stdout as pipes; it takes no other arguments.

environment:
  ONBOARD_CENTRAL_URL, ONBOARD_BOARD_ID, ONBOARD_AGENT_NAME, PURSERS_ROLE, ...   this conversation's settings
  PURSERSD_HOME=/dir       use the private daemon whose files are below /dir
  PURSERSD_AUTOSTART=0     never start a daemon
"""


def main() -> None:
    """Run the shim and end the process: 0 for a normal end, 1 without stdout, 2 for arguments it does not know."""
    parent = os.getppid()
    arguments = sys.argv[1:]
    if arguments in (["--help"], ["-h"]):
        print(USAGE, end="")
    elif arguments == ["--version"]:
        print(f"pursers-shim {__version__}")
    elif arguments:
        print(f"pursers-shim: unknown arguments: {' '.join(arguments)}\nTry: pursers-shim --help", file=sys.stderr)
        sys.exit(2)
    else:
        # Nothing is left to do at the end, and a flush of a broken stderr would only complain.
        os._exit(_serve(parent))


def _serve(parent: int) -> int:
    if not _is_open(2):
        os.open(os.devnull, os.O_WRONLY)
    if not _is_open(0):
        return 0
    try:
        stdout = os.dup(1)
    except OSError:
        os.write(2, b"pursers-shim: stdout is closed; the host must read it. Start it with a pipe as stdout.\n")
        return 1
    os.dup2(2, 1)
    wake = _end_on_signals()
    facts = _facts(parent)
    from pursers_shim.dial import Dialer
    from pursers_shim.early import Early
    from pursers_shim.exchange import Exchange
    from pursers_shim.host import Host
    from pursers_shim.relay import Relay

    host = Host(0, stdout)
    early = Early()
    Relay(host, Dialer(os.environ), Exchange(host, early.answer, early.unavailable), facts, wake).run()
    return 0


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _end_on_signals() -> int:
    """From now on each of the host's signals ends us, with 0; return a descriptor in which they leave a byte."""
    import signal

    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # `nohup` stands for a host that outlives its terminal; Ctrl-C and kill mean us in any case.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: os._exit(0))
    return wake


def _facts(parent: int) -> dict[str, object]:
    """What `hello` says about this process."""
    from pursers_shim.wire import process_start, readable, relayed_environment

    try:
        cwd = readable(os.getcwd())
    except OSError:
        cwd = ""  # removed
    return {
        "version": __version__,
        "pid": os.getpid(),
        "started": process_start(os.getpid()),
        "ppid": parent,
        "parent_started": process_start(parent),
        "cwd": cwd,
        "env": relayed_environment(os.environ),
    }


if __name__ == "__main__":
    main()
