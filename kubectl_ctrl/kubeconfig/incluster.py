"""The service account of a pod: the last place where kubectl searches for a cluster.

All flags apply to it. In kubectl, --as and --request-timeout prevent its use, and --insecure-skip-tls-verify has no
effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kubectl_ctrl.kubeconfig.files import KubeconfigEntry
from kubectl_ctrl.value import Value

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class InCluster(Value):
    cluster: KubeconfigEntry
    user: KubeconfigEntry


def find(environ: Mapping[str, str]) -> InCluster | None:
    """The pod's cluster and service account as kubeconfig entries; None outside a pod."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (FOLDER / "token").is_file():
        return None
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    # Without its ca.crt the pod trusts the system's authorities, as in client-go.
    authority = {"certificate-authority": str(FOLDER / "ca.crt")} if (FOLDER / "ca.crt").is_file() else {}
    return InCluster(
        KubeconfigEntry(kind="cluster", name="in-cluster", fields={"server": server, **authority}),
        KubeconfigEntry(kind="user", name="in-cluster", fields={"tokenFile": str(FOLDER / "token")}),
    )


def namespace(environ: Mapping[str, str]) -> str:
    """The default namespace: inside a pod the pod's own, even with a kubeconfig, as in kubectl."""
    if find(environ) is None:
        return "default"
    if name := environ.get("POD_NAMESPACE"):
        return name
    try:
        return (FOLDER / "namespace").read_text().strip() or "default"
    except (OSError, UnicodeDecodeError):
        return "default"
