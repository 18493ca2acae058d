"""log: a ceiling on disk, one line per message, and no credential, whoever wrote it into the text."""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from pursersd import log as daemon_log
from pursersd.errors import OwnershipError
from pursersd.log import KEPT, LONGEST, Redactor, concerning, set_up
from pursersd.rules.repeated import ALLOWED
from pursersd.secret import Secret

TOKEN = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiJhIn0.c2ln-bmF0_dXJl"
DOOR = "prs1.eyJiIjoiYiIsInIiOiJ3b3JrZXIifQ"
OPAQUE = "Zm9vYmFyYmF6cXV4"
LOG = logging.getLogger("pursersd.test")


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was before afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    noisy = {name: logging.getLogger(name).level for name in ("httpx2", "httpcore2", "mcp", "asyncio")}
    try:
        yield root
    finally:
        for handler in root.handlers:
            if handler not in handlers:
                handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)
        for name, was in noisy.items():
            logging.getLogger(name).setLevel(was)


@pytest.fixture
def file(root: logging.Logger, tmp_path: Path) -> Path:
    """A log file that is in use."""
    file = tmp_path / "log" / "pursersd.log"
    set_up(str(file))
    return file


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"refused {TOKEN} of x", "refused <secret> of x"),
        (f"{TOKEN}\n{TOKEN}", r"<secret>\n<secret>"),
        (f"header Authorization: Bearer {OPAQUE}", "header Authorization: <secret>"),
        (f"'authorization': 'bearer {OPAQUE}'", "'authorization': '<secret>'"),
        (f"door {DOOR} stored", "door <secret> stored"),
        (f"http://host/?token={TOKEN}", "http://host/?token=<secret>"),
        (f"{{'t': '{TOKEN}'}}", "{'t': '<secret>'}"),
        ("the bearer of news", "the bearer of news"),
        ("eyJ is how it begins", "eyJ is how it begins"),
        ("prs1. alone", "prs1. alone"),
    ],
)
def test_what_looks_like_a_credential_is_blanked(text: str, shown: str) -> None:
    record = logging.LogRecord("n", logging.INFO, "f", 1, "%s", (text,), None)
    assert Redactor("%(message)s").format(record) == shown


def test_tracebacks_are_redacted_and_keep_their_lines(file: Path) -> None:
    try:
        raise ValueError(f"bad {TOKEN}")
    except ValueError:
        LOG.exception("failed with %s", DOOR)
    text = file.read_text()
    assert TOKEN not in text
    assert DOOR not in text
    assert "failed with <secret>\nTraceback (most recent call last):\n" in text
    assert text.endswith("ValueError: bad <secret>\n")


def test_a_secret_object_shows_its_fingerprint_only(file: Path) -> None:
    secret = Secret(OPAQUE)
    LOG.info("with %s and %r", secret, secret)
    LOG.info(f"and {secret:>40}")
    text = file.read_text()
    assert OPAQUE not in text
    assert text.count(secret.fingerprint) == 3


def test_a_message_is_one_line(file: Path) -> None:
    """A name from outside cannot forge a line."""
    LOG.info("host %s began", "x\n2026-01-01 00:00:00,000 ERROR   pursersd: forged\r\nmore")
    lines = file.read_text().splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(r"host x\n2026-01-01 00:00:00,000 ERROR   pursersd: forged\r\nmore began")


@pytest.mark.parametrize("before", [LONGEST - len(TOKEN), LONGEST - len(TOKEN) // 2 - 60, 10])
def test_a_long_message_is_cut_but_no_credential_in_two(file: Path, before: int) -> None:
    LOG.info("%s %s %s", "x" * before, TOKEN, "y" * 5000)
    (line,) = file.read_text().splitlines()
    assert len(line) < LONGEST + 30
    assert re.search(r"… \((\d+) characters\)$", line)
    assert "eyJ" not in line


def test_the_file_is_private_and_appended_to(file: Path, root: logging.Logger) -> None:
    LOG.warning("first")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    root.handlers[0].close()
    set_up(str(file))
    LOG.warning("second")
    assert [line.split(": ")[-1] for line in file.read_text().splitlines()] == ["first", "second"]
    assert " WARNING pursersd.test: first" in file.read_text()


def test_the_log_has_a_ceiling(root: logging.Logger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_log, "MAX_BYTES", 1000)
    file = tmp_path / "pursersd.log"
    before = os.umask(0o077)  # as the daemon sets it at its start
    try:
        set_up(str(file))
        for number in range(200):
            LOG.info("line %d %s", number, TOKEN)
    finally:
        os.umask(before)
    found = sorted(tmp_path.iterdir())
    assert [f.name for f in found] == ["pursersd.log", *(f"pursersd.log.{n}" for n in range(1, KEPT + 1))]
    assert all(f.stat().st_size <= 1000 and f.stat().st_mode & 0o777 == 0o600 for f in found)
    assert all(TOKEN not in f.read_text() for f in found)
    assert file.read_text().splitlines()[-1].endswith("line 199 <secret>")


def test_a_log_that_cannot_be_written_is_said(root: logging.Logger, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("in the way")
    before = list(root.handlers)
    with pytest.raises(OwnershipError, match=r"cannot be written: File exists.*--foreground"):
        set_up(str(tmp_path / "log" / "pursersd.log"))
    with pytest.raises(OwnershipError, match="cannot be written: Is a directory"):
        set_up(str(tmp_path))
    assert root.handlers == before


def test_without_a_file_it_goes_to_stderr(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    set_up(None, "DEBUG")
    LOG.debug("detail")
    captured = capsys.readouterr()
    assert captured.err.endswith("DEBUG   pursersd.test: detail\n")
    assert not captured.out


def test_only_one_handler_and_quiet_libraries(root: logging.Logger, tmp_path: Path) -> None:
    set_up(str(tmp_path / "one"))
    first = root.handlers[0]
    set_up(str(tmp_path / "two"), "DEBUG")
    assert len(root.handlers) == 1
    first.close()
    logging.getLogger("httpx2").info("each request")
    logging.getLogger("mcp.server").info("each request")
    LOG.info("ours")
    assert "each request" not in (tmp_path / "two").read_text()
    assert "ours" in (tmp_path / "two").read_text()
    assert not (tmp_path / "one").read_text()


class Full:
    """A disk that is full: nothing can be written to the file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = True
        emit = logging.StreamHandler.flush

        def flush(handler: logging.StreamHandler[Any]) -> None:
            if self.is_full and isinstance(handler, daemon_log.LogFile):
                raise OSError(28, "No space left on device")
            emit(handler)

        monkeypatch.setattr(logging.StreamHandler, "flush", flush)


def test_a_log_that_cannot_be_written_any_more_is_counted_and_goes_on_by_itself(
    root: logging.Logger, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = Full(monkeypatch)
    for number in range(3):
        root.info("line %d", number)
    found = daemon_log.trouble()
    assert found is not None
    assert (found.text, found.lost) == ("No space left on device", 3)
    assert found.since_s >= 0
    disk.is_full = False
    root.info("room again")
    assert daemon_log.trouble() is None
    assert file.read_text().count("room again") == 1
    assert capsys.readouterr().err == ""  # nobody bounds what lies behind stderr


def test_equal_lines_are_counted_and_not_repeated(
    root: logging.Logger, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    (fewer,) = next(handler for handler in root.handlers if isinstance(handler, daemon_log.LogFile)).filters
    monkeypatch.setattr(fewer, "_clock", lambda: now[0])
    root.setLevel(logging.DEBUG)
    for second in range(61):
        now[0] = float(second)
        for conversation in ("c-1", "c-2"):
            with concerning(conversation):
                LOG.warning("refused a link: %s", "no room")
        LOG.debug("a detail")
    now[0] = 100.0
    with concerning("c-1"):
        LOG.warning("refused a link: %s", "no room")
    lines = file.read_text().splitlines()
    assert [sum(who in line for line in lines) for who in ("c-1", "c-2", "a detail")] == [ALLOWED + 1, ALLOWED, 61]
    assert lines[-1].endswith(f"c-1: refused a link: no room ({61 - ALLOWED} times more since it was written last)")


@pytest.mark.parametrize("how", ["deleted", "moved", "folder deleted"])
def test_a_log_that_is_taken_away_is_made_anew(root: logging.Logger, file: Path, how: str) -> None:
    root.info("before")
    match how:
        case "deleted":
            file.unlink()
        case "moved":
            file.rename(file.with_name("aside"))
        case "folder deleted":
            file.unlink()
            file.parent.rmdir()
    root.info("after")
    assert "after" in file.read_text()
    assert "before" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert daemon_log.trouble() is None


def test_a_line_carries_the_conversation_that_it_concerns_also_from_tasks_below(file: Path) -> None:
    async def below(text: str) -> None:
        LOG.info(text)

    async def play() -> None:
        with concerning("c-1"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(below, "from a task")
                with concerning(None):
                    tasks.start_soon(below, "for everybody")
            LOG.warning("the lease of %s is kept", "c-1")
        LOG.info("of nobody")

    anyio.run(play)
    lines = [line.partition("pursersd.test: ")[2] for line in file.read_text().splitlines()]
    assert lines == [
        "c-1: from a task",
        "for everybody",
        "the lease of c-1 is kept",
        "of nobody",
    ]
