"""The daemon's log: one file with a ceiling, or stderr; no credential ever in it.

The Redactor is a last fence. Secrets travel as settings.Secret, which shows only a fingerprint; what looks like a bearer
token or a door nevertheless is blanked before it is written.
"""

import logging
import logging.handlers
import os
import re
from pathlib import Path

from pursersd.errors import OwnershipError

MAX_BYTES = 2 * 1024 * 1024
"""Size of a log file; with its KEPT predecessors that is the most that the log takes."""

KEPT = 3

_SECRETS = re.compile(r"eyJ[\w-]{5,}\.[\w-]*\.[\w-]*|prs1\.[\w-]+|(?i:bearer)\s+[\w.~+/=-]{8,}")


class Redactor(logging.Formatter):
    """Formats a record and blanks everything that looks like a credential, in tracebacks too."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, redacted; newlines are kept only in tracebacks."""
        return _SECRETS.sub("<secret>", super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line before its traceback: one line, whatever names and texts from outside are in it."""
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")


def set_up(file: str | None, level: str = "INFO") -> None:
    """Log to `file` (made with mode 0600, its folder with 0700) or, with None, to stderr.

    Raises OwnershipError when the file cannot be written.
    """
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler()
    else:
        try:
            Path(file).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
            handler = logging.handlers.RotatingFileHandler(file, maxBytes=MAX_BYTES, backupCount=KEPT)
        except OSError as error:
            raise OwnershipError(
                f"The log {file} cannot be written: {error.strerror}. Make it writable for you, or start with --foreground."
            ) from error
    handler.setFormatter(Redactor("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # The libraries tell every request; what matters of it our own modules say.
    for noisy in ("httpx2", "httpcore2", "mcp", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
