"""Checks that help and completion import nothing slow: `startup.py ROOT` runs them and reads their imports."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HEAVY = {"aiohttp", "kubernetes", "sqlite3"}
HELP = "import sys; from kubectl_ctrl.cli.main import main; sys.exit(main(sys.argv[1:]))"
COMPLETION = "import sys; from kubectl_ctrl.cli.completion.main import main; sys.exit(main())"
# Program, its arguments, and the packages that it must not import.
WAYS = (
    (HELP, ("--help",), HEAVY | {"rich"}),
    (HELP, ("options",), HEAVY),
    (HELP, ("version",), HEAVY),
    (COMPLETION, ("",), HEAVY | {"asyncio", "rich"}),
    (COMPLETION, ("run", ""), HEAVY | {"asyncio", "rich"}),
    (COMPLETION, ("run", "--context", ""), HEAVY | {"asyncio", "rich"}),
    (COMPLETION, ("trace", "foo/"), (HEAVY | {"asyncio", "rich"}) - {"sqlite3"}),  # it reads the recording
)


def imported(root: Path, program: str, words: tuple[str, ...]) -> tuple[int, set[str]]:
    """The exit code and the imported top-level packages."""
    command = [sys.executable, "-X", "importtime", "-c", program, *words]
    done = subprocess.run(
        command, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    lines = done.stderr.decode(errors="replace").splitlines()
    return done.returncode, {
        line.rpartition("|")[2].strip().partition(".")[0] for line in lines if line.startswith("import time:")
    }


def problems(root: Path) -> Iterator[str]:
    for program, words, heavy in WAYS:
        name = "completion of" if program is COMPLETION else "kubectl ctrl"
        code, packages = imported(root, program, words)
        if code:
            yield f"`{name} {' '.join(words)}` exited with code {code}."
        yield from (f"`{name} {' '.join(words)}` imports {package}." for package in sorted(packages & heavy))


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(bool(found))
