"""Jobs and CronJobs.

| kind | checked |
|---|---|
| Job | numbers, completion mode, the generated selector, the template; few fields may change |
| CronJob | schedule, time zone, policy, numbers, the job template |
"""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.kinds import schedules
from kubectl_ctrl.sandbox.kinds.checks import pods
from kubectl_ctrl.sandbox.kinds.checks.words import (
    Found,
    invalid,
    label,
    not_negative,
    one_of,
    required,
    selector,
    selects,
    unlike,
    unsupported,
)

_NUMBERS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_MORE = ("backoffLimitPerIndex", "maxFailedIndexes")
_FIXED = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")


def job(obj: Obj, old: Obj | None) -> Found:
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    if old is None and not spec.get("manualSelector"):
        yield from _generated(spec, meta)
    yield from job_spec("spec", spec)
    given = spec.get("selector")
    if given is None:
        yield required("spec.selector")
    yield from selector("spec.selector", given)
    found = (spec["template"].get("metadata") or {}).get("labels")
    if selects(given, found) is False:
        yield invalid("spec.template.metadata.labels", found, "`selector` does not match template `labels`")
    if old is not None:
        yield from _change(spec, old.get("spec") or {})
    elif spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        host = f"{meta['name']}-{spec['completions'] - 1}"
        if label(host):
            words = f"will not able to create pod with invalid DNS label: {host}"
            yield invalid("metadata.name", meta["name"], words)


def _generated(spec: Obj, meta: Obj) -> Found:
    own = {"controller-uid": meta.get("uid"), "job-name": meta["name"]}
    own |= {f"batch.kubernetes.io/{key}": value for key, value in own.items()}
    found = (spec["template"].get("metadata") or {}).get("labels") or {}
    for key in ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"):
        if found.get(key) != own[key]:
            words = f"must be '{own[key]}'"
            yield invalid("spec.template.metadata.labels", found, words)
    if selects(spec.get("selector"), own) is False:
        yield invalid("spec.selector", spec.get("selector"), "`selector` not auto-generated")


def job_spec(path: str, spec: Obj) -> Found:
    yield from not_negative(path, spec, *_NUMBERS, *_MORE)
    mode = spec.get("completionMode")
    if mode not in ("NonIndexed", "Indexed"):
        yield unsupported(f"{path}.completionMode", mode, "NonIndexed", "Indexed")
    if mode == "Indexed" and spec.get("completions") is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if mode == "NonIndexed":
        for name in _MORE:
            if spec.get(name) is not None:
                yield invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")
    policies = ("Failed",) if spec.get("podFailurePolicy") else ("Failed", "TerminatingOrFailed")
    yield from one_of(f"{path}.podReplacementPolicy", spec.get("podReplacementPolicy"), *policies)
    template = spec.get("template") or {}
    yield from pods.template(f"{path}.template", template)
    yield from _restarts(f"{path}.template.spec.restartPolicy", spec, (template.get("spec") or {}).get("restartPolicy"))


def _restarts(field: str, spec: Obj, policy: Any) -> Found:
    if policy in ("Always", "", None):
        yield required(field, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield unsupported(field, policy, "OnFailure", "Never")
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield invalid(field, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _change(spec: Obj, old: Obj) -> Found:
    new, before = spec.get("completions"), old.get("completions")
    if spec.get("completionMode") != "Indexed":
        yield from unlike("spec.completions", new, before)
    elif new != before and new is not None and new != spec.get("parallelism"):
        yield invalid("spec.completions", new, "can only be modified in tandem with spec.parallelism")
    yield from unlike("spec.selector", spec.get("selector"), old.get("selector"))
    if not old.get("suspend"):
        yield from unlike("spec.template", spec.get("template"), old.get("template"))
    for name in _FIXED:
        yield from unlike(f"spec.{name}", spec.get(name), old.get(name))


def cron_job(obj: Obj, old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    before = (old or {}).get("spec") or {}
    if spec.get("schedule"):
        yield from _schedule(spec["schedule"], spec.get("timeZone"), "TZ" in (before.get("schedule") or ""))
    else:
        yield required("spec.schedule")
    yield from not_negative("spec", spec, "startingDeadlineSeconds")
    if spec.get("timeZone") is not None and spec.get("timeZone") != before.get("timeZone"):
        yield from _zone(spec["timeZone"])
    yield from one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), "Allow", "Forbid", "Replace")
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    yield from job_spec("spec.jobTemplate.spec", {"completionMode": "NonIndexed", **_with_policy(template)})
    if template.get("selector") is not None:
        words = "`selector` will be auto-generated"
        yield invalid("spec.jobTemplate.spec.selector", template["selector"], words)
    if template.get("manualSelector"):
        yield unsupported("spec.jobTemplate.spec.manualSelector", True, "nil", "false")
    yield from not_negative("spec", spec, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    if old is None and len(obj["metadata"]["name"]) > 52:
        yield invalid("metadata.name", obj["metadata"]["name"], "must be no more than 52 characters")


def _with_policy(template: Obj) -> Obj:
    """The template with the policy that its Job will have: a template has no defaults of its own."""
    default = "Failed" if template.get("podFailurePolicy") else "TerminatingOrFailed"
    return {**template, "podReplacementPolicy": template.get("podReplacementPolicy") or default}


def _schedule(schedule: str, zone: Any, has_zone: bool) -> Found:
    if said := schedules.problem_of(schedule):
        yield invalid("spec.schedule", schedule, said)
    if "TZ" not in schedule:
        return
    if not has_zone:
        words = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid("spec.schedule", schedule, words)
    elif zone is not None:
        yield invalid("spec.schedule", schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def _zone(zone: str) -> Found:
    if not zone:
        yield invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")
        return
    if zone.lower() == "local":
        words = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid("spec.timeZone", zone, words)
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        yield invalid("spec.timeZone", zone, f"unknown time zone {zone}")
