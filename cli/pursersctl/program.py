"""The entry point: what must hold at any moment of a command, also while the command line is still being loaded."""

import sys

INTERRUPTED = 130
"""What shells say of a program that SIGINT has ended."""


def main() -> None:
    """Run `pursersctl`; ends with one of the exit codes in docs/cli.md."""
    try:
        from pursersctl.__main__ import main as command_line  # here, because it takes a while

        command_line()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except UnicodeEncodeError:
        # A word of the system that is not UTF-8, or that a locale without UTF-8 made something else of. It is not repeated
        # here: it may be a credential.
        sys.exit(
            "A path, a variable or an argument is not UTF-8, so it can be neither printed nor told to the daemon. "
            "If it is UTF-8, the locale is not: set PYTHONUTF8=1."
        )
