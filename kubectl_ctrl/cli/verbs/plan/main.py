"""`plan`: finds the object and its controller, plans a reconcile, and prints the plan."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.answers import document
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.cli.verbs.plan.external_diff import compare
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clock import Clock, SystemClock
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import CallSite, NotInstalled, NotServed, TimedOut, UsageError
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.loader import sources
from kubectl_ctrl.loader.sources import SourcedController
from kubectl_ctrl.model import manifests
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Obj, name_of, namespace_of
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.plan.dry_run import PlanClient
from kubectl_ctrl.plan.planner import Planner, PlanOptions
from kubectl_ctrl.plan.steps import Plan, PlannedEffect
from kubectl_ctrl.plan.world import World
from kubectl_ctrl.render.attempts import call_text
from kubectl_ctrl.render.plan import plan_json, plan_lines
from kubectl_ctrl.render.plan_diff import secrecy_of, sides_of
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.runs.instances import lease_ref
from kubectl_ctrl.target import guard
from kubectl_ctrl.target.connection import check_namespace
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.text import Text, headed, verbatim
from kubectl_ctrl.value import Value, replace
from kubectl_ctrl.version import VERSION

_CALLS_FROM = 4
_TRACEBACKS_FROM = 6


class _Wanted(Value, kw_only=True):
    """The command line, before any request."""

    controllers: tuple[SourcedController, ...]
    chosen: bool  # by --controller
    type: str = ""
    name: str = ""
    objects: tuple[manifests.Manifest, ...] = ()  # of a file


class _Task(Value, kw_only=True):
    """The reconciles to plan, with the objects of a file."""

    controller: SourcedController
    requests: tuple[Request, ...]
    given: tuple[tuple[ObjectRef, Obj], ...] = ()


def run(app: App, given: ParsedCommandLine) -> int:
    app.general_error = 2
    form = given.one_of("output", ("", "text", "json", "yaml"))
    wanted = _wanted(given)
    resolved = app.meant(given, CommandEffect.DRY_RUN)
    with logging_to(app.narrate, form="text", verbosity=app.verbosity):
        plan = asyncio.run(_planned(app, given, wanted, resolved))
        _narrate(app, plan)
        _answer(app, plan, form, whole=given["diff"])
        secrecy = secrecy_of(plan)
        app.hide = secrecy.text
        if given["diff"] and form in ("", "text"):
            fates = [fate for fate in (*plan.given, *plan.fates) if fate.effect is not PlannedEffect.FOREIGN]
            compare(app, [sides_of(fate, secrecy) for fate in fates])
    if (error := plan.error) is not None:
        raise error
    return 1 if plan.changed else 0


async def _planned(app: App, given: ParsedCommandLine, wanted: _Wanted, resolved: Resolved) -> Plan:
    clock, rng = SystemClock(), random.SystemRandom()
    timeout = given["timeout"]
    try:
        async with clock.timeout(timeout or None):
            client = await app.connected(resolved, clock=clock, rng=rng)
            try:
                task = await _task(client, wanted, resolved)
                _introduce(app, task, resolved)
                plan = await _plan(client, task, given, clock=clock, rng=rng)
                if guard.trusted(resolved, app.registry):  # runs on local and managed clusters hold no Lease
                    return replace(plan, lease=None)
                lease = await lease_ref(client, task.controller.spec.name, task.requests[0].namespace)
                return replace(plan, lease=lease)
            finally:
                await client.close()
    except TimeoutError:
        raise TimedOut(f"The plan did not finish within {timeout:g} s.", next_step="use a longer --timeout") from None


async def _plan(client: Client, task: _Task, given: ParsedCommandLine, *, clock: Clock, rng: random.Random) -> Plan:
    spec = task.controller.spec
    places = {request.namespace for request in task.requests}
    planner = Planner(
        spec,
        PlanClient(
            client.transport, clock=clock, rng=rng, user_agent=f"kubectl-ctrl/{VERSION} ({spec.name})", world=World()
        ),
        clock=clock,
        rng=rng,
        options=PlanOptions(
            namespace=places.pop() if len(places) == 1 else "",
            word=task.controller.word,
            to_fixpoint=given["to_fixpoint"],
            attempt_timeout=given["attempt_timeout"],
        ),
    )
    return await planner.plan(task.requests, task.given)


def _wanted(given: ParsedCommandLine) -> _Wanted:
    prefix, word = given["annotation_prefix"], given["controller"]
    controllers = sources.resolve([word] if word else BUNDLED, {"annotation_prefix": prefix} if prefix else None)
    if given["filename"]:
        if given.arguments:
            raise UsageError("plan takes either an object or -f FILE.", next_step="leave one of them out")
        found = manifests.parse(*given.content("filename"))
        return _Wanted(controllers=controllers, chosen=bool(word), objects=found)
    words = [part for argument in given.arguments for part in argument.split("/", 1)]
    if len(words) != 2 or not all(words):
        raise UsageError("plan takes one object, or -f FILE.", next_step="for instance: kubectl ctrl plan foo/web")
    return _Wanted(controllers=controllers, chosen=bool(word), type=words[0], name=words[1])


async def _task(client: Client, wanted: _Wanted, resolved: Resolved) -> _Task:
    if wanted.objects:
        return await _task_of_file(client, wanted, resolved)
    resource = await _resource(client, wanted)
    sourced = _chosen(wanted, [resource], f"{resource.kind} {wanted.name!r}")
    ref = resource.ref(wanted.name, resolved.namespace)
    if ref.namespace:
        await check_namespace(client, ref.namespace)
    await client.get(ref)  # NotFound, if it does not exist
    return _Task(controller=sourced, requests=(Request(ref.namespace, ref.name),))


async def _task_of_file(client: Client, wanted: _Wanted, resolved: Resolved) -> _Task:
    given: list[tuple[ObjectRef, Obj]] = []
    for found in wanted.objects:
        resource = await _served(client, wanted, found)
        place = (namespace_of(found.obj) or resolved.namespace) if resource.namespaced else ""
        meta = {**found.obj["metadata"], **({"namespace": place} if place else {})}
        given.append((resource.ref(name_of(found.obj), place), {**found.obj, "metadata": meta}))
    sourced = _chosen(wanted, [ref.resource for ref, _ in given], "this file")
    requests = tuple(Request(ref.namespace, ref.name) for ref, _ in given if _is_for(sourced, ref.resource))
    for place in sorted({ref.namespace for ref, _ in given} - {""}):
        await check_namespace(client, place)
    return _Task(controller=sourced, requests=tuple(dict.fromkeys(requests)), given=tuple(given))


async def _resource(client: Client, wanted: _Wanted) -> Resource:
    """The type as the server serves it; NotInstalled for a type of a controller that it does not serve."""
    try:
        return (await client.discovery.find(wanted.type)).resource
    except NotServed:
        name = wanted.type.lower()
        for sourced in wanted.controllers:
            for primary in sourced.spec.primaries:
                kind = primary.kind.lower()
                if name in (kind, primary.plural, primary.full_name, f"{kind}.{primary.group}"):
                    raise _not_installed(primary, sourced) from None
        raise


async def _served(client: Client, wanted: _Wanted, found: manifests.Manifest) -> Resource:
    """The type of an object in a file."""
    named = (found.obj["apiVersion"], found.obj["kind"])
    api = await client.discovery.declared(*named)
    if api is not None:
        return api.resource
    for sourced in wanted.controllers:
        for primary in sourced.spec.primaries:
            if (primary.api_version, primary.kind) == named:
                raise _not_installed(primary, sourced)
    raise NotServed(
        f"{found.where}: The server has no kind {named[1]!r} in {named[0]!r}.",
        site=CallSite("get", named[1]),
        code=404,
        next_step="Install its CRD, or check the apiVersion.",
    )


def _not_installed(primary: Resource, sourced: SourcedController) -> NotInstalled:
    return NotInstalled(
        f"{primary} ({primary.api_version}) is not installed.", next_step=str(ctrl("install", sourced.word))
    )


def _is_for(sourced: SourcedController, resource: Resource) -> bool:
    """Whether it is a primary type of the controller, in any version."""
    return any((one.group, one.plural) == (resource.group, resource.plural) for one in sourced.spec.primaries)


def _chosen(wanted: _Wanted, resources: Sequence[Resource], what: str) -> SourcedController:
    """The one controller for any of these types."""
    fits = [sourced for sourced in wanted.controllers if any(_is_for(sourced, one) for one in resources)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        names = [sourced.spec.name for sourced in fits]
        raise UsageError(
            f"Several controllers are for {what}: {', '.join(names)}.", next_step=f"select one: --controller {names[0]}"
        )
    known = ", ".join(str(one) for sourced in wanted.controllers for one in sourced.spec.primaries)
    whose = wanted.controllers[0].spec.name if wanted.chosen else "No bundled controller"
    raise UsageError(
        f"{whose} is {'not ' if wanted.chosen else ''}for {', '.join(map(str, dict.fromkeys(resources)))}.",
        tried=f"{'it is' if wanted.chosen else 'they are'} for {known}",
        next_step="use one of these types, or your own controller with --controller ./mine.py",
    )


def _introduce(app: App, task: _Task, resolved: Resolved) -> None:
    names = ", ".join(map(str, task.requests[:3])) + (", ..." if len(task.requests) > 3 else "")
    kind = task.controller.spec.primary.kind
    who = f"plan of {task.controller.spec.name} for {kind} {names}"
    for line in headed(who, f"on context {guard.context_name(resolved)} ({resolved.server})", app.width):
        app.narrate(line)


def _narrate(app: App, plan: Plan) -> None:
    """Print the calls with -v 4, and tracebacks of the reconciler with -v 6."""
    for one in plan.passes:
        for call in one.attempt.calls if app.verbosity >= _CALLS_FROM else ():
            app.narrate(f"{call.id} {call_text(call)}")
        if one.attempt.traceback and app.verbosity >= _TRACEBACKS_FROM:
            app.narrate(verbatim(secrecy_of(plan).text(one.attempt.traceback.rstrip())))


def _answer(app: App, plan: Plan, form: str, *, whole: bool) -> None:
    if form in ("json", "yaml"):
        app.answer(document(plan_json(plan, objects=whole), form))
        return
    style = Style(width=app.width, color=app.color, unicode=app.unicode, zone=UTC)
    app.answer_all(map(Text, plan_lines(plan, style)))
