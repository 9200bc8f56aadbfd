"""Plans as they come out of a planner, made by hand."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.model.attempt import Intent, Outcome, Verdict
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS, SECRETS, Resource
from kubectl_ctrl.plan.steps import Plan, PlannedEffect, PlannedObject, PlannedReconcile, PlannedWrite
from kubectl_ctrl.value import replace
from tests.render.samples import FOOS, WEB, live_attempt


def obj(resource: Resource, name: str, **rest: Any) -> Obj:
    meta = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "managedFields": [{"manager": "somebody", "operation": "Update"}],
        **rest.pop("metadata", {}),
    }
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **rest}


def next_of(before: Obj, **rest: Any) -> Obj:
    return {**before, "metadata": {**before["metadata"], "resourceVersion": "planned-1"}, **rest}


def condition(status: str, message: str) -> Obj:
    return {"type": "Ready", "status": status, "reason": "Counted", "message": message}


DEPLOYMENT = obj(DEPLOYMENTS, "web", spec={"replicas": 3, "template": {"image": "nginx:1.27"}})
FOO = obj(FOOS, "web", status={"observedGeneration": 3, "conditions": [condition("True", "It has 3 replicas.")]})
LATE = "Deployment 'web' is rolling out to 5 replicas."
NEW = obj(DEPLOYMENTS, "cub", metadata={"uid": "planned-3"}, spec={"replicas": 1, "selector": {"app": "cub"}})
SECRET = obj(SECRETS, "key", data={"word": "Zmlyc3QtY2FuYXJ5", "same": "YXMtZXZlci1jYW5hcnk="})


def fate(
    resource: Resource, name: str, effect: PlannedEffect, before: Obj | None, after: Obj | None, **more: Any
) -> PlannedObject:
    return PlannedObject(resource=resource, key=Key("default", name), effect=effect, before=before, after=after, **more)


GROWN = fate(
    DEPLOYMENTS,
    "web",
    PlannedEffect.CHANGED,
    DEPLOYMENT,
    next_of(DEPLOYMENT, spec={"replicas": 5, "template": {"image": "nginx:1.27"}, "paused": False}),
)
TOLD = fate(
    FOOS,
    "web",
    PlannedEffect.CHANGED,
    FOO,
    next_of(FOO, status={"observedGeneration": 4, "conditions": [condition("False", LATE)]}),
)
MADE = fate(DEPLOYMENTS, "cub", PlannedEffect.CREATED, None, NEW)
GONE = fate(DEPLOYMENTS, "old\x1b[31m", PlannedEffect.DELETED, DEPLOYMENT, None)
KEPT = fate(
    SECRETS,
    "key",
    PlannedEffect.CHANGED,
    SECRET,
    next_of(SECRET, data={"word": "c2Vjb25kLWNhbmFyeQ==", "same": "YXMtZXZlci1jYW5hcnk=", "more": "bW9yZS1jYW5hcnk="}),
)
OTHERS = fate(DEPLOYMENTS, "taken", PlannedEffect.FOREIGN, None, None, note="left alone: it is controlled by nobody")
LEFT = fate(DEPLOYMENTS, "rest", PlannedEffect.UNCHANGED, DEPLOYMENT, DEPLOYMENT)
OWNED = fate(
    DEPLOYMENTS,
    "owned",
    PlannedEffect.CHANGED,
    DEPLOYMENT,
    next_of(DEPLOYMENT, metadata={**DEPLOYMENT["metadata"], "managedFields": []}),
)
ELSEWHERE = replace(MADE, key=Key("team-a", "cub"), checked=False)


def step(verb: str, of: PlannedObject, subresource: str = "") -> PlannedWrite:
    return PlannedWrite(
        verb=verb, resource=of.resource, key=of.key, subresource=subresource, before=of.before, after=of.after
    )


def made_pass(
    verdict: Verdict, *steps: PlannedWrite, number: int = 1, error: CtrlError | None = None
) -> PlannedReconcile:
    intents = (Intent(type="Normal", reason="Synced", message="Foo synced successfully", about=WEB),) if steps else ()
    attempt = replace(live_attempt(verdict=verdict), intents=intents)
    return PlannedReconcile(round=number, request=WEB, attempt=attempt, steps=steps, error=error)


WAITING = Verdict(outcome=Outcome.WAITING, message="rollout 3/5")
MIXED = Plan(
    controller="foo",
    primary=FOOS,
    requests=(WEB,),
    passes=(
        made_pass(
            WAITING,
            step("patch", GROWN),
            step("apply", GROWN),
            step("create", MADE),
            step("delete", GONE),
            step("apply", TOLD, "status"),
        ),
    ),
    fates=(GROWN, MADE, GONE, TOLD, KEPT, OWNED, ELSEWHERE, OTHERS, LEFT),
)
NOTHING = Plan(
    controller="foo",
    primary=FOOS,
    requests=(WEB,),
    passes=(made_pass(Verdict(outcome=Outcome.DONE)),),
    fates=(LEFT,),
)
OF_A_FILE = replace(
    MIXED, given=(fate(FOOS, "web", PlannedEffect.CREATED, None, FOO),), fates=(MADE, replace(TOLD, checked=False))
)
RESTLESS = Plan(
    controller="foo",
    primary=FOOS,
    requests=(WEB,),
    passes=tuple(made_pass(Verdict(outcome=Outcome.DONE), step("apply", TOLD, "status"), number=n) for n in (1, 2)),
    fates=(TOLD,),
    to_fixpoint=True,
    settled=False,
)
FAILED = Plan(
    controller="foo",
    primary=FOOS,
    requests=(WEB,),
    passes=(
        made_pass(
            Verdict(outcome=Outcome.RETRY, message="The server forbids it.", error_id="CTRL-FORBIDDEN"),
            error=CtrlError("The server forbids it."),
        ),
    ),
    fates=(replace(LEFT, note="ensure refused: The server forbids it."),),
)
