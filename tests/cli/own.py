"""A user's own controller, as the tests of this room write it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

HEAD = """\
from kubectl_ctrl import CONFIGMAPS, PODS, SECRETS, Context, Request, Result, controller


async def reconcile(ctx: Context, request: Request) -> Result | None:
    return None


"""
MINE = HEAD + 'CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)\n'

Write = Callable[[str, str], Path]
