"""A program at a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path


def at_terminal(program: Path, *args: str, env: Mapping[str, str], columns: int = 80) -> tuple[int, str]:
    """Run it; its exit code and its output."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([str(program), *args], env=env, stdin=subprocess.DEVNULL, stdout=its, stderr=its) as process:
        os.close(its)
        shown = b""
        while more := _read(ours):
            shown += more
        code = process.wait(60)
    os.close(ours)
    return code, shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # on Linux, after the last writer has closed it
        return b""
