"""NOT SEEN and NEVER RAN: the object is there, and no attempt answers to its last change."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_ctrl.findings.account import Fact, Finding, Qualifier, Risk, Try
from kubectl_ctrl.findings.case import Case, Found
from kubectl_ctrl.model.attempt import Held
from kubectl_ctrl.model.objects import labels_of
from kubectl_ctrl.model.record import Source
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.model.suggestions import ctrl

# Changes of these say nothing about what is wanted of the controller.
_ASIDE = ("status", "metadata")


def not_seen(case: Case, qualifier: Qualifier | None) -> Found | None:
    return _by_crd(case) or _by_namespace(case) or _by_selector(case) or _by_predicate(case)


def _by_crd(case: Case) -> Found | None:
    state = case.moment.state if case.moment else None
    if state is None or f"{case.resource} is not installed" not in state.message:
        return None
    why = Fact(text=f"{case.resource} is not installed: {case.resource.kind} objects cannot be watched", at=state.at)
    assert case.controller is not None
    tries = (
        case.kubectl(Risk.READ, "get", "crd", case.resource.full_name),
        case.ctrl(Risk.WRITE, "install", case.controller.word),
    )
    return _unseen(case, why, tries, state.at)


def _by_namespace(case: Case) -> Found | None:
    run = case.run
    if run is None or not run.namespace or case.key.namespace in ("", run.namespace) or case.attempts:
        return None
    why = Fact(text=f"run {run.id} watches only namespace {run.namespace}; this object is in {case.key.namespace}")
    assert case.controller is not None
    tries = (
        case.ctrl(Risk.READ, "explain", case.controller.name),
        Try(risk=Risk.WRITE, command=str(ctrl("run", case.controller.word, f"--namespace={case.key.namespace}"))),
    )
    return _unseen(case, why, tries, run.began)


def _by_selector(case: Case) -> Found | None:
    run, body = case.run, case.body
    if run is None or not run.labels or body is None or body.obj is None:
        return None
    labels = labels_of(body.obj)
    if Selector.parse(run.labels).matches(labels):
        return None
    said = ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "none"
    why = Fact(
        text=f"run {run.id} watches only objects with labels {run.labels}; this object has {said}",
        source=body.source,
        at=body.at,
    )
    label = run.labels if _plain(run.labels) else f"KEY=VALUE-THAT-FITS-{run.labels}"
    tries = (
        case.kubectl(Risk.READ, "get", case.target, "--show-labels"),
        case.kubectl(Risk.WRITE, "label", case.target, *label.split(",")),
    )
    return _unseen(case, why, tries, run.began)


def _plain(selector: str) -> bool:
    return all(part.count("=") == 1 and "!" not in part and " " not in part for part in selector.split(","))


def _by_predicate(case: Case) -> Found | None:
    held = case.held
    if held is None or not _matters(case, held):
        return None
    by = " and ".join(repr(name) for name in held.by)
    what = ", ".join(held.changed[:3]) or held.kind
    who = " or ".join(held.writers) or "<unknown>"
    why = [Fact(text=f"its last change ({what} by {who}) was filtered out by {by}", at=held.at)]
    if held.count > 1:
        why.append(Fact(text=f"so were the {held.count - 1} changes before it", at=held.at))
    tries = [case.ctrl(Risk.READ, "trace", case.target)]
    if case.controller is not None:
        tries += [case.ctrl(Risk.READ, "explain", case.controller.name), case.rerun()]
    last = case.ended
    since = held.at
    evidence = Fact(
        text=f"tally of {held.resource} {held.key}: version {held.version} (uid {held.uid}), by {by}", at=held.at
    )
    return Found(
        finding=Finding.NOT_SEEN,
        since=since,
        why=tuple(why),
        tries=tuple(tries),
        about=last,
        evidence=(evidence,),
        gap=(),
    )


def _matters(case: Case, held: Held) -> bool:
    """Whether what was held back is newer than what was looked at, and about what is wanted."""
    last = case.last
    if last is None:
        return True
    return held.at > last.started and any(not path.startswith(_ASIDE) for path in held.changed)


def aside(case: Case) -> Iterator[Fact]:
    """A change that woke nobody and need not have."""
    held = case.held
    if held is not None and not (case.last is not None and held.at <= case.last.started):
        by = " and ".join(repr(name) for name in held.by)
        what = ", ".join(held.changed[:3]) or held.kind
        yield Fact(text=f"a later change ({what}) was filtered out by {by}", at=held.at)


def _unseen(case: Case, why: Fact, tries: tuple[Try, ...], since: float) -> Found:
    return Found(finding=Finding.NOT_SEEN, since=since, why=(why,), tries=tries, about=case.ended, gap=())


def never_ran(case: Case, qualifier: Qualifier | None) -> Found | None:
    if case.attempts:
        return None
    if case.controller is None:
        why = Fact(text=f"no controller for {case.resource} is recorded on this cluster")
        tries: tuple[Try, ...] = (case.ctrl(Risk.READ, "list"), case.kubectl(Risk.READ, "describe", case.target))
        return Found(finding=Finding.NEVER_RAN, since=None, why=(why,), tries=tries, gap=())
    entry = case.entry
    if entry is not None:
        why = Fact(text=f"it is in the queue ({entry.state}) with {entry.causes} causes", at=entry.since)
    elif qualifier is not None:
        why = Fact(text=f"{case.controller.name} is inactive: {qualifier.text}", at=qualifier.since)
    else:
        why = Fact(text=f"{case.controller.name} received no event for it", source=Source.INFERRED)
    tries = (case.ctrl(Risk.READ, "queue", case.controller.name),)
    if qualifier is not None:
        tries = (*tries, case.revived())
    since = entry.since if entry else case.run.began if case.run else None
    return Found(finding=Finding.NEVER_RAN, since=since, why=(why,), tries=tries, gap=())
