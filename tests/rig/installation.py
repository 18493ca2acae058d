"""The three programs installed a second time, in a folder of their own, where a test replaces them by other versions.

A light environment: copies of our packages in front of everything else that this interpreter has.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import TracebackType
from typing import Self

import pursers_shim
import pursersctl
import pursersd
from rig.daemon import Home
from rig.shim import ShimProcess

PACKAGES = (pursersd, pursers_shim, pursersctl)


class Installation:
    """Lies below `folder`; `home` is where its programs run. `close()` ends its shims."""

    def __init__(self, folder: Path, home: Home) -> None:
        self.folder = folder
        self.home = home
        self._shims: list[ShimProcess] = []
        self._code = folder / "code"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True, timeout=60)
        (site,) = (folder / "env" / "lib").glob("python3*/site-packages")
        (site / "code.pth").write_text(f"{self._code}\n{sysconfig.get_path('purelib')}\n{_others()}")
        self.install()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for shim in self._shims:
            shim.close()

    @property
    def python(self) -> str:
        """Its interpreter, which is what a shim of it starts a daemon with."""
        return str(self.folder / "env" / "bin" / "python")

    def install(self, *, version: str | None = None, protocol: tuple[int, int] | None = None) -> None:
        """Put the packages there, in the place of those that are, as another version or with another link protocol."""
        self.remove()
        for package in PACKAGES:
            source = Path(str(package.__file__)).parent
            shutil.copytree(source, self._code / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        if version is not None:
            for name in ("pursersd", "pursers_shim"):
                self._edit(f"{name}/__init__.py", r'__version__ = ".*"', f'__version__ = "{version}"')
        if protocol is not None:
            self._edit("pursers_shim/wire.py", r"PROTOCOL = \(\d+, \d+\)", f"PROTOCOL = {protocol}")

    def remove(self) -> None:
        """Take the packages away."""
        shutil.rmtree(self._code, ignore_errors=True)

    def shim(self, environment: dict[str, str]) -> ShimProcess:
        """A shim of the version that is installed now, with its handshake done."""
        shim = ShimProcess([self.python, "-m", "pursers_shim"], environment)
        self._shims.append(shim)
        shim.initialize()
        return shim

    def ctl(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run pursersctl of the version that is installed now."""
        return subprocess.run(
            [self.python, "-m", "pursersctl", *arguments],
            env=self.home.environment(role=None),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def _edit(self, file: str, pattern: str, text: str) -> None:
        path = self._code / file
        changed, count = re.subn(pattern, text, path.read_text())
        assert count == 1, f"{pattern} in {file}"
        path.write_text(changed)


def _others() -> str:
    """Further folders that this interpreter finds packages in, such as those of an editable installation."""
    return "".join(f"{entry}\n" for entry in sys.path if entry.endswith("site-packages"))
