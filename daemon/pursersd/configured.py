"""The configuration of this daemon: read from its file at the start and at each reload, and in force until the next one."""

import os
from collections.abc import Mapping

from pursersd import api, files
from pursersd.errors import ConfigurationError
from pursersd.rules.configuration import KEYS, Configuration, Key, Resolved, Setting, Value, resolve

FILE_LIMIT = 1024 * 1024
"""Bytes that are read of the file."""

Flags = Mapping[str, tuple[str, Value]]
"""By key: the flag that sets it, and its value."""


def config_file(home: str | None) -> str:
    """The file of the private instance `home`, or of the user's one daemon. Creates nothing."""
    if home is not None:
        return home + "/config.toml"
    import platformdirs  # here, because most control commands do not need it

    return platformdirs.user_config_dir("pursersd", appauthor=False) + "/config.toml"


class Configured:
    """What counts at this moment: `now`. Changed by `reload` alone."""

    def __init__(self, file: str, environ: Mapping[str, str], flags: Flags) -> None:
        self.file = file
        self._environ = {key.variable: environ[key.variable] for key in KEYS if key.variable in environ}
        self._flags = flags
        self._resolved = self._read()
        self.problems = self._resolved.problems
        """What is wrong with the file, as it was when it was last read."""

    @property
    def now(self) -> Configuration:
        """The values in force."""
        return self._resolved.configuration

    @property
    def notes(self) -> tuple[str, ...]:
        """Variables that are ignored."""
        return self._resolved.notes

    def reload(self) -> api.Reloaded:
        """Read the file again. What needs a restart stays as it is.

        Raises ConfigurationError for a file with anything wrong in it; then nothing changes at all.
        """
        found = self._read()
        self.problems = found.problems
        if found.problems:
            raise ConfigurationError("\n".join((*found.problems, "Nothing was changed.")))
        changes = [
            api.ConfigChange(key=key.name, before=before, after=after, needs_restart=key.needs_restart)
            for key in KEYS
            if (before := self._resolved.settings[key.name].value) != (after := found.settings[key.name].value)
        ]
        kept = {key.name: self._resolved.settings[key.name] for key in KEYS if key.needs_restart}
        self._resolved = Resolved({**found.settings, **kept}, (), found.notes)
        return api.Reloaded(file=self.file, exists=os.path.exists(self.file), changes=changes)

    def show(self) -> api.Config:
        """Every key with its value and origin, and what the file means now where that is something else."""
        found = self._read()
        rows = [_row(key, self._resolved.settings[key.name], found) for key in KEYS]
        return api.Config(
            file=self.file,
            exists=os.path.exists(self.file),
            rows=rows,
            problems=list(found.problems),
            notes=[*found.notes],
        )

    def _read(self) -> Resolved:
        try:
            text = files.read(self.file, FILE_LIMIT).decode()
        except FileNotFoundError:
            text = None
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            settled = resolve(self._flags, self._environ, None, self.file)
            return Resolved(settled.settings, (f"{self.file}: cannot be read: {why}",), settled.notes)
        return resolve(self._flags, self._environ, text, self.file)


def _row(key: Key, setting: Setting, found: Resolved) -> api.ConfigRow:
    later = found.settings[key.name].value
    return api.ConfigRow(
        key=key.name,
        value=setting.value,
        default=key.default,
        origin=setting.origin,
        name=setting.name,
        pending=later if later != setting.value and not found.problems else None,
        needs_restart=key.needs_restart,
    )
