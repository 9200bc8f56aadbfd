"""The guard: whether a verb may change the selected cluster.

Local and managed clusters are allowed. Any other cluster must be named in the same command, or be in the list in the
user's configuration.

A cluster is managed if its server and authority are those of a registry entry, whatever the context is called. TLS
proves that before the first request is sent: nobody else has a certificate of the authority that was created with that
cluster. The UID of kube-system, which anyone can give to a namespace and which takes a request to read, would prove
less, and later.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.errors import ConfigError, Refused
from kubectl_ctrl.kubeconfig import files
from kubectl_ctrl.kubeconfig.resolution import Resolved, ca_fingerprint, read_ca
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.value import Value

IN_CLUSTER = "in-cluster"
_FIELDS = {"context", "server"}

# Whether a cluster of a known kind can have its server at this host.
Fits = Callable[[Resolved, str], bool]


def _loopback(_: Resolved, host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _control_plane(resolved: Resolved, host: str) -> bool:
    """The node of that kind cluster, as named in kind's container network."""
    name = (resolved.context or "").removeprefix("kind-")
    return "." not in name and host == f"{name}-control-plane" and _proves_itself(resolved)


def _minikube(resolved: Resolved, host: str) -> bool:
    """A private address, with the CA that minikube created for this user.

    The address alone proves nothing: the networks of the drivers (docker 192.168.49.x, kvm2 192.168.39.x and others)
    are also used in offices and homes.
    """
    try:
        private = ipaddress.ip_address(host).is_private
    except ValueError:
        return False
    return private and _proves_itself(resolved) and _has_authority(resolved, _minikube_folder(resolved) / "ca.crt")


def _minikube_folder(resolved: Resolved) -> Path:
    """As minikube finds it: MINIKUBE_HOME is the folder, or has it inside."""
    home = Path(resolved.origin.environ.get("MINIKUBE_HOME") or resolved.origin.home)
    return home if home.name == ".minikube" else home / ".minikube"


def _has_authority(resolved: Resolved, file: Path) -> bool:
    try:
        return bool(ca := b"".join(file.read_bytes().split())) and ca == b"".join(read_ca(resolved).split())
    except (OSError, ConfigError):
        return False


def _proves_itself(resolved: Resolved) -> bool:
    """Whether TLS proves the identity of the server: anyone can have its name or address."""
    return resolved.server.startswith("https://") and not resolved.tls.insecure


def _named(*hosts: str) -> Fits:
    return lambda resolved, host: host in hosts and _proves_itself(resolved)


def _any_address(_: Resolved, host: str) -> bool:
    return host == "0.0.0.0"  # noqa: S104 - to connect to it is to connect to loopback


# A context is local if its name and its effective server match one row: anyone can choose the name of a context.
_LOCAL: tuple[tuple[re.Pattern[str], tuple[Fits, ...]], ...] = (
    (re.compile(r"kind-.+"), (_loopback, _control_plane)),
    (re.compile(r"kwok-.+|sandbox(-.+)?|colima(-.+)?|orbstack|rancher-desktop"), (_loopback,)),
    (re.compile(r"k3d-.+"), (_loopback, _any_address)),
    (re.compile(r"docker-desktop"), (_loopback, _named("kubernetes.docker.internal"))),
    (re.compile(r"minikube"), (_loopback, _minikube)),
)


class AllowedContext(Value):
    """One entry of `allowContexts` in the user's configuration; both must match."""

    context: str
    server: str


def context_name(resolved: Resolved) -> str:
    """The name of the context, `in-cluster`, or the server if there is no context."""
    return IN_CLUSTER if resolved.in_cluster else resolved.context or resolved.server


def to_allow(resolved: Resolved) -> str:
    """The value of --allow-context for the cluster: the context's name, or the server if that is not the context's own.

    A variable may have selected another server, and the name of the context would not show that to the user.
    """
    return resolved.server if resolved.server_overridden else context_name(resolved)


def is_local(resolved: Resolved) -> bool:
    """Whether name and effective server match one row of _LOCAL; never with a proxy or another server."""
    if resolved.in_cluster or resolved.server_overridden or resolved.proxy_url or not resolved.context:
        return False
    host = (urlsplit(resolved.server).hostname or "").lower()
    return any(name.fullmatch(resolved.context) and any(fits(resolved, host) for fits in rows) for name, rows in _LOCAL)


def managed(resolved: Resolved, registry: Registry) -> ClusterEntry | None:
    """The managed cluster that TLS will prove it to be; None behind a proxy or with another server."""
    if resolved.in_cluster or resolved.server_overridden or resolved.proxy_url or resolved.tls.insecure:
        return None
    if not resolved.server.startswith("https://"):
        return None
    # The registry first: most contexts have no entry to compare their CA with, so it need not be read.
    made = [one for one in registry.entries() if one.phase is Phase.READY and one.ca and one.server == resolved.server]
    return next((one for one in made if one.ca == ca_fingerprint(resolved)), None)


def trusted(resolved: Resolved, registry: Registry) -> bool:
    """Whether it is a local or a managed cluster."""
    return is_local(resolved) or managed(resolved, registry) is not None


def check(
    effect: CommandEffect, resolved: Resolved, *, allow: str, standing: tuple[AllowedContext, ...], registry: Registry
) -> None:
    """Refused if the verb may not have this effect on the cluster."""
    if effect not in (CommandEffect.WRITE, CommandEffect.DESTROY) or trusted(resolved, registry):
        return
    name = to_allow(resolved)
    if allow == name or AllowedContext(context_name(resolved), resolved.server) in standing:
        return
    meant = f"context {context_name(resolved)!r}, server {resolved.server}, namespace {resolved.namespace!r}"
    if allow:
        kind = "server" if resolved.server_overridden else "context"
        raise Refused(
            f"The allowed {kind} {allow!r} is not the {kind} in use.",
            tried=meant,
            next_step=str(command("--allow-context", name)),
        )
    raise Refused(
        "This cluster is not local, and changes to it are not allowed.",
        tried=meant,
        next_step=f"repeat with {command('--allow-context', name)} if that is the cluster you mean",
    )


def standing_list(path: Path) -> tuple[AllowedContext, ...]:
    """`allowContexts` of config.yaml; empty if there is no file, an error if it is invalid."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"Cannot read {str(path)!r}: {error}.", next_step="make the file readable, or delete it"
        ) from error
    shape = "write it like this: allowContexts: [{context: NAME, server: URL}]"
    try:
        content = files.parse(text.encode(), repr(str(path)))
    except ConfigError as error:
        error.next_step = shape
        raise
    if not isinstance(content or {}, dict):
        raise ConfigError(f"Invalid configuration {str(path)!r}: it is not a mapping.", next_step=shape)
    entries = (content or {}).get("allowContexts") or []
    if not isinstance(entries, list) or not all(isinstance(one, dict) and one.keys() >= _FIELDS for one in entries):
        raise ConfigError(
            f"Invalid configuration {str(path)!r}: allowContexts must be a list of contexts, each with its server.",
            next_step=shape,
        )
    return tuple(AllowedContext(str(entry["context"]), str(entry["server"])) for entry in entries)
