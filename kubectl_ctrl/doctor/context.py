"""What `doctor` says of the cluster that is meant: whether it answers, as whom we are there, what may be changed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kubectl_ctrl.clusters.registry import Phase
from kubectl_ctrl.doctor.checks import Bench, Reached, fail, info, ok, split
from kubectl_ctrl.doctor.diagnosis import Line
from kubectl_ctrl.errors import ConfigError, CtrlError
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.target import guard
from kubectl_ctrl.target.choice import selects_nothing


async def context(bench: Bench) -> Sequence[Line]:
    """A machine without any cluster is as it should be, as long as one can be made."""
    try:
        there = await bench.reach.reached()
    except CtrlError as error:
        if isinstance(error, ConfigError) and selects_nothing(bench.user, bench.target.flags):
            return (await _nothing(bench),)
        return (_unreached(bench, error),)
    who = f", and knows us as {there.user}" if there.user else ""
    return (ok("context", f"{_named(there.resolved)} answers at {there.resolved.server} ({there.version}){who}"),)


def _unreached(bench: Bench, error: CtrlError) -> Line:
    """Whatever keeps us from the cluster has the exit code of a cluster that is not reached."""
    what = error.message.rstrip(".") + (f" ({error.tried})" if error.tried else "")
    with suppress(CtrlError):  # where it is not even known which one is meant, that is what the error says
        what = f"{_named(bench.target.resolved())}: {what}"
    advice, command = split(error.next_step)
    return fail("context", what, code=3, advice=advice, command=command or ("" if advice else "kubectl config view"))


async def _nothing(bench: Bench) -> Line:
    text = "no cluster is meant: there is no current-context"
    if made := [entry.name for entry in bench.registry.entries() if entry.phase is Phase.READY]:
        command = f'eval "$({ctrl("cluster", "env", made[0])})"'
        return info("context", f"{text}, and there are several of ours: {', '.join(made)}", command=command)
    if any(one.usable for one in (await bench.fitness()).values()):
        return info("context", text, command="kubectl ctrl up")
    return info("context", text, advice="point KUBECONFIG to a kubeconfig, or set a current-context in it")


async def permission(bench: Bench) -> Sequence[Line]:
    """Whether the guard lets verbs change it: for information, whichever it is."""
    there = await bench.reach.reached()
    return (info("guard", _freedom(bench, there)),)


def _freedom(bench: Bench, there: Reached) -> str:
    resolved, name = there.resolved, guard.context_name(there.resolved)
    if guard.managed(resolved, bench.registry):
        return "it may be changed: we made it"
    if guard.is_local(resolved):
        return "it may be changed: its name and its server are a local cluster's"
    standing = guard.standing_list(bench.user.config_file)
    if guard.Allowed(name, resolved.server) in standing:
        return f"it may be changed: {bench.user.config_file} allows it"
    return f"verbs leave it alone unless they are told {command('--allow-context', guard.to_allow(resolved))}"


def _named(resolved: Resolved) -> str:
    return f"context {resolved.context}" if resolved.context else guard.context_name(resolved)
