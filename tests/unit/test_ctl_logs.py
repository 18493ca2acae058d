"""pursersctl logs: the last lines, and what is added, across rotation and emptying."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import msgspec
import pytest

from pursersctl import logs
from pursersctl.logs import Follower
from rig.daemon import CTL, Home
from rig.wait import until
from unit.ctl_daemon import ScriptedDaemon
from unit.test_ctl_render import left


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        (home.folder / "log").mkdir()
        yield home


@pytest.fixture
def log(home: Home) -> Path:
    return home.folder / "log" / "pursersd.log"


class Following:
    """A running `pursersctl logs -f`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self.process = process
        self._output = process.stdout
        self._seen = b""

    def shows(self, text: str) -> None:
        """Wait until all output so far is exactly `text`."""
        until(lambda: self._read() == text.encode(), 60, f"the output is {text!r}")

    def stop_reading(self) -> None:
        self._output.close()

    def _read(self) -> bytes:
        self._seen += self._output.read() or b""
        return self._seen


@contextmanager
def following(home: Home, *arguments: str) -> Iterator[Following]:
    process = subprocess.Popen([CTL, "logs", "-f", *arguments], env=home.environment(), stdout=subprocess.PIPE)
    try:
        yield Following(process)
    finally:
        process.kill()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def lines(first: int, last: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, last + 1))


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ([], lines(951, 1000)),
        (["-n", "3"], lines(998, 1000)),
        (["--lines", "0"], ""),
        (["-n", "5000"], lines(1, 1000)),
    ],
)
def test_the_last_lines(home: Home, log: Path, arguments: list[str], shown: str) -> None:
    log.write_text(lines(1, 1000))
    done = home.ctl("logs", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, shown, "")


def test_more_lines_than_one_block(home: Home, log: Path) -> None:
    log.write_text(lines(1, 30000))
    assert home.ctl("logs", "-n", "20000").stdout == lines(10001, 30000)


@pytest.mark.parametrize("block", range(1, 12))
def test_a_line_is_whole_wherever_a_block_ends(log: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "BLOCK", block)
    log.write_text("first\nsecond\nthird\n")
    with log.open("rb") as file:
        follower = Follower(str(log), file)
        assert follower.last_lines(1) == b"third\n"
        assert follower.last_lines(2) == b"second\nthird\n"


def test_a_last_line_without_its_end_counts(home: Home, log: Path) -> None:
    log.write_text("one\ntwo\nthr")
    assert home.ctl("logs", "-n", "2").stdout == "two\nthr"


def test_an_empty_log(home: Home, log: Path) -> None:
    log.touch()
    done = home.ctl("logs")
    assert (done.returncode, done.stdout) == (0, "")


def test_no_log_says_where_it_would_be(home: Home, log: Path) -> None:
    done = home.ctl("logs")
    assert (done.returncode, done.stdout) == (1, "")
    assert str(log) in done.stderr


def test_what_a_terminal_would_obey_is_not_printed(home: Home, log: Path) -> None:
    log.write_bytes(b"client \x1b[2Jevil \xff joined\n\ttab\n")
    assert home.ctl("logs").stdout == "client �[2Jevil � joined\n    tab\n"


def test_follow_shows_what_is_added(home: Home, log: Path) -> None:
    log.write_text(lines(1, 10))
    with following(home, "-n", "1") as follower:
        follower.shows(lines(10, 10))
        with log.open("a") as file:
            file.write(lines(11, 12))
        follower.shows(lines(10, 12))


def test_follow_goes_on_after_a_rotation_and_loses_nothing(home: Home, log: Path) -> None:
    log.write_text(lines(1, 1))
    with following(home) as follower:
        follower.shows(lines(1, 1))
        with log.open("a") as file:
            file.write(lines(2, 2))
        log.rename(log.with_suffix(".log.1"))
        log.write_text(lines(3, 3))
        follower.shows(lines(1, 3))
        log.rename(log.with_suffix(".log.1"))
        log.write_text(lines(4, 4))
        follower.shows(lines(1, 4))


def test_what_was_written_just_before_a_rotation_is_not_lost(log: Path) -> None:
    class RotatedWhileWeLook(FileIO):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            if not data and not log.with_suffix(".log.1").exists():
                with log.open("ab") as file:
                    file.write(b"two\n")
                log.rename(log.with_suffix(".log.1"))
                log.write_bytes(b"three\n")
            return data or b""

    log.write_bytes(b"one\n")
    follower = Follower(str(log), RotatedWhileWeLook(log))
    try:
        assert b"".join(follower.added()) == b"one\ntwo\nthree\n"
    finally:
        follower.close()


def test_follow_goes_on_after_the_log_was_emptied(home: Home, log: Path) -> None:
    log.write_text(lines(1, 3))
    with following(home) as follower:
        follower.shows(lines(1, 3))
        log.write_text(lines(4, 4))
        follower.shows(lines(1, 4))


def test_follow_ends_when_nobody_reads_although_nothing_is_added(home: Home, log: Path) -> None:
    log.write_text(lines(1, 1))
    with following(home) as follower:
        follower.shows(lines(1, 1))
        follower.stop_reading()
        assert follower.process.wait(60) == 0


def test_follow_ends_quietly_with_ctrl_c(home: Home, log: Path) -> None:
    log.write_text(lines(1, 1))
    with following(home) as follower:
        follower.shows(lines(1, 1))
        follower.process.send_signal(signal.SIGINT)
        assert follower.process.wait(60) == 0


# --- of one conversation ------------------------------------------------------------------------------------------

ONE, OTHER = "c-5f0c8e21a9d4", "c-5f0c8e21a9d5"
STAMP = "2026-05-04 12:03:09,120 INFO    pursersd.x: "


def entry(text: str, *below: str) -> str:
    """A line of the log, and the traceback below it."""
    return "".join(f"{line}\n" for line in (STAMP + text, *below))


MINE = [
    entry(f"{ONE} began"),
    entry(f"{ONE}: tool failed", "Traceback (most recent call last):", '  File "x", line 1', "ValueError: no"),
    entry(f"the work lease of TK-1 on b ({OTHER}, {ONE}) is kept"),
]
NOT_MINE = [entry(f"{OTHER}: tool failed", "Traceback", f"ValueError: {ONE}"), entry("ready"), entry(f"x{ONE} {ONE}-y")]
MIXED = NOT_MINE[0] + MINE[0] + NOT_MINE[1] + MINE[1] + NOT_MINE[2] + MINE[2]


def test_only_what_concerns_a_conversation_with_its_tracebacks(home: Home, log: Path) -> None:
    log.write_text(MIXED)
    done = home.ctl("logs", "--conversation", ONE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "".join(MINE), "")
    assert home.ctl("logs", "--conversation", ONE[:5], "-n", "1000").stdout.count("\n") == MIXED.count("\n") - 2
    assert home.ctl("logs", "--conversation", ONE, "-n", "1").stdout == MINE[2]
    nothing = home.ctl("logs", "--conversation", "c-0")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert nothing.stderr == "No line of the log concerns c-0.\n"


def test_older_logs_count_too(home: Home, log: Path) -> None:
    log.with_suffix(".log.3").write_text(MINE[0])
    log.with_suffix(".log.1").write_text(NOT_MINE[1] + MINE[1])
    log.write_text(MINE[2])
    assert home.ctl("logs", "--conversation", ONE).stdout == "".join(MINE)


def test_follow_shows_only_what_concerns_it_also_after_a_rotation(home: Home, log: Path) -> None:
    log.write_text(MINE[0])
    with following(home, "--conversation", ONE) as follower:
        follower.shows(MINE[0])
        with log.open("a") as file:
            file.write(NOT_MINE[0] + MINE[1][:70])
            file.flush()
            file.write(MINE[1][70:])
        follower.shows(MINE[0] + MINE[1])
        log.rename(log.with_suffix(".log.1"))
        log.write_text(NOT_MINE[1] + MINE[2])
        follower.shows("".join(MINE))


def test_a_rotation_while_the_older_logs_are_read_doubles_nothing(log: Path) -> None:
    log.write_text(MINE[0])
    with log.open("rb") as file:
        log.rename(log.with_suffix(".log.1"))
        log.write_text(MINE[1])
        follower = Follower(str(log), file)
        assert b"".join(follower.everything()).decode() == MINE[0]
        assert b"".join(follower.added()).decode() == MINE[1]
        follower.close()


def test_a_seat_or_a_pid_means_its_conversation_also_one_that_has_ended(home: Home, log: Path) -> None:
    log.write_text(MIXED)
    unknown = {"error": {"code": "unknown_conversation", "text": "No conversation is meant by 'bench-w1'."}}
    row = {**msgspec.to_builtins(left(conversation=ONE))}
    answers = {"conversation": unknown, "ended": {"result": {"ended": [row], "schema": 1}}}
    with ScriptedDaemon(home.folder, answers=answers):
        for which in ("bench-w1", str(row["shim_pid"])):
            assert home.ctl("logs", "--conversation", which).stdout == "".join(MINE)
        done = home.ctl("logs", "--conversation", "nobody")
        assert (done.returncode, done.stderr) == (1, "No conversation is meant by 'bench-w1'.\n")
    done = home.ctl("logs", "--conversation", "bench-w1")
    assert (done.returncode, done.stdout) == (3, "")
