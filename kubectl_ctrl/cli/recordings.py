"""Where recordings are, and how one is opened: what every verb that looks back has in common."""

from __future__ import annotations

from pathlib import Path

from kubectl_ctrl.cli import holder
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.model.record import Run

# A run tells every few seconds that it lives; of one on another machine nothing else can be known.
_SILENT = 120.0


def path(app: App) -> Path:
    """The recording that `run` writes to, where no other is named."""
    return app.state_dir / "history.db"


def opened(file: Path, now: float) -> Recording:
    """The recording in that file; what dead processes did not finish reads as interrupted."""

    def dead(run: Run) -> bool:
        if run.ended is not None:
            return True
        return holder.is_dead(run.holder) if holder.is_here(run.holder) else now - run.seen > _SILENT

    return Recording.open(file, dead=dead)
