"""The daemon's log: one file with a ceiling, or stderr; no credential ever in it.

The Redactor is a last fence. Credentials travel as secret.Secret, which shows only a fingerprint; what looks like a bearer
token or a door nevertheless is blanked before it is written.

Which conversation a line concerns is bound to the running task, and tasks that it starts inherit it.
"""

import contextlib
import logging
import logging.handlers
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from pursersd.errors import OwnershipError
from pursersd.rules.configuration import DEFAULTS
from pursersd.rules.repeated import Repeated
from pursersd.secret import blanked

MAX_BYTES = DEFAULTS.log_max_bytes
"""Size of a log file; with its KEPT predecessors that is the most that the log takes."""

KEPT = DEFAULTS.log_kept

LONGEST = 2000
"""Characters of a line before its traceback, about; texts from outside may be longer (RB-AUX-004)."""


_concerned: ContextVar[str | None] = ContextVar("concerned", default=None)


@contextmanager
def concerning(conversation: str | None) -> Iterator[None]:
    """Within it, this task's lines carry the id of a conversation; None for what serves several."""
    token = _concerned.set(conversation)
    try:
        yield
    finally:
        _concerned.reset(token)


class Redactor(logging.Formatter):
    """Formats a record and blanks everything that looks like a credential, in tracebacks too."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, redacted; newlines are kept only in tracebacks."""
        return blanked(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line before its traceback: one line, whatever names and texts from outside are in it."""
        concerned = _concerned.get()
        if concerned is not None and concerned not in record.message:
            record.message = f"{concerned}: {record.message}"
        left_out = getattr(record, "left_out", 0)
        if left_out:
            record.message += f" ({left_out} times more since it was written last)"
        line = super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")
        if len(line) <= LONGEST:
            return line
        whole = blanked(line)  # a credential that is cut in two would not be recognised
        return whole if len(whole) <= LONGEST else f"{whole[:LONGEST]}… ({len(line)} characters)"


class Fewer(logging.Filter):
    """Leaves out lines that come again and again; the next one that is written says how many there were."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._repeated = Repeated()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is to be written. Details for debugging always are."""
        if record.levelno < logging.INFO:
            return True
        line = f"{_concerned.get()} {record.name} {record.getMessage()}"
        left_out = self._repeated.admit(line, self._clock())
        if left_out:
            record.left_out = left_out
        return left_out is not None


@dataclass(frozen=True, slots=True)
class Trouble:
    """The log cannot be written."""

    text: str
    lost: int
    """Lines that were lost, in all."""
    since_s: float


class LogFile(logging.handlers.RotatingFileHandler):
    """The log file. A line that cannot be written is counted and given up: nothing else may suffer from it.

    A file that somebody moved or deleted is made anew.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, maxBytes=MAX_BYTES, backupCount=KEPT)
        self._lost = 0
        self._error: str | None = None
        self._failing_since = 0.0

    @property
    def trouble(self) -> Trouble | None:
        """Why the newest line is not in the file."""
        if self._error is None:
            return None
        return Trouble(self._error, self._lost, time.monotonic() - self._failing_since)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        if self.stream is not None and not self._is_in_place(self.stream.fileno()):
            self._let_go()
        before = self._lost
        super().emit(record)
        if self._lost == before:
            self._error = None

    def handleError(self, record: logging.LogRecord) -> None:
        """Nothing goes to stderr: nobody bounds what lies behind it."""
        error = sys.exc_info()[1]
        if self._error is None:
            self._failing_since = time.monotonic()
        self._lost += 1
        self._error = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        self._let_go()

    def _is_in_place(self, stream: int) -> bool:
        try:
            found = os.stat(self.baseFilename)
        except OSError:
            return False
        ours = os.fstat(stream)
        return (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)

    def _let_go(self) -> None:
        """Open the file again for the next line."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()

    def _open(self):  # type: ignore[no-untyped-def]
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        return super()._open()


def trouble() -> Trouble | None:
    """Why the log cannot be written; None while it can."""
    found = (handler.trouble for handler in logging.getLogger().handlers if isinstance(handler, LogFile))
    return next(found, None)


def adjust(level: str, max_bytes: int, kept: int) -> None:
    """Log from this level on, into a file of at most this size with this number of predecessors."""
    root = logging.getLogger()
    root.setLevel(level.upper())
    for handler in root.handlers:
        if isinstance(handler, LogFile):
            handler.maxBytes, handler.backupCount = max_bytes, kept


def set_up(file: str | None, level: str = "INFO") -> None:
    """Log to `file` (made with mode 0600, its folder with 0700) or, with None, to stderr.

    Raises OwnershipError when the file cannot be written.
    """
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler()
    else:
        try:
            handler = LogFile(file)
        except OSError as error:
            raise OwnershipError(
                f"The log {file} cannot be written: {error.strerror}. Make it writable for you, or start with --foreground."
            ) from error
    handler.addFilter(Fewer())
    handler.setFormatter(Redactor("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # The libraries tell every request; what matters of it our own modules say.
    for noisy in ("httpx2", "httpcore2", "mcp", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
