"""`simulate`: the next events of the scaler for a workload."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.answers import document
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.client.options import ListQuery
from kubectl_ctrl.clock import Clock, SystemClock, rfc3339
from kubectl_ctrl.controllers.scaler.annotations import (
    DEFAULT_PREFIX,
    BadAnnotation,
    Names,
    Settings,
    normal_prefix,
    parse_moment,
    read_settings,
)
from kubectl_ctrl.controllers.scaler.reconciler import WORKLOADS, targets_of
from kubectl_ctrl.controllers.scaler.schedule import BadSchedule
from kubectl_ctrl.controllers.scaler.simulation import SimulatedWorkload, SimulationStep, remarks, simulate
from kubectl_ctrl.errors import Forbidden, UsageError
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.model import manifests
from kubectl_ctrl.model.objects import Obj, name_of, namespace_of
from kubectl_ctrl.model.resources import HPAS, NAMESPACES, Resource
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.text import table
from kubectl_ctrl.value import Value

_DAY = 86_400.0
_FORMS = ("", "json", "yaml")
_SHORT = {"deploy": "deployments", "sts": "statefulsets"}


class SimulationRow(Value, kw_only=True):
    """One step, for output."""

    step: SimulationStep

    @property
    def zone(self) -> ZoneInfo:
        return self.step.event.schedule.zone if self.step.event else ZoneInfo("UTC")

    @property
    def time(self) -> str:
        return self.step.event.time if self.step.event else rfc3339(self.step.at)

    @property
    def action(self) -> str:
        return str(self.step.event.action) if self.step.event else "release"

    @property
    def schedule(self) -> str:
        return self.step.event.schedule.name if self.step.event else "-"

    @property
    def cells(self) -> list[str]:
        at, step = self.step.at, self.step
        late = "" if self.time == rfc3339(at) else " (now)"
        return [
            datetime.fromtimestamp(at, self.zone).strftime("%Y-%m-%d %H:%M %Z"),
            datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%MZ"),
            self.schedule,
            f"{self.action}{late}",
            step.before if step.before == step.after else f"{step.before} -> {step.after}",
        ]

    @property
    def document(self) -> Obj:
        return {
            "at": rfc3339(self.step.at),
            "local": datetime.fromtimestamp(self.step.at, self.zone).isoformat(timespec="seconds"),
            "timeZone": self.zone.key,
            "schedule": self.schedule,
            "action": self.action,
            "event": self.time,
            "from": self.step.before,
            "to": self.step.after,
            "notes": list(self.step.notes),
        }


def run(app: App, given: ParsedCommandLine) -> int:
    form, days = given["output"], given["days"]
    if form not in _FORMS:
        raise UsageError(f"Invalid value for --output: {form!r}.", next_step="use json or yaml")
    if not 1 <= days <= 366:
        raise UsageError(
            "Invalid value for --days: it must be a whole number from 1 to 366.", next_step="for instance: --days 30"
        )
    names = Names(normal_prefix(given["annotation_prefix"] or DEFAULT_PREFIX))
    clock = SystemClock()
    begin = _begin(given["since"], clock)
    scene = _scene(app, given, clock, names)
    settings = _settings(scene, names)
    steps = list(simulate(scene, settings, names, begin, begin + days * _DAY))
    _answer(app, form, scene, [SimulationRow(step=step) for step in steps], (begin, days))
    for line in remarks(scene, settings, names, begin, steps):
        app.narrate(line)
    return 0


def _begin(text: str, clock: Clock) -> float:
    if not text:
        return clock.now()
    try:
        return parse_moment(text, ZoneInfo("UTC"))
    except BadSchedule as error:
        raise UsageError(f"Invalid value for --from: it {error}") from None


def _settings(scene: SimulatedWorkload, names: Names) -> Settings:
    try:
        return read_settings(names.given(scene.target), names.given(scene.namespace))
    except BadAnnotation as bad:
        raise UsageError(str(bad), next_step="the scaler changes nothing until this is corrected") from None


def _answer(app: App, form: str, scene: SimulatedWorkload, rows: list[SimulationRow], span: tuple[float, int]) -> None:
    if form:
        begin, days = span
        value = {
            "object": scene.title,
            "begin": rfc3339(begin),
            "days": days,
            "events": [one.document for one in rows],
        }
        app.answer(document(value, form))
    elif rows:
        app.answer(table([one.cells for one in rows], header=["LOCAL TIME", "UTC", "SCHEDULE", "ACTION", "REPLICAS"]))


def _scene(app: App, given: ParsedCommandLine, clock: Clock, names: Names) -> SimulatedWorkload:
    if given["filename"]:
        if given.arguments:
            raise UsageError("simulate takes either a workload or -f FILE.", next_step="leave one of them out")
        return scene_of(*given.content("filename"), names)
    resource, name = _named(given.arguments)
    resolved = app.meant(given, CommandEffect.READ)
    scene, remarks = asyncio.run(_looked_up(app, resolved, resource, name, clock))
    for line in remarks:
        app.narrate(line)
    return scene


def _named(arguments: tuple[str, ...]) -> tuple[Resource, str]:
    words = [part for word in arguments for part in word.split("/", 1)]
    if len(words) != 2 or not all(words):
        raise UsageError(
            "simulate takes one workload, or -f FILE.", next_step="for instance: kubectl ctrl simulate deployment/web"
        )
    kind = words[0].lower()
    for resource in WORKLOADS:
        plain = {resource.plural, resource.kind.lower()}
        if _SHORT.get(kind, kind.removesuffix(f".{resource.group}")) in plain:
            return resource, words[1]
    raise UsageError(
        f"The scaler does not scale {words[0]!r}.", next_step="name a deployment/NAME or a statefulset/NAME"
    )


async def _looked_up(
    app: App, resolved: Resolved, resource: Resource, name: str, clock: Clock
) -> tuple[SimulatedWorkload, tuple[str, ...]]:
    client = await app.connected(resolved, clock=clock, rng=random.SystemRandom())
    try:
        found = await client.get(resource.ref(name, resolved.namespace))
        target = {"apiVersion": resource.api_version, "kind": resource.kind, **found}
        namespace, hpa, unseen = None, None, []
        try:
            namespace = await client.get(NAMESPACES.ref(resolved.namespace))
        except Forbidden:
            unseen.append("its Namespace cannot be read with these credentials, so its defaults are unknown")
        try:
            hpas = await client.list(HPAS, ListQuery(namespace=resolved.namespace))
            hpa = _matching(hpas.items, resource.kind, name)
        except Forbidden:
            unseen.append("autoscalers cannot be listed with these credentials; assuming that there is none")
        return SimulatedWorkload(target=target, hpa=hpa, namespace=namespace), tuple(unseen)
    finally:
        await client.close()


def _matching(hpas: Iterable[Obj], kind: str, name: str) -> Obj | None:
    return next((hpa for hpa in hpas if (kind, name) in targets_of(hpa)), None)


def scene_of(raw: bytes, file: str, names: Names) -> SimulatedWorkload:
    """The workload of a file. A file with annotations only gives a Deployment with them."""
    if annotations := _bare(raw):
        meta = {"name": Path(file).stem, "annotations": annotations}
        return SimulatedWorkload(
            target={"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": 1}}
        )
    objects = [_spelled(found) for found in manifests.parse(raw, file)]
    kinds = {resource.kind for resource in WORKLOADS}
    targets = [obj for obj in objects if obj["kind"] in kinds]
    if len(targets) > 1 and len(annotated := [obj for obj in targets if names.on(obj)]) == 1:
        targets = annotated
    if len(targets) != 1:
        found = ", ".join(f"{obj['kind']}/{name_of(obj)}" for obj in targets) or "none"
        raise UsageError(f"{file} must have one Deployment or StatefulSet; it has {found}.", next_step="keep one in it")
    (target,) = targets
    spaces = [obj for obj in objects if obj["kind"] == NAMESPACES.kind]
    place = namespace_of(target)
    namespace = next((obj for obj in spaces if name_of(obj) == place), None if place or len(spaces) != 1 else spaces[0])
    hpas = [obj for obj in objects if obj["kind"] == HPAS.kind]
    return SimulatedWorkload(target=target, hpa=_matching(hpas, target["kind"], name_of(target)), namespace=namespace)


def _spelled(found: manifests.Manifest) -> Obj:
    """The object with the fields that a server adds; an error for fields that it would reject."""
    obj = found.obj
    spec, annotations = obj.get("spec") or {}, obj["metadata"].get("annotations") or {}
    if not isinstance(annotations, dict) or not all(isinstance(value, str) for value in annotations.values()):
        raise found.wrong("An annotation is not a string.", "put its value in quotes")
    if not isinstance(spec, dict) or not isinstance(spec.get("replicas", 1), int):
        raise found.wrong("spec.replicas is not an integer.")
    if obj["kind"] == HPAS.kind and not _is_autoscaler(spec):
        raise found.wrong("The autoscaler must have scaleTargetRef with kind and name, and maxReplicas.")
    return {**obj, "spec": spec}


def _is_autoscaler(spec: Obj) -> bool:
    target = spec.get("scaleTargetRef")
    numbers = (spec.get("minReplicas", 1), spec.get("maxReplicas"))
    return isinstance(target, dict) and {"kind", "name"} <= set(target) and all(isinstance(one, int) for one in numbers)


def _bare(raw: bytes) -> dict[str, str]:
    """The annotations of a file without an object, with or without `metadata:` and `annotations:` above; else {}."""
    try:
        value: Any = yaml.load(raw, Loader=manifests.Loader)  # noqa: S506  # a safe loader that reads fewer types
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    for key in ("metadata", "annotations"):
        if isinstance(value, dict) and "kind" not in value and isinstance(value.get(key), dict):
            value = value[key]
    if not isinstance(value, dict) or "kind" in value or not all("/" in str(key) for key in value):
        return {}
    return {str(key): str(item) for key, item in value.items()}
