"""Objects that a cluster gets before controllers run on it: CRDs, namespaces, rights, and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import PatchKind, WriteOptions
from kubectl_ctrl.devcluster.steps import Step
from kubectl_ctrl.errors import AlreadyExists, CallSite, Conflict, ControllerError, NotFound, NotServed
from kubectl_ctrl.install import apply
from kubectl_ctrl.install.kinds import shown
from kubectl_ctrl.install.requirements import needs
from kubectl_ctrl.loader.sources import SourcedController
from kubectl_ctrl.model.objects import Obj, name_of, namespace_of
from kubectl_ctrl.model.resources import NAMESPACES, ObjectRef
from kubectl_ctrl.text import counted

_MANAGER = "kubectl-ctrl-up"


async def install(client: Client, sourced: Sequence[SourcedController], step: Step) -> None:
    """Install as the verb `install` does."""
    wanted = [(one.spec.name, needs(one.parts())) for one in sourced]
    done = await apply.install(client, wanted, lambda each: step.note(each.ref.resource.kind))
    counts = Counter(each.outcome for each in done)
    summary = "; ".join(f"{counts[outcome]} {outcome}" for outcome in apply.ApplyOutcome if counts[outcome])
    step.text = f"{_names(sourced)} installed: {summary or 'it needs nothing'}"


async def have_namespace(client: Client, name: str, step: Step) -> None:
    """Create it if it does not exist: on a managed cluster that is expected of a --namespace."""
    try:
        await client.get(NAMESPACES.ref(name))
    except NotFound:
        with suppress(AlreadyExists):
            await client.create(NAMESPACES, {"metadata": {"name": name}}, WriteOptions(manager=_MANAGER))
        step.text += f"; namespace {name} created"


async def exemplify(client: Client, sourced: Sequence[SourcedController], namespace: str, step: Step) -> None:
    """Create the controllers' example objects; existing ones are not changed."""
    created = found = 0
    for one in sourced:
        for obj in _example(one):
            ref = await _ref(client, obj, namespace)
            is_new = await _create(client, ref, obj)
            created, found = created + is_new, found + (not is_new)
            step.note(f"{shown(ref)} {'created' if is_new else 'exists already'}")
    parts = [counted(created, "object") + " created"] if created or not found else []
    parts += [f"{found} there already"] if found else []
    step.text = f"example of {_names(sourced)}: {', '.join(parts)}"


async def _create(client: Client, ref: ObjectRef, obj: Obj) -> bool:
    """Create it; False if it exists already.

    With an apply, which takes no field from anybody who was faster. A POST would be slow: an API server delays each one
    for two seconds while the resource type is new, for other API servers that may not know the type yet.
    """
    try:
        await client.get(ref)
        return False
    except NotFound:
        pass
    body = {**obj, "metadata": {**obj["metadata"], **({"namespace": ref.namespace} if ref.namespace else {})}}
    try:
        await client.patch(ref, body, PatchKind.APPLY, WriteOptions(manager=_MANAGER))
    except Conflict:
        return False
    return True


def _example(sourced: SourcedController) -> tuple[Obj, ...]:
    objects = sourced.parts().example
    if not objects:
        raise ControllerError(
            f"Controller {sourced.spec.name!r} has no example.yaml.",
            tried=str(sourced.folder / "example.yaml"),
            next_step="omit --example",
        )
    return objects


async def _ref(client: Client, obj: Obj, namespace: str) -> ObjectRef:
    api = await client.discovery.declared(obj["apiVersion"], obj["kind"])
    if api is None:
        raise NotServed(
            f"The server has no kind {obj['kind']!r} in {obj['apiVersion']!r}, which the example uses.",
            site=CallSite("create", obj["kind"]),
            code=404,
            next_step="put its CRD beside the code as crd.yaml, or omit --example",
        )
    return api.resource.ref(name_of(obj), namespace_of(obj) or namespace)


def _names(sourced: Sequence[SourcedController]) -> str:
    return ", ".join(one.spec.name for one in sourced)
