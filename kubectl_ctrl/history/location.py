"""The file of a user's own recording."""

from __future__ import annotations

from pathlib import Path

from kubectl_ctrl.user import User


def recording_file(user: User) -> Path:
    """The recording that `run` writes, and that others read, where no other is named."""
    return user.state / "history.db"
