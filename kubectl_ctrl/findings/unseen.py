"""NOT SEEN and NEVER RAN: the object exists, and no attempt follows its last change."""

from __future__ import annotations

from kubectl_ctrl.findings.account import Fact, Finding, Risk, Try
from kubectl_ctrl.findings.case import Case, CaseFinding
from kubectl_ctrl.model.objects import labels_of
from kubectl_ctrl.model.record import FactSource
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.text import counted

# Changes of these fields are no change of the desired state.
_ASIDE = ("status", "metadata")


def not_seen(case: Case) -> CaseFinding | None:
    return _by_crd(case) or _by_namespace(case) or _by_selector(case) or _by_predicate(case)


def _by_crd(case: Case) -> CaseFinding | None:
    state = case.moment.state if case.moment else None
    if state is None or f"{case.resource} is not installed" not in state.message:
        return None
    if case.last is not None and state.at <= case.last.started:
        return None  # probably it was installed after that state; if not, the next state reports it
    why = Fact(text=f"{case.resource} is not installed: {case.resource.kind} objects cannot be watched", at=state.at)
    assert case.controller is not None
    tries = (
        case.kubectl(Risk.READ, "get", "crd", case.resource.full_name),
        case.ctrl(Risk.WRITE, "install", case.controller.word),
    )
    return _found(case, (why,), tries, state.at)


def _by_namespace(case: Case) -> CaseFinding | None:
    run = case.run
    if run is None or not run.namespace or case.key.namespace in ("", run.namespace) or case.attempts:
        return None
    why = Fact(text=f"run {run.id} watches only namespace {run.namespace}; this object is in {case.key.namespace}")
    assert case.controller is not None
    tries = (
        case.ctrl(Risk.READ, "explain", case.controller.name),
        Try(risk=Risk.WRITE, command=str(ctrl("run", case.controller.word, f"--namespace={case.key.namespace}"))),
    )
    return _found(case, (why,), tries, run.began)


def _by_selector(case: Case) -> CaseFinding | None:
    run, body = case.run, case.body
    if run is None or not run.labels or body is None or body.obj is None:
        return None
    labels = labels_of(body.obj)
    if Selector.parse(run.labels).matches(labels):
        return None
    present = ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "none"
    text = f"run {run.id} watches only objects with labels {run.labels}; this object has {present}"
    # Only a selector of plain KEY=VALUE requirements is also an argument of `kubectl label`.
    plain = all(part.count("=") == 1 and "!" not in part and " " not in part for part in run.labels.split(","))
    label = run.labels if plain else f"KEY=VALUE-THAT-FITS-{run.labels}"
    tries = (
        case.kubectl(Risk.READ, "get", case.target, "--show-labels"),
        case.kubectl(Risk.WRITE, "label", case.target, *label.split(",")),
    )
    return _found(case, (Fact(text=text, source=body.source, at=body.at),), tries, run.began)


def _by_predicate(case: Case) -> CaseFinding | None:
    change, last = case.filtered, case.last
    if change is None:
        return None
    if last is not None and (change.at <= last.started or all(path.startswith(_ASIDE) for path in change.changed)):
        return None
    by = " and ".join(repr(name) for name in change.by)
    what = ", ".join(change.changed[:3]) or change.kind
    who = " or ".join(change.writers) or "<unknown>"
    why = [Fact(text=f"its last change ({what} by {who}) was filtered out by {by}", at=change.at)]
    if change.count > 1:
        before = "was the change" if change.count == 2 else f"were the {change.count - 1} changes"
        why.append(Fact(text=f"so {before} before it", at=change.at))
    tries = [case.ctrl(Risk.READ, "trace", case.target)]
    if case.controller is not None:
        tries += [case.ctrl(Risk.READ, "explain", case.controller.name), case.rerun()]
    text = f"tally of {change.resource} {change.key}: version {change.version} (uid {change.uid}), by {by}"
    return _found(case, tuple(why), tuple(tries), change.at, evidence=(Fact(text=text, at=change.at),))


def later_change(case: Case) -> Fact | None:
    """A change after the last attempt that was filtered out and needs no reconcile."""
    change, last = case.filtered, case.last
    if change is None or (last is not None and change.at <= last.started):
        return None
    by = " and ".join(repr(name) for name in change.by)
    what = ", ".join(change.changed[:3]) or change.kind
    return Fact(text=f"a later change ({what}) was filtered out by {by}", at=change.at)


def _found(
    case: Case, why: tuple[Fact, ...], tries: tuple[Try, ...], since: float, evidence: tuple[Fact, ...] = ()
) -> CaseFinding:
    return CaseFinding(
        finding=Finding.NOT_SEEN, since=since, why=why, tries=tries, about=case.ended, evidence=evidence, gap=()
    )


def never_ran(case: Case) -> CaseFinding | None:
    if case.attempts:
        return None
    if case.controller is None:
        why = Fact(text=f"no controller for {case.resource} is recorded on this cluster")
        tries: tuple[Try, ...] = (case.ctrl(Risk.READ, "list"), case.kubectl(Risk.READ, "describe", case.target))
        return CaseFinding(finding=Finding.NEVER_RAN, since=None, why=(why,), tries=tries, gap=())
    entry, qualifier = case.entry, case.qualifier
    if entry is not None:
        queued = f"it is in the queue ({entry.state}) with {counted(entry.causes, 'cause')}"
        why = Fact(text="its first reconcile is running" if entry.state == "running" else queued, at=entry.since)
    elif qualifier is not None:
        why = Fact(text=f"{case.controller.name} is inactive: {qualifier.text}", at=qualifier.since)
    else:
        why = Fact(text=f"{case.controller.name} received no event for it", source=FactSource.INFERRED)
    tries = (case.ctrl(Risk.READ, "queue", case.controller.name), *((case.resume(),) if qualifier else ()))
    since = entry.since if entry else case.run.began if case.run else None
    return CaseFinding(finding=Finding.NEVER_RAN, since=since, why=(why,), tries=tries, gap=())
