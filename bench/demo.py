"""`make demo`: conversations wait on a real Central through one daemon, wake, and survive what would end a bridge.

Everything lives in private temporary folders and ends with it. With --keep, Central and daemon stay for a host of yours.
"""

import argparse
import contextlib
import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
from rich.console import Console

from bench import usage
from bench.cast import BOARD, Cast
from bench.stage import Row, Stage
from rig.daemon import CTL
from rig.plain import ToolFailed
from rig.processes import is_alive
from rig.shim import SHIM, Ended, RpcError
from rig.wait import until

FAILURES = (AssertionError, RuntimeError, OSError, Ended, RpcError, ToolFailed, subprocess.SubprocessError)
"""What a step that does not succeed raises."""

LEAVES_WITHIN = 20.0  # seconds until a seat that is still there has stayed behind; a busy machine is no reason
RECOVERY_TIMEOUT = 20.0  # seconds for a new daemon


def main() -> int:
    """0 if all was shown as promised."""
    parser = argparse.ArgumentParser(prog="python -m bench.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave daemon and board running and say how to use them")
    keep = parser.parse_args().keep
    stage = Stage(Console(highlight=False))
    began = time.perf_counter()
    try:
        cast = Cast()
        with _curtain(cast):
            proven = _play(stage, cast)
            if keep:
                cast.keep()
        left = "" if keep else cast.left_behind()
        assert not left, f"left behind: {left}"
    except KeyboardInterrupt:
        stage.bad("Interrupted. Everything was ended and removed.")
        return 130
    except FAILURES as failure:
        stage.bad(f"The demonstration failed: {failure}")
        return 1
    _summary(stage, proven, time.perf_counter() - began, keep)
    if keep:
        _explain(stage, cast)
    return 0


@contextlib.contextmanager
def _curtain(cast: Cast) -> Iterator[None]:
    """End everything, and on a failure show what the daemon said."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    except FAILURES:
        _last_words(cast)
        raise
    finally:
        cast.close()


def _play(stage: Stage, cast: Cast) -> list[str]:
    """All acts; returns what they proved, one sentence each."""
    stage.console.print("[bold]pursersd[/]: one daemon for all conversations that wait on a Pursers board")
    return [
        *_setting(stage, cast),
        *_wake(stage, cast),
        *_list(stage, cast),
        *_kill_daemon(stage, cast),
        *_kill_host(stage, cast),
        *_goodbye(stage, cast),
    ]


def _setting(stage: Stage, cast: Cast) -> list[str]:
    stage.act(
        "The setting",
        "One daemon with a board of its own on a real Pursers Central, three hosts with a conversation each.",
    )
    with stage.step("pursersctl local up", "The daemon is up, and it serves a board") as notes:
        cast.open_board()
        notes.append(f"“{BOARD}” at {cast.board['url']}, daemon: pid {cast.home.daemon_pid()}")
    with stage.step("Starting three hosts", "Three hosts have the tools"):
        cast.start_hosts()
        told = {name: conversation.ready() for name, conversation in cast.conversations.items()}
    rows: list[Row] = [(name, said["protocol"], str(len(said["tools"]))) for name, said in told.items()]
    stage.table(("conversation", "protocol", "tools"), rows)
    stage.aside(", ".join(sorted({tool for said in told.values() for tool in said["tools"]})))
    return []


def _wake(stage: Stage, cast: Cast) -> list[str]:
    stage.act("A ticket wakes everybody", "Each model calls a2a_wait and blocks. Then somebody creates a ticket.")
    with stage.step("Calling a2a_wait", "Three conversations wait") as notes:
        cast.start_waits()
        until(lambda: cast.streams() == 2, RECOVERY_TIMEOUT, "there are two streams to Central")
        notes.append("2 streams to Central")
    began = time.perf_counter()
    ticket_id = cast.create_ticket("Say hello to the board")
    stage.good(f"Ticket {ticket_id} created")
    _show_wakes(stage, cast, ticket_id, began)
    return ["A new ticket wakes every waiting conversation, through two streams to Central for all of them."]


def _list(stage: Stage, cast: Cast) -> list[str]:
    stage.act("Who is there?", "They wait again, from where they left off.")
    with stage.step("Calling a2a_wait", "Three conversations wait"):
        cast.start_waits()
    listed = cast.home.ctl("ps")
    assert listed.returncode == 0, f"pursersctl ps failed: {listed.stderr}"
    stage.output("pursersctl ps", listed.stdout)
    shims = [psutil.Process(row["shim_pid"]) for row in cast.home.ps()]
    daemon = [psutil.Process(cast.home.daemon_pid())]
    each = usage.memory_mib(shims)[0] / len(shims)
    stage.good(f"Memory: {usage.memory_mib(daemon)[0]:.0f} MiB for the daemon, {each:.0f} MiB for each conversation")
    return []


def _kill_daemon(stage: Stage, cast: Cast) -> list[str]:
    stage.act(
        "The daemon dies in the middle of the waits", "SIGKILL, and a ticket is created before anybody can recover."
    )
    victim = psutil.Process(cast.home.daemon_pid())
    victim.kill()
    began = time.perf_counter()
    stage.good(f"kill -9 {victim.pid}")
    ticket_id = cast.create_ticket("Work that came while the daemon was dead")
    stage.good(
        f"Ticket {ticket_id} created at Central, which goes on without it",
        f"{(time.perf_counter() - began) * 1000:.0f} ms later",
    )
    with stage.step(
        "Waiting for the same calls to return", "The same calls returned it; no host saw an error"
    ) as notes:
        answered = {name: conversation.woken(ticket_id) for name, conversation in cast.conversations.items()}
        heir = until(cast.home.daemon_pid, RECOVERY_TIMEOUT, "there is a daemon again")
        assert heir != victim.pid, "the lock still names the dead daemon"
        notes.append(f"new daemon: pid {heir}")
    stage.table(
        ("conversation", "after the kill"), [(n, f"{(at - began) * 1000:.0f} ms") for n, at in answered.items()]
    )
    return ["A daemon that dies loses nothing: the waits that were blocking returned the ticket created meanwhile."]


def _kill_host(stage: Stage, cast: Cast) -> list[str]:
    stage.act("A host dies in the middle of its wait", "SIGKILL; nobody says goodbye. Its seat must not stay behind.")
    with stage.step("Calling a2a_wait", "Three conversations wait"):
        cast.start_waits()
    name = next(iter(cast.conversations))
    host = cast.conversations[name].host
    shim = psutil.Process(cast.seats()[name]["shim_pid"])
    host.kill(signal.SIGKILL)
    began = time.perf_counter()
    stage.good(f"kill -9 {host.process.pid}, the host of {name}")
    with stage.step("Watching pursersctl ps", f"{name} has left ps, the others still wait"):
        until(lambda: name not in cast.seats(), LEAVES_WITHIN, f"{name} leaves ps")
        until(lambda: not is_alive(shim), LEAVES_WITHIN, f"the shim of {name} ends")
        took = time.perf_counter() - began
        cast.close_host(name)
        others = {seat: row["state"] for seat, row in cast.seats().items()}
        assert others == dict.fromkeys(cast.conversations, "waiting"), f"the others do not wait: {others}"
    return [f"A host that dies takes its seat with it, here after {took:.1f} s, and disturbs nobody."]


def _goodbye(stage: Stage, cast: Cast) -> list[str]:
    stage.act("Goodbye", "The other hosts close their conversations in the middle of their waits.")
    with stage.step("Closing", "Hosts and shims have ended, ps is empty"):
        for conversation in cast.conversations.values():
            conversation.host.close_stdin()
        for name, conversation in list(cast.conversations.items()):
            status = conversation.host.wait(10)
            assert status == 0, f"{name}'s host ended with {status}: {conversation.host.stderr[-1000:]}"
            cast.close_host(name)
        until(lambda: not cast.seats(), LEAVES_WITHIN, "ps is empty")
    return ["Conversations that end in the middle of a wait leave no process."]


def _show_wakes(stage: Stage, cast: Cast, ticket_id: str, began: float) -> None:
    answered = {name: conversation.woken(ticket_id) for name, conversation in cast.conversations.items()}
    rows: list[Row] = [(name, f"{(at - began) * 1000:.0f} ms") for name, at in answered.items()]
    stage.table(("conversation", "woke after"), rows)


def _summary(stage: Stage, proven: list[str], took_s: float, keep: bool) -> None:
    stage.console.print("\n[bold]What this showed[/]")
    for sentence in [*proven, *([] if keep else ["Nothing is left: no process, no file."])]:
        stage.good(sentence)
    stage.console.print(f"\n[dim]{took_s:.0f} s in all. Proof in depth: make test. Figures: make bench.[/]")


def _explain(stage: Stage, cast: Cast) -> None:
    """How to use what was left running, without showing a secret."""
    server = {"command": SHIM, "env": cast.settings("me")}
    ctl = f"PURSERSD_HOME={shlex.quote(str(cast.home.folder))} {CTL}"
    stage.console.print("\n[bold]Daemon and board are still there.[/] Give this to a host as an MCP server:\n")
    _plain(stage, json.dumps({"mcpServers": {"pursers": server}}, indent=2))
    stage.console.print("\nAsk its model to call a2a_wait. Then create a ticket, and see who waits:\n")
    _plain(stage, f"{ctl} local ticket 'Say hello'")
    _plain(stage, f"{ctl} ps")
    stage.console.print("\nWhen you have had enough:\n")
    _plain(stage, f"{ctl} stop && rm -r {shlex.quote(str(cast.home.folder))}")


def _last_words(cast: Cast) -> None:
    for log in sorted(cast.home.folder.rglob("*.log")):
        text = log.read_text(errors="replace").strip()
        if text:
            print(f"\n--- {log.name}\n{text[-3000:]}", file=sys.stderr)


def _plain(stage: Stage, text: str) -> None:
    stage.console.print(text, markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
