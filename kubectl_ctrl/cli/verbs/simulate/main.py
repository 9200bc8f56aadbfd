"""What `simulate` does: finds a workload, and goes from event to event by the scaler's own plans."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.answers import document
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.cli.verbs.table import Effect
from kubectl_ctrl.client.client import Client
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
from kubectl_ctrl.controllers.scaler.owners import gitops_problem, owner_problem
from kubectl_ctrl.controllers.scaler.plan import Plan, plan, replicas_of
from kubectl_ctrl.controllers.scaler.reconciler import WORKLOADS, targets_of
from kubectl_ctrl.controllers.scaler.schedule import BadSchedule
from kubectl_ctrl.errors import Forbidden, UsageError
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.model import manifests
from kubectl_ctrl.model.objects import Obj, name_of, namespace_of
from kubectl_ctrl.model.patches import apply_merge
from kubectl_ctrl.model.resources import HPAS, NAMESPACES, Resource
from kubectl_ctrl.target.connection import connected, meant
from kubectl_ctrl.text import table
from kubectl_ctrl.value import Value, replace

_DAY = 86_400.0
_MOST_ROWS = 1000
_FORMS = ("", "json", "yaml")
_SHORT = {"deploy": "deployments", "sts": "statefulsets"}


class Scene(Value, kw_only=True):
    """A workload and what has a say about it."""

    target: Obj
    hpa: Obj | None = None
    namespace: Obj | None = None


class Row(Value, kw_only=True):
    """One event and what it makes of the count."""

    at: float  # when it is acted on: later than its time when that was before the beginning
    zone: ZoneInfo
    schedule: str
    action: str
    time: str
    before: str
    after: str
    notes: tuple[str, ...]

    @property
    def local(self) -> str:
        return datetime.fromtimestamp(self.at, self.zone).strftime("%Y-%m-%d %H:%M %Z")

    @property
    def utc(self) -> str:
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%dT%H:%MZ")

    @property
    def what(self) -> str:
        """The action, and whether it is caught up rather than on time."""
        return self.action if self.time == rfc3339(self.at) else f"{self.action} (now)"

    @property
    def count(self) -> str:
        return self.before if self.before == self.after else f"{self.before} -> {self.after}"

    def as_json(self) -> Obj:
        return {
            "at": rfc3339(self.at),
            "local": datetime.fromtimestamp(self.at, self.zone).isoformat(timespec="seconds"),
            "timeZone": self.zone.key,
            "schedule": self.schedule,
            "action": self.action,
            "event": self.time,
            "from": self.before,
            "to": self.after,
            "notes": list(self.notes),
        }


def run(app: App, given: Given) -> int:
    """The body of the verb."""
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
    rows = list(simulated(scene, settings, names, begin, begin + days * _DAY))
    _answer(app, form, scene, rows, (begin, days))
    for line in _remarks(scene, settings, names, begin, rows):
        app.narrate(line)
    return 0


def simulated(scene: Scene, settings: Settings, names: Names, begin: float, end: float) -> Iterator[Row]:
    """Each event from `begin` to `end`, the first of them what would be done at once."""
    now, count = begin, 0
    while now <= end and count < _MOST_ROWS:
        planned = plan(scene.target, scene.hpa, settings, names, now)
        if planned.changes:
            after = _after(scene, planned)
            yield _row(scene, after, planned, now)
            scene, count = after, count + 1
        if planned.look is None:
            return
        now = planned.look


def _after(scene: Scene, planned: Plan) -> Scene:
    """What the changes make of it; an autoscaler that is on brings the count within its bounds."""
    hpa = None if scene.hpa is None else apply_merge(scene.hpa, planned.hpa)
    target = apply_merge(scene.target, planned.target)
    if hpa is not None and (now := replicas_of(target)):
        count = max(int(hpa["spec"].get("minReplicas") or 1), min(now, int(hpa["spec"]["maxReplicas"])))
        target = apply_merge(target, {"spec": {"replicas": count}})
    return replace(scene, target=target, hpa=hpa)


def _row(before: Scene, after: Scene, planned: Plan, now: float) -> Row:
    event = planned.event
    return Row(
        at=now,
        zone=event.schedule.zone if event else ZoneInfo("UTC"),
        schedule=event.schedule.name if event else "-",
        action=str(event.action) if event else "release",
        time=event.time if event else rfc3339(now),
        before=_count(before),
        after=_count(after),
        notes=tuple(note.message for note in planned.notes),
    )


def _count(scene: Scene) -> str:
    replicas = replicas_of(scene.target)
    if scene.hpa is None or not replicas:
        return str(replicas)
    spec = scene.hpa["spec"]
    return f"{spec.get('minReplicas') or 1}..{spec['maxReplicas']}"


def _begin(text: str, clock: Clock) -> float:
    if not text:
        return clock.now()
    try:
        return parse_moment(text, ZoneInfo("UTC"))
    except BadSchedule as error:
        raise UsageError(f"Invalid value for --from: it {error}") from None


def _settings(scene: Scene, names: Names) -> Settings:
    try:
        return read_settings(names.said(scene.target), names.said(scene.namespace))
    except BadAnnotation as bad:
        raise UsageError(str(bad), next_step="the scaler changes nothing until this is mended") from None


def _remarks(scene: Scene, settings: Settings, names: Names, begin: float, rows: Iterable[Row]) -> Iterator[str]:
    """What a reader of the rows should know besides."""
    rows = list(rows)
    if settings.empty:
        yield f"{_title(scene)} has no annotations under {names.prefix} that say when."
    elif not rows:
        yield "nothing happens in this time" + (": it is paused" if settings.pause else "")
    if len(rows) == _MOST_ROWS:
        yield f"these are the first {_MOST_ROWS} events; --from shows later ones"
    for schedule in settings.schedules:
        for action, cron in schedule.crons():
            if cron.both_days:
                yield f"{action} of {schedule.name!r} ({cron.text}): the day of the month or the weekday is enough"
    yield from (note for row in rows for note in row.notes if not note.startswith("Scaled "))
    if problem := owner_problem(scene.target, settings, names):
        yield problem
    first = plan(scene.target, scene.hpa, settings, names, begin)
    if problem := gitops_problem(scene.target, scene.hpa, first, settings):
        yield problem


def _answer(app: App, form: str, scene: Scene, rows: list[Row], span: tuple[float, int]) -> None:
    if form:
        begin, days = span
        value = {
            "object": _title(scene),
            "begin": rfc3339(begin),
            "days": days,
            "events": [one.as_json() for one in rows],
        }
        app.answer(document(value, form))
    elif rows:
        cells = [[one.local, one.utc, one.schedule, one.what, one.count] for one in rows]
        app.answer(table(cells, header=["LOCAL TIME", "UTC", "SCHEDULE", "ACTION", "REPLICAS"]))


def _title(scene: Scene) -> str:
    return f"{scene.target['kind']} {namespace_of(scene.target) or 'default'}/{name_of(scene.target)}"


# Where the workload comes from.


def _scene(app: App, given: Given, clock: Clock, names: Names) -> Scene:
    if given["filename"]:
        if given.arguments:
            raise UsageError("simulate takes either a workload or -f FILE.", next_step="leave one of them out")
        return scene_of(*given.content("filename"), names)
    resource, name = _named(given.arguments)
    resolved = meant(app, given, Effect.READ)
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
) -> tuple[Scene, tuple[str, ...]]:
    client = await connected(app, resolved, clock=clock, rng=random.SystemRandom())
    try:
        target = _typed(await client.get(resource.ref(name, resolved.namespace)), resource)
        scene, unseen = Scene(target=target), []
        try:
            scene = replace(scene, namespace=await client.get(NAMESPACES.ref(resolved.namespace)))
        except Forbidden:
            unseen.append("its Namespace may not be read with these credentials: defaults from there are not known")
        try:
            scene = replace(scene, hpa=await _hpa_of(client, resource, name, resolved.namespace))
        except Forbidden:
            unseen.append("autoscalers may not be listed with these credentials: one is taken to be absent")
        return scene, tuple(unseen)
    finally:
        await client.close()


async def _hpa_of(client: Client, resource: Resource, name: str, namespace: str) -> Obj | None:
    listed = await client.list(HPAS, ListQuery(namespace=namespace))
    return _matching(listed.items, resource.kind, name)


def _matching(hpas: Iterable[Obj], kind: str, name: str) -> Obj | None:
    return next((hpa for hpa in hpas if (kind, name) in targets_of(hpa)), None)


def _typed(obj: Obj, resource: Resource) -> Obj:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def scene_of(raw: bytes, file: str, names: Names) -> Scene:
    """The workload of a file, or one that has the annotations which are all that the file has."""
    if annotations := _bare(raw):
        meta = {"name": Path(file).stem, "annotations": annotations}
        return Scene(target={"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": 1}})
    objects = [_spelled(found) for found in manifests.parse(raw, file)]
    kinds = {resource.kind for resource in WORKLOADS}
    targets = [obj for obj in objects if obj["kind"] in kinds]
    if len(targets) > 1 and len(said := [obj for obj in targets if names.on(obj)]) == 1:
        targets = said
    if len(targets) != 1:
        found = ", ".join(f"{obj['kind']}/{name_of(obj)}" for obj in targets) or "none"
        raise UsageError(f"{file} must have one Deployment or StatefulSet; it has {found}.", next_step="keep one in it")
    (target,) = targets
    spaces = [obj for obj in objects if obj["kind"] == NAMESPACES.kind]
    place = namespace_of(target)
    namespace = next((obj for obj in spaces if name_of(obj) == place), None if place or len(spaces) != 1 else spaces[0])
    hpas = [obj for obj in objects if obj["kind"] == HPAS.kind]
    return Scene(target=target, hpa=_matching(hpas, target["kind"], name_of(target)), namespace=namespace)


def _spelled(found: manifests.Manifest) -> Obj:
    """With the parts that a server would have, and without those that it would refuse."""
    obj = found.obj
    spec, annotations = obj.get("spec") or {}, obj["metadata"].get("annotations") or {}
    if not isinstance(annotations, dict) or not all(isinstance(value, str) for value in annotations.values()):
        raise found.wrong("An annotation is no text.", "put its value in quotes")
    if not isinstance(spec, dict) or not isinstance(spec.get("replicas", 1), int):
        raise found.wrong("spec.replicas is no whole number.")
    if obj["kind"] == HPAS.kind and not _is_autoscaler(spec):
        raise found.wrong("The autoscaler must have scaleTargetRef with kind and name, and maxReplicas.")
    return {**obj, "spec": spec}


def _is_autoscaler(spec: Obj) -> bool:
    target = spec.get("scaleTargetRef")
    numbers = (spec.get("minReplicas", 1), spec.get("maxReplicas"))
    return isinstance(target, dict) and {"kind", "name"} <= set(target) and all(isinstance(one, int) for one in numbers)


def _bare(raw: bytes) -> dict[str, str]:
    """The annotations of a file that has nothing else: as they stand in an object, or below `annotations:`."""
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
