"""Waits until the objects of a new CRD can be created."""

from __future__ import annotations

from e2e.kube import Kubectl, wait_until


def wait_until_served(kubectl: Kubectl, plural: str) -> None:
    """An Established CRD may be missing in the server's handlers and in discovery for a moment."""
    kubectl("wait", "--for=condition=Established", f"crd/{plural}")
    wait_until(lambda: kubectl.try_("get", plural).code == 0, what=f"{plural} served")
