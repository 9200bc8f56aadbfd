from __future__ import annotations

import pytest

from kubectl_ctrl.client.catalog import ApiResource, Catalog
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.resources import PODS, Resource
from tests.objects import present


def api(gv: str, plural: str, kind: str, *short: str, singular: str = "") -> ApiResource:
    group, _, version = gv.rpartition("/")
    return ApiResource(
        resource=Resource(group, version, plural, kind), singular=singular or kind.lower(), short_names=short
    )


# In the order of precedence: groups as the server lists them, the core first, preferred versions first.
CATALOG = Catalog(
    [
        api("v1", "pods", "Pod", "po"),
        api("v1", "events", "Event", "ev"),
        api("v1", "services", "Service", "svc"),
        api("events.k8s.io/v1", "events", "Event", "ev"),
        api("apps/v1", "deployments", "Deployment", "deploy"),
        api("apps/v1beta1", "deployments", "Deployment", "deploy"),
        api("apps/v1beta1", "relics", "Relic"),
        api("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa"),
        api("autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa"),
        api("metrics.k8s.io/v1beta1", "pods", "PodMetrics", singular="pod"),
        api("samplecontroller.k8s.io/v1alpha1", "foos", "Foo"),
        api("serving.example.com/v1", "services", "Service", "ksvc"),
        api("example.com/v1", "deploys", "Deploy"),
        api("example.com/v1", "gizmi", "GizmoThing", "gz", singular="gizmo"),
        api("other.example.com/v1", "gizmi", "Gizmo", "gz"),
        api("twins.example.com/v1", "ones", "Twin", singular="twin"),
        api("twins.example.com/v1", "twin", "Other", singular="other"),
        api("shorts.example.com/v1", "lefts", "Left", "sh"),
        api("shorts.example.com/v1", "rights", "Right", "sh"),
    ]
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # plural, singular, short name, kind, in any case
        ("pods", "v1 pods"),
        ("pod", "v1 pods"),
        ("po", "v1 pods"),
        ("Pod", "v1 pods"),
        ("PODS", "v1 pods"),
        ("gizmo", "example.com/v1 gizmi"),
        ("GizmoThing", "example.com/v1 gizmi"),
        ("PodMetrics", "metrics.k8s.io/v1beta1 pods"),
        # the core group and preferred versions first
        ("events", "v1 events"),
        ("deployments", "apps/v1 deployments"),
        ("hpa", "autoscaling/v2 horizontalpodautoscalers"),
        ("services", "v1 services"),
        # a type that only an older version has
        ("relics", "apps/v1beta1 relics"),
        # TYPE.GROUP
        ("events.events.k8s.io", "events.k8s.io/v1 events"),
        ("ev.events.k8s.io", "events.k8s.io/v1 events"),
        ("pods.metrics.k8s.io", "metrics.k8s.io/v1beta1 pods"),
        ("deployments.apps", "apps/v1 deployments"),
        ("Deployment.apps", "apps/v1 deployments"),
        ("deploy.apps", "apps/v1 deployments"),
        ("foos.samplecontroller.k8s.io", "samplecontroller.k8s.io/v1alpha1 foos"),
        ("ksvc.serving.example.com", "serving.example.com/v1 services"),
        # a group that is shortened
        ("deployments.ap", "apps/v1 deployments"),
        ("hpa.autosc", "autoscaling/v2 horizontalpodautoscalers"),
        # TYPE.VERSION.GROUP
        ("deployments.v1beta1.apps", "apps/v1beta1 deployments"),
        ("deploy.v1beta1.apps", "apps/v1beta1 deployments"),
        ("hpa.v1.autoscaling", "autoscaling/v1 horizontalpodautoscalers"),
        ("foos.v1alpha1.samplecontroller.k8s.io", "samplecontroller.k8s.io/v1alpha1 foos"),
        ("pods.v1.", "v1 pods"),
        ("PodMetrics.v1beta1.metrics.k8s.io", "metrics.k8s.io/v1beta1 pods"),
        # a plural name beats a short name of a better group
        ("deploys", "example.com/v1 deploys"),
        ("deploy", "example.com/v1 deploys"),
        # the first of equal short names
        ("sh", "shorts.example.com/v1 lefts"),
    ],
)
def test_names(text: str, expected: str) -> None:
    match = present(CATALOG.match(text))
    resource = match.found.resource
    assert f"{resource.api_version} {resource.plural}" == expected


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "pods.apps",
        "GizmoThing.examp",
        "pods.v1",
        "deployments.v2.apps",
        "deployments.v1.ap",
        "",
        ".",
        "..",
        "pods.v1.core",
    ],
)
def test_names_of_nothing(text: str) -> None:
    assert CATALOG.match(text) is None


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("pods", ["pods.metrics.k8s.io"]),
        ("events", ["events.events.k8s.io"]),
        ("gz", ["gizmi.other.example.com"]),
        ("sh", ["rights.shorts.example.com"]),
        ("services", ["services.serving.example.com"]),
        ("deployments", []),
        ("hpa", []),
    ],
)
def test_what_else_a_name_could_mean(text: str, others: list[str]) -> None:
    match = present(CATALOG.match(text))
    assert [str(api.resource) for api in match.others] == others


def test_names_that_nobody_can_choose_from_are_reported() -> None:
    with pytest.raises(UsageError, match=r"'twin' is the name of several resource types: ones.twins.* twin.twins"):
        CATALOG.match("twin")


def test_a_type_is_found_by_group_version_and_name() -> None:
    found = present(CATALOG.get(Resource("apps", "v1beta1", "deployments", "whatever")))
    assert found.resource.version == "v1beta1"
    assert CATALOG.get(Resource("apps", "v2", "deployments", "Deployment")) is None
    assert CATALOG.get(PODS) is not None


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("deplyments", ("deployments.apps",)),
        ("foo", ("foos.samplecontroller.k8s.io",)),
        ("Fooz.samplecontroller.k8s.io", ("foos.samplecontroller.k8s.io",)),
        ("podz", ("pods",)),
        ("xyzzy", ()),
    ],
)
def test_nearest(text: str, nearest: tuple[str, ...]) -> None:
    assert CATALOG.nearest(text)[:1] == nearest


def test_repr() -> None:
    assert repr(Catalog([], ["a/v1"])) == "Catalog(resources=0, failed=1)"
