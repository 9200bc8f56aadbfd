"""What a cluster of ours gets before controllers run on it: what they need, and their example objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from kubectl_ctrl.cli.output.progress import Step
from kubectl_ctrl.cli.verbs.install.main import Manner, put
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import PatchKind, WriteOptions
from kubectl_ctrl.errors import AlreadyExists, CallSite, Conflict, ControllerError, NotFound, NotServed
from kubectl_ctrl.install import apply
from kubectl_ctrl.install.kinds import shown
from kubectl_ctrl.install.requirements import needs
from kubectl_ctrl.loader.sources import Sourced
from kubectl_ctrl.model.objects import Obj, name_of, namespace_of
from kubectl_ctrl.model.resources import NAMESPACES, ObjectRef
from kubectl_ctrl.text import counted

_MANAGER = "kubectl-ctrl-up"


async def install(client: Client, sourced: Sequence[Sourced], step: Step) -> None:
    """CRDs, namespaces and rights, as `install` puts them in."""
    done = await put(
        client,
        [(one, needs(one.parts())) for one in sourced],
        Manner(),
        lambda each: step.note(each.ref.resource.kind),
    )
    step.text = f"{_names(sourced)} installed: {_summary(done)}"


async def have_namespace(client: Client, name: str, step: Step) -> None:
    """The cluster is ours, and who asks for a namespace of it shall have that."""
    try:
        await client.get(NAMESPACES.ref(name))
    except NotFound:
        with suppress(AlreadyExists):
            await client.create(NAMESPACES, {"metadata": {"name": name}}, WriteOptions(manager=_MANAGER))
        step.text += f"; namespace {name} created"


def _summary(done: Sequence[apply.Step]) -> str:
    """`8 created`, `2 configured, 6 unchanged`."""
    counts = Counter(step.outcome for step in done)
    said = [f"{counts[outcome]} {outcome}" for outcome in apply.Outcome if counts[outcome]]
    return "; ".join(said) or "it needs nothing"


async def exemplify(client: Client, sourced: Sequence[Sourced], namespace: str, step: Step) -> None:
    """Create the objects of their examples; those that are there already stay as they are."""
    made = found = 0
    for one in sourced:
        for obj in _example(one):
            ref = await _ref(client, obj, namespace)
            created = await _created(client, ref, obj)
            made, found = made + created, found + (not created)
            step.note(f"{shown(ref)} {'created' if created else 'is there already'}")
    parts = [counted(made, "object") + " created"] if made or not found else []
    parts += [f"{found} there already"] if found else []
    step.text = f"example of {_names(sourced)}: {', '.join(parts)}"


async def _created(client: Client, ref: ObjectRef, obj: Obj) -> bool:
    """Whether it was not there, and is now.

    By an apply, which takes no field from anybody who is quicker than us: an API server holds each POST back for two
    seconds where the type is new, for the sake of other API servers beside it.
    """
    try:
        await client.get(ref)
    except NotFound:
        pass
    else:
        return False
    body = {**obj, "metadata": {**obj["metadata"], **({"namespace": ref.namespace} if ref.namespace else {})}}
    try:
        await client.patch(ref, body, PatchKind.APPLY, WriteOptions(manager=_MANAGER))
    except Conflict:
        return False
    return True


def _example(sourced: Sourced) -> tuple[Obj, ...]:
    objects = sourced.parts().example
    if not objects:
        raise ControllerError(
            f"Controller {sourced.spec.name!r} brings no example.yaml.",
            tried=str(sourced.folder / "example.yaml"),
            next_step="leave out --example",
        )
    return objects


async def _ref(client: Client, obj: Obj, namespace: str) -> ObjectRef:
    api = await client.discovery.declared(obj["apiVersion"], obj["kind"])
    if api is None:
        raise NotServed(
            f"The server has no kind {obj['kind']!r} in {obj['apiVersion']!r}, which the example is of.",
            site=CallSite("create", obj["kind"]),
            code=404,
            next_step="put its CRD beside the code as crd.yaml, or leave out --example",
        )
    return api.resource.ref(name_of(obj), namespace_of(obj) or namespace)


def _names(sourced: Sequence[Sourced]) -> str:
    return ", ".join(one.spec.name for one in sourced)
