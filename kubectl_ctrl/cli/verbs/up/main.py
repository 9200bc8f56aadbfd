"""What `up` does: a cluster, what controllers need on it, the controllers. Each step finds what is there already."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from random import SystemRandom

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.interrupts import cancellable
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.cli.output.progress import Progress, stopping, waiting
from kubectl_ctrl.cli.parsing import new_cluster
from kubectl_ctrl.cli.parsing.flags import KUBECTL_FLAGS
from kubectl_ctrl.cli.parsing.grammar import variable
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.cli.verbs import run as running
from kubectl_ctrl.cli.verbs.run.main import options_of, run_on
from kubectl_ctrl.cli.verbs.up import contents
from kubectl_ctrl.clock import Clock, SystemClock
from kubectl_ctrl.clusters import current_context
from kubectl_ctrl.clusters import names as ours
from kubectl_ctrl.clusters.lifecycle import held, raised
from kubectl_ctrl.clusters.provider import Life, Provider, Wish
from kubectl_ctrl.clusters.providers import chosen, providers
from kubectl_ctrl.clusters.registry import Entry, Phase
from kubectl_ctrl.errors import ConfigError, CtrlError, UsageError
from kubectl_ctrl.kubeconfig import files
from kubectl_ctrl.kubeconfig.resolution import Resolved, load_again
from kubectl_ctrl.loader import sources
from kubectl_ctrl.loader.sources import Sourced
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.runs import background, background_notes, holder
from kubectl_ctrl.runs.runners import Runner, runners
from kubectl_ctrl.story import lookup
from kubectl_ctrl.target import guard
from kubectl_ctrl.target.effect import Effect
from kubectl_ctrl.text import counted
from kubectl_ctrl.value import Value, replace

_SIMULATED = "its pods are simulated: they become ready, and nothing runs in them"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OF_CONTROLLERS = ("--detach", "--example", "--until-idle", "--timeout")


class Asked(Value, kw_only=True):
    """What the words of `up`, or of `cluster create`, ask for."""

    name: str
    provider: str
    wish: Wish
    use: bool
    images: tuple[str, ...] = ()
    sourced: tuple[Sourced, ...] = ()
    example: bool = False
    detach: bool = False
    namespace: str = ""  # of examples and controllers; "" is that of the cluster's context
    everywhere: bool = False  # the controllers work in all namespaces
    run_words: tuple[str, ...] = ()  # what `run` is to be told beside the context

    @property
    def shape(self) -> tuple[str, ...]:
        """The flags that say what a cluster is to be like, which one that is there will not become."""
        given = {"--image": self.wish.image, "--config": self.wish.config, "--nodes": self.wish.nodes is not None}
        return tuple(flag for flag, asked in given.items() if asked)

    @property
    def steps(self) -> tuple[str, ...]:
        wanted = {
            "provider": True,
            "cluster": True,
            "use": self.use,
            "load": bool(self.images),
            "install": bool(self.sourced),
            "example": self.example,
            "controllers": self.detach,
        }
        return tuple(name for name, asked in wanted.items() if asked)


def run(app: App, given: Given) -> int:
    """The body of the verb."""
    app.machine, app.quiet = given["progress"] == "json", given["quiet"]
    asked = _asked(app, given)
    clock = SystemClock()
    progress = Progress.of(app, given, asked.steps, clock)
    entry, code = bring(app, asked, progress, clock)
    if entry is None or asked.detach or not asked.sourced:
        return code
    return _foreground(app, asked, entry, progress)


def _asked(app: App, given: Given) -> Asked:
    """What is wrong with the words is said before anything is touched."""
    app.book.place(given["name"])
    if given["namespace"] and not _LABEL.fullmatch(given["namespace"]):
        raise UsageError(
            f"{given['namespace']!r} is not a name for a namespace.",
            next_step="use at most 63 of a-z, 0-9 and '-', not '-' at its ends",
        )
    _check_together(given)
    asked = Asked(
        name=given["name"],
        provider=given["provider"],
        wish=new_cluster.wish(given),
        use=given["use"],
        images=given["load"],
        sourced=sources.resolve(given.arguments),
        example=given["example"] and bool(given.arguments),
        detach=given["detach"] and bool(given.arguments),
        namespace=given["namespace"],
        everywhere=given["all_namespaces"],
        run_words=_run_words(given),
    )
    options_of(_run_given(app, asked, ()))
    return asked


def _check_together(given: Given) -> None:
    """Only what was typed counts: a variable that is set for other calls must not fail this one."""
    typed = [name for flag in given.typed if (name := flag.partition("=")[0]) in _OF_CONTROLLERS]
    if given["detach"] and given["until_idle"]:
        raise UsageError("--detach and --until-idle exclude each other.", next_step="kubectl ctrl up --help")
    if given["detach"] and "--timeout" in typed:
        raise UsageError("--timeout is for controllers in the foreground.", next_step="leave it out, or --detach")
    if typed and not given.arguments:
        raise UsageError(f"{typed[0]} needs a controller.", next_step=f"for instance: {ctrl('up', 'foo', typed[0])}")


def _run_words(given: Given) -> tuple[str, ...]:
    words = ["--until-idle"] if given["until_idle"] else []
    words += [f"--timeout={given['timeout']}s"] if given["timeout"] is not None else []
    words += [f"--namespace={given['namespace']}"] if given["namespace"] else []
    words += ["--all-namespaces"] if given["all_namespaces"] else []
    return (*words, *(["--log=json"] if given["progress"] == "json" else []))


def _run_given(app: App, asked: Asked, more: tuple[str, ...]) -> Given:
    """What `run` would be given: its flags of the environment hold here too."""
    words = [one.word for one in asked.sourced]
    given = running.VERB.parse([*asked.run_words, *more, "--", *words], app.user.environ)
    assert given is not None
    return given


def bring(app: App, asked: Asked, progress: Progress, clock: Clock) -> tuple[Entry | None, int]:
    """Have the cluster with all that is asked for, but for controllers in the foreground; None where it was broken off,
    and the exit code."""
    work = _Work(app, asked, progress, clock)

    try:
        with logging_to(progress.say, form="text", verbosity=app.verbosity):
            code = asyncio.run(cancellable(work.do(), stopping=stopping(progress), forced=work.tell_what_is_left))
    except CtrlError:
        if work.began and app.book.find(asked.name) is not None:
            work.tell_what_is_left()
        raise
    if code or work.entry is None:
        work.tell_what_is_left()
        return None, code
    for line in pointers(app, asked, work.entry):
        progress.say(line)
    return work.entry, 0


class _Work:
    """The steps; `entry` is the cluster once there is one."""

    def __init__(self, app: App, asked: Asked, progress: Progress, clock: Clock) -> None:
        self._app = app
        self._asked = asked
        self._progress = progress
        self._clock = clock
        self.entry: Entry | None = None
        self.began = False  # something may have been touched
        self._begun: list[background.Background] = []

    def __repr__(self) -> str:
        return f"_Work({self._asked.name}, {', '.join(self._asked.steps)})"

    async def do(self) -> None:
        app, asked = self._app, self._asked
        if asked.use:
            current_context.can_use(app.user)
        async with held(app.book, asked.name, self._clock, waiting(app.book, asked.name, self._progress)):
            app.book.check(asked.name)
            machine = ours.machine(app.user, self._clock)
            with self._progress.step("provider", "provider", error_tells=True) as step:
                provider, step.text = await chosen(asked.provider, asked.name, asked.wish, providers(machine), app.book)
            if asked.use:
                await current_context.could_use(app.user, asked.name, f"{provider.name}-{asked.name}")
            entry = await self._cluster(provider)
            entry = await self._adapt(entry, provider)
            if asked.sourced:
                await self._furnish(entry)
            self.entry = entry

    async def _cluster(self, provider: Provider) -> Entry:
        app, asked = self._app, self._asked
        before = app.book.find(asked.name)
        machine = ours.machine(app.user, self._clock)
        with self._progress.step("cluster", f"cluster {asked.name} ({provider.name})") as step:
            ready = before is not None and before.phase is Phase.READY
            life = await provider.life(before) if before is not None and ready else Life.ABSENT
            if life is Life.ABSENT:
                ours.check_kubeconfig(app.user, before)
            self.began = True
            everything = providers(machine)
            entry = await raised(
                app.book, everything, provider.name, asked.name, asked.wish, machine=machine, note=step.note
            )
            found = before is not None and before.began == entry.began
            how = (", started again" if life is Life.STOPPED else ", there already") if found else ""
            step.text = f"cluster {entry.name} ({entry.provider}, {entry.version}{how})"
        if found and asked.shape:
            self._progress.say(f"{', '.join(asked.shape)}: for a new cluster only, so this one stays as it is")
        if before is not None and before.uid and not found:
            entry = await self._replaced(before, entry)
        return entry

    async def _replaced(self, before: Entry, entry: Entry) -> Entry:
        """The cluster of that name was gone, or broken, and this is another one: who knew the old one is told."""
        app, asked = self._app, self._asked
        if trouble := lookup.cluster_deleted(app.user, before, self._clock.now()):
            self._progress.say(trouble)
        if before.used and not asked.use:
            self._progress.say(await current_context.undo(app.user, entry, app.book))
        return app.book.find(asked.name) or entry

    async def _adapt(self, entry: Entry, provider: Provider) -> Entry:
        """The user's kubeconfig, and images."""
        app, asked = self._app, self._asked
        if asked.use:
            with self._progress.step("use", f"context {entry.context}") as step:
                entry = await current_context.use(app.user, entry, app.book, app.narrate)
                step.text = f"context {entry.context}, the current one in your kubeconfig"
        if asked.images:
            with self._progress.step("load", f"load {', '.join(asked.images)}") as step:
                await provider.load(entry, asked.images)
                step.text = f"{counted(len(asked.images), 'image')} loaded"
        return entry

    async def _furnish(self, entry: Entry) -> None:
        app, asked = self._app, self._asked
        resolved = pinned(app, entry, asked.namespace)
        client = await app.connected(resolved, clock=self._clock, rng=SystemRandom())
        try:
            with self._progress.step("install", f"install {_names(asked)}") as step:
                await contents.install(client, asked.sourced, step)
                if asked.namespace:
                    await contents.have_namespace(client, asked.namespace, step)
            if asked.example:
                with self._progress.step("example", f"example of {_names(asked)}") as step:
                    await contents.exemplify(client, asked.sourced, resolved.namespace, step)
        finally:
            await client.close()
        names = [one.spec.name for one in asked.sourced]
        await background.drained(app.user, entry, names, self._clock, self._progress.say)
        if asked.detach:
            await self._detach(entry, resolved)

    async def _detach(self, entry: Entry, resolved: Resolved) -> None:
        app, asked = self._app, self._asked
        there = _running(app, entry, "" if asked.everywhere else resolved.namespace)
        with self._progress.step("controllers", "in the background") as step:
            for each in asked.sourced:
                if each.spec.name not in there:
                    self._begun.append(
                        background.started(heard(app.user.environ), entry, resolved, each, everywhere=asked.everywhere)
                    )
            for one in self._begun:
                await background.settled(app.user, one, self._clock, step.note)
            said = [_runs(name, there[name]) for name in _names(asked).split(", ") if name in there]
            step.text = "; ".join([*(str(one) for one in self._begun), *said])

    def tell_what_is_left(self) -> None:
        """After something went wrong, or somebody pressed Ctrl-C."""
        for one in self._begun:
            if holder.runs(one.pid):
                self._progress.say(f"{one}; to end it: {ctrl('stop', one.controller, '--name', self._asked.name)}")
        self._progress.say(ours.left(self._app.book, self._asked.name))


def heard(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables that would end what goes on in the background, or have it elsewhere."""
    unheard = {
        variable(name) for name in ("once", "timeout", "until", "until-idle", *(one.long for one in KUBECTL_FLAGS))
    }
    return {name: value for name, value in environ.items() if name not in unheard}


def pinned(app: App, entry: Entry, namespace: str = "") -> Resolved:
    """The cluster through its own kubeconfig, which must still be the one that the book has."""
    resolved = app.pointed_at(entry)
    if namespace:
        origin = replace(resolved.origin, flags=replace(resolved.origin.flags, namespace=namespace))
        resolved = load_again(replace(resolved, origin=origin))
    guard.check(Effect.WRITE, resolved, allow="", standing=(), book=app.book)
    return resolved


def _running(app: App, entry: Entry, scope: str) -> Mapping[str, Runner]:
    """Who runs there already, by controller."""
    found = runners(app.user.state, cluster=entry.uid)
    return {runner.controller: runner for runner in found if runner.overlaps(scope)}


def _runs(name: str, runner: Runner) -> str:
    return f"{name} already runs here: {runner.text}"


def _names(asked: Asked) -> str:
    return ", ".join(one.spec.name for one in asked.sourced)


def _foreground(app: App, asked: Asked, entry: Entry, progress: Progress) -> int:
    """The controllers until Ctrl-C, or until idle; the cluster stays, whatever ends them."""
    resolved = pinned(app, entry, asked.namespace)
    there = _running(app, entry, "" if asked.everywhere else resolved.namespace)
    sourced = asked.sourced
    if "--until-idle" not in asked.run_words:
        for one in sourced:
            if one.spec.name in there:
                progress.say(_runs(one.spec.name, there[one.spec.name]))
        sourced = tuple(one for one in sourced if one.spec.name not in there)
    if not sourced:
        return 0
    given = _run_given(app, asked, (f"--context={entry.context}",))
    try:
        return run_on(app, given, sourced, lambda: resolved)
    finally:
        progress.say(ours.left(app.book, entry.name))


def pointers(app: App, asked: Asked, entry: Entry) -> list[str]:
    """How to get at the cluster and what runs on it, and what became of the user's own context."""
    name = () if entry.name == ours.DEFAULT else (entry.name,)
    lines = [_SIMULATED] if entry.provider == "kwok" and asked.wish.nodes != 0 else []
    lines += ["it has no nodes, so pods stay pending"] if asked.wish.nodes == 0 else []
    if asked.detach and (behind := _in_the_background(app, asked, entry)):
        where = () if _is_current(app, entry) else ("--name", entry.name)
        lines.append(f"in the background: {ctrl('logs', behind[0], '-f', *where)}; {ctrl('stop', *behind, *where)}")
    return [*lines, *_whose(app, entry, f'for this shell: eval "$({ctrl("cluster", "env", *name)})"')]


def _in_the_background(app: App, asked: Asked, entry: Entry) -> list[str]:
    """Without those that were found running in a terminal, which have no log."""
    found = runners(app.user.state, cluster=entry.uid)
    names = []
    for one in asked.sourced:
        page = background_notes.read(background_notes.log_of(entry, one.spec.name))
        pids = {runner.pid for runner in found if runner.controller == one.spec.name}
        if not pids or (page is not None and page.pid in pids):
            names.append(one.spec.name)
    return names


def _is_current(app: App, entry: Entry) -> bool:
    """Whether every verb means it without a further word."""
    try:
        own = files.read("", app.user.environ, app.user.home)
    except ConfigError:
        return False
    there = own.contexts.get(own.current_context)
    return (
        own.current_context == entry.context
        and there is not None
        and bool(entry.used or there.file == entry.kubeconfig)
    )


def _whose(app: App, entry: Entry, line: str) -> list[str]:
    """What the user's own kubeconfig has to do with it, and the line that means it where that does not."""
    try:
        own = files.read("", app.user.environ, app.user.home)
    except ConfigError as error:
        return [f"context {entry.context}; your kubeconfig is unchanged, and cannot be read: {error.message}", line]
    theirs = own.contexts.get(entry.context)
    if theirs is not None and theirs.file != entry.kubeconfig and not entry.used:
        return [f"your kubeconfig has a {entry.context} of its own: --context means that, and this line ours", line]
    if _is_current(app, entry):
        return [f"context {entry.context} is your current one"]
    whose = f"your context {own.current_context} is unchanged" if own.current_context else "you have no current context"
    return [f"context {entry.context}; {whose}", line]
