"""`make demo` as somebody sees it who pipes it into a file."""

import subprocess
import sys
from pathlib import Path

from rig import processes

ROOT = Path(__file__).parents[2]


def test_the_demonstration_succeeds_and_leaves_nothing(tmp_path: Path) -> None:
    environment = processes.environment(
        {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "tests"), "TMPDIR": str(tmp_path)}
    )
    done = subprocess.run(
        [sys.executable, "-m", "bench.demo"], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    assert "Nothing is left: no process, no file." in done.stdout
    assert list(tmp_path.iterdir()) == []
