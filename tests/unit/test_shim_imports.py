"""What a shim loads: the standard library's cheap part and nothing else."""

import json
import subprocess
import sys

FORBIDDEN = {"asyncio", "subprocess", "pathlib", "typing", "dataclasses", "logging", "re", "threading", "argparse"}
FORBIDDEN |= {"contextlib", "random", "tempfile", "hashlib", "inspect", "traceback", "weakref", "importlib.metadata"}

# Everything that main() imports, too, without running it.
SHIM = "import pursers_shim.__main__, pursers_shim.relay, pursers_shim.early, pursers_shim.exchange, signal"
BARE = "import json, socket, select"


def loaded(code: str) -> set[str]:
    """Modules in a fresh interpreter after `code`."""
    shown = subprocess.check_output(
        [sys.executable, "-c", f"{code}\nimport sys, json\nprint(json.dumps([*sys.modules]))"]
    )
    names = json.loads(shown)
    return set(names)


def test_the_shim_imports_nothing_third_party_and_nothing_heavy() -> None:
    more = loaded(SHIM) - loaded(BARE)
    foreign = {name for name in more if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {name.partition(".")[0] for name in foreign} == {"pursers_shim"}
    assert not more & FORBIDDEN
    assert {name for name in more if not name.startswith("pursers_shim")} <= {"fcntl", "signal", "struct", "_struct"}
