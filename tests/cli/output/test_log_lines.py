"""The log of a run: which attempt a line belongs to, also a line of a library."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from kubectl_ctrl import CONFIGMAPS, Context, Request, controller
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.stage import Stage


@pytest.mark.parametrize("form", ["text", "json"])
def test_lines_of_libraries_carry_the_attempt_that_they_were_written_in(form: str) -> None:
    lines: list[str] = []
    library = logging.getLogger("aiohttp.client")

    async def reconcile(ctx: Context, request: Request) -> None:
        library.warning("A connection was closed.")
        await asyncio.create_task(ctx.in_thread(library.warning, "A file is old."))
        ctx.log.info("The object is fine.")

    async def play() -> None:
        stage = Stage()
        stage.server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}})
        async with stage.running(controller("toy", reconcile).for_(CONFIGMAPS), run_id="r7f3"):
            await stage.rest(1)
        library.warning("The session was closed.")

    with logging_to(lines.append, form=form, verbosity=0):
        run_virtual(play)
    said = ("A connection was closed.", "A file is old.", "The object is fine.")
    if form == "json":
        attempts = {one["message"]: one.get("attempt") for one in map(json.loads, lines)}
        assert attempts == {**dict.fromkeys(said, "r7f3-1"), "The session was closed.": None}
    else:
        inside = [line for line in lines if any(text in line for text in said)]
        assert len(inside) == 3
        assert all(line.count("attempt=r7f3-1") == 1 for line in inside)
        assert sum("attempt=" in line for line in lines) == 3
