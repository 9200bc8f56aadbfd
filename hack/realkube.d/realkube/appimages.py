"""The images that the bundled examples name, out of Debian's packages: a real memcached, a real nginx, and a shell."""

from __future__ import annotations

from pathlib import Path

from realkube import archive, rootfs
from realkube.archive import Image
from realkube.nodeimage import furnished, with_shell

# Archive -> what its image is called in examples and reconcilers, whichever version Debian has.
NAMES = {
    "memcached": ("memcached:1.4.36-alpine",),
    "nginx": ("nginx:latest", "nginx:stable"),
}

_NGINX = """\
user www-data;
worker_processes 1;
pid /run/nginx.pid;
error_log /dev/stderr;
events {}
http {
    include /etc/nginx/mime.types;
    access_log /dev/stdout;
    server {
        listen 80;
        root /usr/share/nginx/html;
    }
}
"""


# Tells an image of ours, and whether it is of today's recipe.
LABEL = "kubectl-ctrl.recipe"


def memcached(debian: Path, folder: Path, out: Path, recipe: str) -> None:
    rootfs.cut_out(debian, folder, "/usr/bin/memcached")
    with_shell(debian, folder)
    furnished(folder, "root:x:0:0:root:/:/bin/sh\nmemcache:x:11211:11211::/:/bin/sh\n")
    # A number, so that kubelet sees that it is not root.
    config = {"Cmd": ["memcached"], "User": "11211", "Labels": {LABEL: recipe}}
    archive.write(folder, Image(names=NAMES["memcached"], config=config), out)


def nginx(debian: Path, folder: Path, out: Path, recipe: str) -> None:
    rootfs.cut_out(debian, folder, "/usr/sbin/nginx")
    with_shell(debian, folder)
    furnished(folder, "root:x:0:0:root:/:/bin/sh\nwww-data:x:33:33::/:/bin/false\n")
    rootfs.written(folder / "etc/group", "root:x:0:\nwww-data:x:33:\n")
    for file in ("etc/nginx/mime.types", "usr/share/nginx/html/index.html"):
        rootfs.copied(debian / file, folder / file)
    for name in ("var/lib/nginx", "var/log/nginx"):
        (folder / name).mkdir(parents=True)
    rootfs.written(folder / "etc/nginx/nginx.conf", _NGINX)
    config = {"Cmd": ["nginx", "-g", "daemon off;"], "StopSignal": "SIGQUIT", "Labels": {LABEL: recipe}}
    archive.write(folder, Image(names=NAMES["nginx"], config=config), out)
