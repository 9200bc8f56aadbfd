"""Process 1 of a machine, started by `unshare` in its own namespaces: `inside.py ROOT SCRATCH FOLDER USER COMMAND`.

Mounts the file systems of the kernel, brings up loopback, runs the command as the user, and reaps orphans. The
mounts and all processes end with this one.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def main() -> int:
    root, scratch, folder, user, command = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
    for place in sorted(scratch.iterdir()):
        mount("--bind", str(place), str(root / place.name.replace("+", "/")))
    mount("--types=proc", "proc", str(root / "proc"))
    mount("--types=devpts", "--options=newinstance,mode=620,ptmxmode=666", "devpts", str(root / "dev/pts"))
    mount("--types=tmpfs", "--options=mode=1777", "tmpfs", str(root / "dev/shm"))
    bring_up_loopback()
    os.chroot(root)
    child = os.fork()
    if not child:
        become(int(user))
        os.chdir(folder)
        os.execv("/bin/sh", ["sh", "-c", command])  # with the environment of the caller
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status) & 0xFF


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def bring_up_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def become(user: int) -> None:
    os.setsid()
    os.umask(0o022)
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


if __name__ == "__main__":
    sys.exit(main())
