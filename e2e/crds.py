"""New types: their CRDs, and waiting until the server serves them."""

from __future__ import annotations

from e2e.kube import CHECKOUT, Kubectl, wait_until


def install_crd(kubectl: Kubectl, controller: str) -> str:
    """Install the CRD of a bundled controller, and wait until its objects can be created; returns its name."""
    path = CHECKOUT / "kubectl_ctrl" / "controllers" / controller / "crd.yaml"
    crd = kubectl("apply", f"--filename={path}", "--output=name").strip().partition("/")[2]
    wait_until_served(kubectl, crd)
    return crd


def wait_until_served(kubectl: Kubectl, crd: str) -> None:
    """An Established CRD may be missing in discovery and in the server's handlers for a moment."""
    kubectl("wait", "--for=condition=Established", f"crd/{crd}", "--timeout=100s")
    wait_until(lambda: is_served(kubectl, crd) and kubectl.try_("get", crd).code == 0, what=f"{crd} is served")


def is_served(kubectl: Kubectl, crd: str) -> bool:
    """Discovery lists its type, also for a moment after the deletion of the CRD."""
    group = crd.partition(".")[2]
    return crd in kubectl.try_("api-resources", f"--api-group={group}", "--output=name").out.split()
