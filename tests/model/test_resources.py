"""Resource types: names, roots of paths, and what makes two of them the same."""

from __future__ import annotations

from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.resources import DEPLOYMENTS, NAMESPACES, PODS, Resource


def test_names_and_roots() -> None:
    assert (str(DEPLOYMENTS), DEPLOYMENTS.api_version, DEPLOYMENTS.root) == (
        "deployments.apps",
        "apps/v1",
        "/apis/apps/v1",
    )
    assert (str(PODS), PODS.api_version, PODS.root) == ("pods", "v1", "/api/v1")


def test_kind_and_scope_follow_from_the_rest() -> None:
    other = Resource("apps", "v1", "deployments", "", namespaced=False)
    assert other == DEPLOYMENTS
    assert hash(other) == hash(DEPLOYMENTS)
    assert Resource("apps", "v1beta1", "deployments", "Deployment") != DEPLOYMENTS


def test_references_know_their_key_and_how_to_be_spoken_of() -> None:
    ref = DEPLOYMENTS.ref("web", "default")
    assert (ref.key, str(ref), str(ref.sub("status"))) == (
        Key("default", "web"),
        "deployments.apps default/web",
        "deployments.apps default/web/status",
    )
    assert str(NAMESPACES.ref("kube-system", "ignored")) == "namespaces kube-system"
