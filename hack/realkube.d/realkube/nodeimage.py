"""What goes into a node that kind makes: programs from Go modules, the base image, the images that its pods run.

The base image is what kind's images/base/Dockerfile makes, of kind's own files; the tarball is what kind's builder
takes for a release of Kubernetes.
"""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from realkube import Failed, archive, rootfs
from realkube.archive import Image
from realkube.build import KUBERNETES, Step, answer

# Its systemd 252 boots where there is cgroup v1 alone; 256 and later ones refuse to.
SUITE = "bookworm"
# What kind's own base image has, from the same distribution; the last three are for the images of the examples.
PACKAGES = (
    "bash,ca-certificates,conntrack,curl,dbus,e2fsprogs,ethtool,fuse-overlayfs,iproute2,iptables,iputils-ping,jq,kmod,"
    "libseccomp2,mount,nftables,pigz,procps,runc,socat,systemd,systemd-sysv,util-linux,"
    "busybox,memcached,nginx"
)

CONTAINERD = "v2.3.4"
_VERSION = f"-s -w -X github.com/containerd/containerd/v2/version.Version={CONTAINERD}"
TAGS = "no_btrfs,no_devmapper,no_zfs"

_CONTAINERD = "github.com/containerd/containerd/v2/cmd"
_CNI = "github.com/containernetworking/plugins/plugins"
_OURS = ("pause", "coredns", "netd", "crictl", "lpp")
STEPS = (
    *(Step("kind/node", f"{_CONTAINERD}/{n}", n, _VERSION) for n in ("containerd", "containerd-shim-runc-v2", "ctr")),
    *(Step("kind/node", f"{_CNI}/{n}", n.split("/")[1]) for n in ("ipam/host-local", "main/loopback", "main/ptp")),
    Step("kind/node", f"{_CNI}/meta/portmap", "portmap"),
    *(Step(f"kind/{name}", ".", name) for name in _OURS),
)

_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
_UNWANTED_UNITS = (
    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
    "lib/systemd/system/multi-user.target.wants/*",
    "etc/systemd/system/*.wants/*",
    "lib/systemd/system/local-fs.target.wants/*",
    "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*",
    "lib/systemd/system/basic.target.wants/*",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Where everything lies that an image is made of."""

    programs: Path  # of STEPS
    kubernetes: Path  # of build.build
    debian: Path  # of rootfs.make
    kind: Path  # the source of kind's module


def base(parts: Parts, name: str, out: Path) -> None:
    """The image that kind's builder starts from; changes the Debian of `parts`, so it comes last."""
    root, files = parts.debian, parts.kind / "images" / "base" / "files"
    _kinds_files(root, files)
    _quiet_systemd(root)
    for program in ("containerd", "containerd-shim-runc-v2", "ctr", "crictl"):
        rootfs.copied(parts.programs / program, root / "usr/local/bin" / program, 0o755)
    for plugin in ("host-local", "loopback", "ptp", "portmap"):
        rootfs.copied(parts.programs / plugin, root / "opt/cni/bin" / plugin, 0o755)
    _configure_containerd(root)
    # kubelet 1.35 and later ones refuse cgroup v1 unless told so; a flag beats the configuration that kind writes.
    _edit(root / "etc/default/kubelet", r"(?m)^(KUBELET_EXTRA_ARGS=.*)$", r"\1 --fail-cgroupv1=false")
    start = {"Entrypoint": ["/usr/local/bin/entrypoint", "/sbin/init"], "StopSignal": "SIGRTMIN+3"}
    config = {**start, "Env": [f"PATH={archive.PATH}", "container=docker"]}
    archive.write(root, Image(names=(name,), config=config), out)


def _kinds_files(root: Path, files: Path) -> None:
    # Module files are read-only and not executable.
    for source in sorted(path for path in files.rglob("*") if path.is_file()):
        program = source.parent.name == "bin"
        rootfs.copied(source, root / source.relative_to(files), 0o755 if program else 0o644)
    for folder in ("etc/kubernetes/manifests", "kind/manifests"):
        (root / folder).mkdir(parents=True, exist_ok=True)


def _quiet_systemd(root: Path) -> None:
    for pattern in _UNWANTED_UNITS:
        for unit in root.glob(pattern):
            unit.unlink()
    # Every node makes an id of its own.
    (root / "var/lib/dbus/machine-id").unlink(missing_ok=True)
    (root / "etc/machine-id").write_text("")
    with (root / "etc/systemd/journald.conf").open("a") as config:
        config.write("ReadKMsg=no\n")
    rootfs.inside(root, "systemctl", "enable", "kubelet.service", "containerd.service", "undo-mount-hacks.service")
    # It would register things for the whole machine.
    rootfs.inside(root, "systemctl", "mask", "systemd-binfmt.service")


def _configure_containerd(root: Path) -> None:
    spec = json.loads(rootfs.inside(root, "/usr/local/bin/ctr", "oci", "spec"))
    hooks = spec.setdefault("hooks", {}).setdefault("createContainer", [])
    hooks.append({"path": "/kind/bin/mount-product-files.sh"})
    spec["process"].pop("rlimits", None)
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(spec))
    # Without CAP_SYS_RESOURCE nothing may lower its oom_score_adj; containerd then leaves it where it is.
    wanted = "restrict_oom_score_adj = true"
    _edit(root / "etc/containerd/config.toml", r"restrict_oom_score_adj = false", wanted)


def _edit(file: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, file.read_text())
    if not count:
        raise Failed(f"{file} is not as this expects kind to have it: nothing in it matches {pattern!r}.")
    file.write_text(text)


def server_tarball(parts: Parts, staging: Path, out: Path) -> None:
    """`kind build node-image --type file` wants these four archives by name; what is in them is free, and no image
    whose name is in one of them is pulled."""
    folder = staging / "kubernetes" / "server" / "bin"
    folder.mkdir(parents=True)
    wanted = _wanted_images(parts)
    archive.write(*_control_plane(parts, staging / "a", wanted), folder / "kube-apiserver.tar")
    archive.write(*_coredns(parts, staging / "b", wanted), folder / "kube-controller-manager.tar")
    archive.write(*_pause(parts, staging / "c", wanted), folder / "kube-scheduler.tar")
    archive.write(*_storage(parts, staging / "d", wanted), folder / "kube-proxy.tar")
    # The program of many names once; the two others call it by theirs.
    rootfs.copied(parts.kubernetes / "k8s", folder / "kubelet", 0o755)
    for name in ("kubeadm", "kubectl"):
        rootfs.written(folder / name, f'#!/bin/bash\nexec -a {name} /usr/bin/kubelet "$@"\n', 0o755)
    (staging / "kubernetes" / "version").write_text(f"v{KUBERNETES}\n")
    with tarfile.open(out, "w:gz", compresslevel=1) as tar:
        tar.add(staging / "kubernetes", arcname="kubernetes")
    shutil.rmtree(staging)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The names under which kubeadm, containerd and kind's manifests ask for images."""

    etcd: str
    coredns: str
    pause: str
    network: str
    storage: str
    storage_helper: str


def _wanted_images(parts: Parts) -> _Wanted:
    kubeadm, version = str(parts.kubernetes / "kubeadm"), f"--kubernetes-version=v{KUBERNETES}"
    listed = answer(kubeadm, "config", "images", "list", version, env={"PATH": archive.PATH})
    builder = parts.kind / "pkg" / "build" / "nodeimage"
    storage = builder / "const_storage.go"
    return _Wanted(
        etcd=_found(listed, r"^(\S+/etcd:\S+)$", "kubeadm's list of images"),
        coredns=_found(listed, r"^(\S+/coredns:\S+)$", "kubeadm's list of images"),
        pause=found_in(parts.kind / "images/base/files/etc/containerd/config.toml", r'sandbox_image = "(.+)"'),
        network=found_in(builder / "const_cni.go", r'kindnetdImage = "(.+)"'),
        storage=found_in(storage, r'storageProvisionerImage = "(.+)"'),
        storage_helper=found_in(storage, r'storageHelperImage = "(.+)"'),
    )


def found_in(file: Path, pattern: str) -> str:
    return _found(file.read_text(), pattern, str(file))


def _found(text: str, pattern: str, where: str) -> str:
    if not (match := re.search(pattern, text, re.MULTILINE)):
        raise Failed(f"Nothing in {where} matches {pattern!r}.")
    return match[1]


def _control_plane(parts: Parts, folder: Path, wanted: _Wanted) -> tuple[Path, Image]:
    """The control plane, kube-proxy, etcd and the network daemon, with iptables for the last two."""
    rootfs.copied(parts.kubernetes / "k8s", folder / "usr/local/bin/k8s", 0o755)
    for name in (*_CONTROL_PLANE, "etcd", "kubectl"):
        (folder / "usr/local/bin" / name).symlink_to("k8s")
    rootfs.copied(parts.programs / "netd", folder / "bin/kindnetd", 0o755)
    plugins = [str(Path("/", file.relative_to(parts.debian))) for file in parts.debian.glob("usr/lib/*/xtables/*.so")]
    programs = [f"/usr/sbin/{name}" for name in ("xtables-nft-multi", "xtables-legacy-multi", "nft")]
    rootfs.cut_out(parts.debian, folder, *programs, *plugins)
    for name in ("iptables", "ip6tables"):
        for suffix in ("", "-save", "-restore"):
            (folder / "usr/sbin" / f"{name}{suffix}").symlink_to("xtables-nft-multi")
    furnished(folder, "root:x:0:0:root:/:/bin/false\n")
    for file in ("etc/protocols", "etc/services"):
        rootfs.copied(parts.debian / file, folder / file)
    ours = [f"registry.k8s.io/{name}:v{KUBERNETES}" for name in _CONTROL_PLANE]
    return folder, Image(names=(*ours, wanted.etcd, wanted.network), config={"Cmd": ["/bin/kindnetd"]})


def _coredns(parts: Parts, folder: Path, wanted: _Wanted) -> tuple[Path, Image]:
    rootfs.copied(parts.programs / "coredns", folder / "coredns", 0o755)
    certificates = "etc/ssl/certs/ca-certificates.crt"
    rootfs.copied(parts.debian / certificates, folder / certificates)
    return folder, Image(names=(wanted.coredns,), config={"Entrypoint": ["/coredns"]})


def _pause(parts: Parts, folder: Path, wanted: _Wanted) -> tuple[Path, Image]:
    rootfs.copied(parts.programs / "pause", folder / "pause", 0o755)
    return folder, Image(names=(wanted.pause,), config={"Entrypoint": ["/pause"]})


def _storage(parts: Parts, folder: Path, wanted: _Wanted) -> tuple[Path, Image]:
    program = "/usr/local/bin/local-path-provisioner"
    rootfs.copied(parts.programs / "lpp", folder / program.lstrip("/"), 0o755)
    with_shell(parts.debian, folder)
    furnished(folder, "root:x:0:0:root:/:/bin/sh\n")
    return folder, Image(names=(wanted.storage, wanted.storage_helper), config={"Entrypoint": [program]})


def with_shell(debian: Path, folder: Path) -> None:
    """busybox by the names that one calls by hand."""
    rootfs.cut_out(debian, folder, "/bin/busybox")
    for name in ("cat", "chmod", "echo", "kill", "ls", "mkdir", "nc", "printf", "ps", "rm", "sh", "sleep", "wget"):
        (folder / "bin" / name).symlink_to("busybox")


def furnished(folder: Path, users: str) -> None:
    """The folders and the file that every program counts on."""
    for name in ("etc", "run", "tmp", "var/lib", "var/log"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    rootfs.written(folder / "etc/passwd", users)
