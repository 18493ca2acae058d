"""The hosts from npm, in a scratch folder: everything that npm writes lies there, too."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from hosts.known import Host
from rig import processes

INSTALL_TIMEOUT = 900.0  # seconds; on a quiet machine half a minute


class OutOfReach(Exception):
    """The hosts cannot be had here; the text says why."""


def install(folder: Path, hosts: Iterable[Host]) -> Path:
    """Install what is missing below `folder`; returns the folder of the programs. Raises OutOfReach."""
    programs = folder / "node_modules" / ".bin"
    missing = [host for host in hosts if not (programs / host.program).exists()]
    if not missing:
        return programs
    npm = shutil.which("npm")
    if npm is None:
        raise OutOfReach("npm is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"HOME": str(folder), "npm_config_cache": str(folder / "cache"), "npm_config_update_notifier": "false"}
    registry = {name: value for name, value in os.environ.items() if _is_of_the_registry(name)}
    words = ["install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix", str(folder)]
    done = subprocess.run(
        [npm, *words, *(host.package for host in missing)],
        env=processes.environment({**registry, **settings}),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_TIMEOUT,
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise OutOfReach(f"npm cannot install them: {' '.join(said[:3])[:300]}")
    return programs


def _is_of_the_registry(name: str) -> bool:
    """Whether a variable says where and how npm finds its registry."""
    return name.lower() in ("npm_config_registry", "https_proxy", "http_proxy", "no_proxy", "node_extra_ca_certs")
