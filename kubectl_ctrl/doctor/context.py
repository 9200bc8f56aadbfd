"""`doctor` about the selected cluster: whether it answers, our user there, and whether verbs may change it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kubectl_ctrl.clusters.registry import Phase
from kubectl_ctrl.doctor.checks import CheckInput, ConnectedCluster, fail, info, ok, split
from kubectl_ctrl.doctor.diagnosis import Line
from kubectl_ctrl.errors import ConfigError, CtrlError
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.target import guard
from kubectl_ctrl.target.choice import selects_nothing


async def context(bench: CheckInput) -> Sequence[Line]:
    """A machine without a cluster is no problem as long as one can be created."""
    try:
        there = await bench.reach.reached()
    except CtrlError as error:
        if isinstance(error, ConfigError) and selects_nothing(bench.user, bench.target.flags):
            return (await _nothing(bench),)
        return (_unreached(bench, error),)
    who = f"; your user is {there.user}" if there.user else ""
    return (ok("context", f"{_named(there.resolved)} answers at {there.resolved.server} ({there.version}){who}"),)


def _unreached(bench: CheckInput, error: CtrlError) -> Line:
    """Every reason has the exit code of an unreachable cluster."""
    what = error.message.rstrip(".") + (f" ({error.tried})" if error.tried else "")
    with suppress(CtrlError):  # if no cluster can be selected, that is the error already
        what = f"{_named(bench.target.resolved())}: {what}"
    advice, command = split(error.next_step)
    return fail("context", what, code=3, advice=advice, command=command or ("" if advice else "kubectl config view"))


async def _nothing(bench: CheckInput) -> Line:
    text = "no cluster is selected: there is no current-context"
    if managed := [entry.name for entry in bench.registry.entries() if entry.phase is Phase.READY]:
        command = f'eval "$({ctrl("cluster", "env", managed[0])})"'
        return info("context", f"{text}; managed clusters: {', '.join(managed)}", command=command)
    if any(one.usable for one in (await bench.fitness()).values()):
        return info("context", text, command="kubectl ctrl up")
    return info("context", text, advice="set KUBECONFIG to a kubeconfig with a current-context")


async def permission(bench: CheckInput) -> Sequence[Line]:
    """Whether the guard lets verbs change the cluster."""
    there = await bench.reach.reached()
    return (info("guard", _permission(bench, there)),)


def _permission(bench: CheckInput, there: ConnectedCluster) -> str:
    resolved, name = there.resolved, guard.context_name(there.resolved)
    if guard.managed(resolved, bench.registry):
        return "it may be changed: kubectl ctrl created it"
    if guard.is_local(resolved):
        return "it may be changed: its name and server are those of a local cluster"
    standing = guard.standing_list(bench.user.config_file)
    if guard.AllowedContext(name, resolved.server) in standing:
        return f"it may be changed: {bench.user.config_file} allows it"
    return f"verbs that change it need {command('--allow-context', guard.to_allow(resolved))}"


def _named(resolved: Resolved) -> str:
    return f"context {resolved.context}" if resolved.context else guard.context_name(resolved)
