"""The process that `memory` measures: keeps Pods in one of several forms and prints KB of resident memory for each."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from pods import events, filled  # noqa: E402 - after the path is set

from kubectl_ctrl.cli.foreground.memory import relax  # noqa: E402

_COUNT = 5_000


def resident() -> int:
    """KB."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def main() -> None:
    relax()
    how, versions = sys.argv[1], int(sys.argv[2])
    alone = how == "metadata"
    # A small run first: the memory of the program itself does not count.
    asyncio.run(filled(events(100, metadata_only=alone), 100, metadata_only=alone))
    before = resident()
    lines = events(_COUNT, versions=versions, metadata_only=alone)
    if how == "plain":
        held: object = [json.loads(line) for line in lines]
    else:
        held = asyncio.run(filled(lines, _COUNT * versions, metadata_only=alone))
    print((resident() - before) / _COUNT)
    del held


main()
