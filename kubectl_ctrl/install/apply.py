"""Applies objects to a cluster: first reads all of them without writing, then makes the changes that are needed.

| in the cluster             | action                                                                                |
|----------------------------|---------------------------------------------------------------------------------------|
| absent                     | applied: created                                                                      |
| with our labels            | applied if that would change a value or an owner, else nothing                        |
| without them, equal        | nothing: it is used, and uninstall keeps it                                           |
| without them, different    | refused; with `force` it is taken over, and managed from then on                      |
| a namespace without them   | used as it is                                                                         |
| a CRD that would lose a stored version | refused, also with `force`                                                |

Every write is an apply, so an interrupted installation is completed by a second one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import PatchKind, WriteOptions
from kubectl_ctrl.errors import CallSite, Conflict, Forbidden, NamespaceTerminating, NotFound, Refused, Replaced
from kubectl_ctrl.install import crds
from kubectl_ctrl.install.kinds import CLUSTERROLEBINDINGS, ROLEBINDINGS, ref_of, shown
from kubectl_ctrl.install.marks import MANAGER, is_marked, managers_of
from kubectl_ctrl.install.ready import wait_until_served
from kubectl_ctrl.model.diffs import BOOKKEEPING, Difference, diff, is_subset
from kubectl_ctrl.model.managed_fields import own_entry, owns_exactly
from kubectl_ctrl.model.objects import Obj, is_deleting, uid_of
from kubectl_ctrl.model.resources import CRDS, NAMESPACES, ObjectRef
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.value import Unshown, Value, replace

_NOT_COMPARED = BOOKKEEPING | {"status"}
_BINDINGS = (CLUSTERROLEBINDINGS, ROLEBINDINGS)

# Each retry acts on the object as it was just read; more conflicts mean that another program keeps changing it.
_MOST_ROUNDS = 4


class ApplyOutcome(StrEnum):
    """The printed outcome for an object."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    NOT_OURS = "unchanged, not managed"


class ApplyStep(Value, kw_only=True):
    """One object: the desired one, the live one, and the action that follows."""

    ref: ObjectRef
    desired: Unshown[Obj]
    live: Unshown[Obj | None]
    outcome: ApplyOutcome
    whole: bool = False  # fields of other managers are removed
    would: Unshown[Obj | None] = None  # the result of a dry run on the server, if there was one

    def __str__(self) -> str:
        return f"{shown(self.ref)} {self.outcome}"


class Applier:
    """Applies the objects of one controller. `ask` allows dry runs on the server."""

    def __init__(self, client: Client, controller: str, *, force: bool = False, ask: bool = True) -> None:
        self._client = client
        self._controller = controller
        self._force = force
        self._ask = ask

    async def plan(self, wanted: Sequence[Obj]) -> tuple[ApplyStep, ...]:
        """The steps in order. Writes nothing; raises if a step would fail, as far as that can be known."""
        steps = [await self._plan(desired) for desired in wanted]
        missing = {step.ref.name for step in steps if step.ref.resource == NAMESPACES and step.live is None}
        if self._ask:
            for place, step in enumerate(steps):
                # A dry run of a binding needs its role, and that of an object in a namespace needs the namespace.
                ready = step.ref.resource not in _BINDINGS and step.ref.namespace not in missing
                if step.outcome is ApplyOutcome.CREATED and ready:
                    steps[place] = replace(step, would=await self._apply(step, dry_run=True))
        return tuple(steps)

    async def apply(self, step: ApplyStep) -> ApplyStep:
        """Execute the step; returns the executed one, with the new object."""
        if step.outcome is ApplyOutcome.CREATED:
            step = await self._plan(step.desired)  # another step, or another user, may have created it since
        for left in reversed(range(_MOST_ROUNDS)):
            if step.outcome in (ApplyOutcome.UNCHANGED, ApplyOutcome.NOT_OURS):
                return step
            try:
                if step.whole:
                    await self._overwrite(step)
                return replace(step, live=await self._apply(step), would=None)
            except (Conflict, Replaced):
                if not left:
                    raise
            step = await self._plan(step.desired)
        raise AssertionError("the last round returns or raises")

    async def _plan(self, desired: Obj) -> ApplyStep:
        ref = ref_of(desired)
        live = await self._get(ref)
        step = ApplyStep(ref=ref, desired=desired, live=live, outcome=ApplyOutcome.UNCHANGED)
        if live is None:
            return replace(step, outcome=ApplyOutcome.CREATED)
        if is_deleting(live):
            raise _being_deleted(ref, live)
        if not is_marked(live, self._controller):
            return await self._foreign(step, live)
        if ref.resource == CRDS:
            crds.check_stored(live, desired)
        changes, would = await self._changes(step, live)
        return replace(step, outcome=ApplyOutcome.CONFIGURED, would=would) if changes else step

    async def _get(self, ref: ObjectRef) -> Obj | None:
        try:
            return await self._client.get(ref)
        except NotFound:
            return None

    async def _foreign(self, step: ApplyStep, live: Obj) -> ApplyStep:
        """The step for an object without our labels."""
        ref, desired = step.ref, step.desired
        if ref.resource == NAMESPACES:
            return replace(step, outcome=ApplyOutcome.NOT_OURS)
        is_crd = ref.resource == CRDS
        if is_crd:
            differing = await crds.differences(self._client, live, desired, ask=self._ask)
        else:
            differing = _differences(live, desired)
        if not differing:
            return replace(step, outcome=ApplyOutcome.NOT_OURS)
        if not self._force:
            raise Refused(
                f"The {shown(ref)} exists, was not created by install, and differs: {crds.shown(differing)}. It was "
                f"written by {managers_of(live)}.",
                next_step="--force-conflicts replaces it, also for everybody else who uses it",
            )
        if is_crd:
            crds.check_stored(live, desired)
        return replace(step, outcome=ApplyOutcome.CONFIGURED, whole=is_crd)

    async def _changes(self, step: ApplyStep, live: Obj) -> tuple[bool, Obj | None]:
        """Whether an apply would change a value or an owner, and the result of a dry run, if there was one."""
        entry = own_entry(live, MANAGER, "Apply")
        if is_subset(step.desired, live) and owns_exactly(entry, step.desired):
            return False, None
        if not self._ask:
            return True, None
        answer = await self._apply(step, dry_run=True)
        after = own_entry(answer, MANAGER, "Apply")
        owned = [one and one.get("fieldsV1") for one in (entry, after)]
        return owned[0] != owned[1] or bool(diff(live, answer, ignore=_NOT_COMPARED)), answer

    async def _apply(self, step: ApplyStep, *, dry_run: bool = False) -> Obj:
        body = step.desired
        if step.live is not None:
            body = {**body, "metadata": {**body["metadata"], "uid": uid_of(step.live)}}
        options = WriteOptions(manager=MANAGER, force=self._force, dry_run=dry_run)
        try:
            return await self._client.patch(step.ref, body, PatchKind.APPLY, options)
        except Conflict as error:
            kept = [cause for cause in error.causes if cause.reason == "FieldManagerConflict"]
            owners = [f"{cause.message}: {cause.field}" for cause in kept]
            if not owners:
                raise
            raise Refused(
                f"Fields of {shown(step.ref)} that would change belong to other field managers: "
                f"{'; '.join(dict.fromkeys(owners))}.",
                next_step="--force-conflicts takes over these fields",
            ) from None
        except Forbidden as error:
            if "attempting to grant" in error.message:
                error.next_step = (
                    "you can only grant rights that you have: ask somebody who has them to run the same command"
                )
            raise

    async def _overwrite(self, step: ApplyStep) -> None:
        """Replace the spec of a foreign CRD; an apply alone would keep its old versions beside the new ones."""
        live = step.live
        assert live is not None
        meta = {**live["metadata"], "labels": {**(live["metadata"].get("labels") or {})}}
        meta["labels"] |= step.desired["metadata"]["labels"]
        written = await self._client.replace(
            step.ref, {**live, "metadata": meta, "spec": step.desired["spec"]}, WriteOptions(manager=MANAGER)
        )
        # This update makes us the owner of these fields a second time, so a later apply could not remove them. So the
        # entry of the update is deleted, and the apply that follows owns them.
        entry = own_entry(written, MANAGER, "Update")
        if entry is None:
            return
        place = written["metadata"]["managedFields"].index(entry)
        patch: list[Obj] = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": written["metadata"]["resourceVersion"]},
            {"op": "remove", "path": f"/metadata/managedFields/{place}"},
        ]
        await self._client.patch(step.ref, patch, PatchKind.JSON, WriteOptions(manager=MANAGER))


async def install(
    client: Client,
    wanted: Sequence[tuple[str, Sequence[Obj]]],
    tell: Callable[[ApplyStep], None],
    *,
    dry_run: str = "none",
    force: bool = False,
    wait: float = 60.0,
) -> list[ApplyStep]:
    """Install the objects of each controller, and wait until the CRDs are served; `wait` 0 does not.

    Everything is checked before anything is written. `dry_run` is none, client or server.
    """
    plans: list[tuple[Applier, tuple[ApplyStep, ...]]] = []
    for controller, objects in wanted:
        applier = Applier(client, controller, force=force, ask=dry_run != "client")
        plans.append((applier, await applier.plan(objects)))
    done = []
    for applier, steps in plans:
        for step in steps:
            after = await applier.apply(step) if dry_run == "none" else step
            done.append(after)
            tell(after)
    if dry_run == "none" and wait > 0:
        await wait_until_served(client, [step.desired for step in done if step.ref.resource == CRDS], wait)
    return done


def _differences(live: Obj, desired: Obj) -> tuple[Difference, ...]:
    """The differences outside metadata."""
    wanted = {key: value for key, value in desired.items() if key not in ("apiVersion", "kind", "metadata")}
    return diff(wanted, {key: live[key] for key in wanted if key in live})


def _being_deleted(ref: ObjectRef, live: Obj) -> Exception:
    since = live["metadata"]["deletionTimestamp"]
    if ref.resource == NAMESPACES:
        return NamespaceTerminating(
            f"The namespace {ref.name!r} is being deleted (since {since}) and accepts no new objects.",
            site=CallSite("apply", str(ref)),
            code=403,
            reason="NamespaceTerminating",
            next_step="wait until it is deleted, or choose another one with -n",
        )
    return Refused(
        f"The {shown(ref)} is being deleted (since {since}).",
        next_step=f"wait until it is deleted; {command('kubectl', 'get', ref.resource, ref.name, '-o', 'yaml')} "
        "shows its finalizers",
    )
