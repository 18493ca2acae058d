"""pursersctl.program: what ends any command in words, or without one, and never with a traceback."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from pursersctl import program
from rig.daemon import CTL, Home
from unit.ctl_daemon import ScriptedDaemon

COMMAND_LINE = "pursersctl.__main__"


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with Home() as home, ScriptedDaemon(home.folder, answers={"ps": {"result": {"seats": [], "schema": 1}}}):
        yield home


class Interrupted:
    """Ctrl-C while the command line is being loaded."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == COMMAND_LINE:
            raise KeyboardInterrupt
        return None


def test_an_interrupt_while_it_loads_ends_it_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, COMMAND_LINE, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted, *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert (ended.value.code, *capsys.readouterr()) == (130, "", "")


def test_a_word_that_is_not_utf8_is_refused_in_words(home: Home) -> None:
    argv = [CTL, "local", "ticket", os.fsdecode(b"caf\xe9")]
    done = subprocess.run(argv, env=home.environment(), capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "is not UTF-8" in done.stderr
    assert "caf" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full is needed")
@pytest.mark.parametrize("words", [["ps"], ["ps", "--json"]])
def test_an_answer_that_cannot_be_written_is_an_error(home: Home, words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([CTL, *words], env=home.environment(), stdout=full, stderr=subprocess.PIPE, timeout=30)
    assert (done.returncode, done.stderr) == (1, b"The answer cannot be written: No space left on device.\n")


def test_without_stdout_it_is_an_error(home: Home) -> None:
    argv = ["sh", "-c", 'exec "$0" ps >&-', CTL]
    done = subprocess.run(argv, env=home.environment(), capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (1, "The answer cannot be written: stdout is closed.\n")
