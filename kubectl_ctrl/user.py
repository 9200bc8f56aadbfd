"""The user's environment, home and folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kubectl_ctrl.value import Value

_NAME = "kubectl-ctrl"


class User(Value):
    """The user who runs the command. platformdirs, which finds the folders, is loaded when one is first needed."""

    environ: Mapping[str, str]

    @property
    def home(self) -> Path:
        return Path(self.environ.get("HOME") or Path.home())

    @property
    def state(self) -> Path:
        """The folder of locks, recordings and clusters."""
        from platformdirs import user_state_path

        return user_state_path(_NAME)

    @property
    def cache(self) -> Path:
        """The folder of files that can be recreated: downloaded programs, names for completion."""
        from platformdirs import user_cache_path

        return user_cache_path(_NAME)

    @property
    def config_file(self) -> Path:
        from platformdirs import user_config_path

        return user_config_path(_NAME) / "config.yaml"
