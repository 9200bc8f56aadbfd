"""Rights as roles in YAML, as tables and as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.rbac.rights import ControllerRights, Right, binding, in_order, roles
from kubectl_ctrl.render.attempt_json import stamp
from kubectl_ctrl.text import Text, escaped, table

SCHEMA = "kubectl-ctrl.rights/v1"

_LONGEST_NAME = 253


def missing_objects(account: ControllerRights, base: str, labels: dict[str, str]) -> list[Obj]:
    """Roles with the missing rights, each bound to the user who lacks them.

    Each name has a digest of the rules, so that `kubectl apply` never replaces a role by one with fewer rights.
    """
    found: list[Obj] = []
    for user, rights in sorted(account.missing.items()):
        for role in roles(rights, base, labels):
            text = json.dumps([user, role["rules"]], sort_keys=True)
            name = f"{base}-missing-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
            named = {**role, "metadata": {**role["metadata"], "name": name[-_LONGEST_NAME:]}}
            found += [named, binding(named, user)]
    return found


def as_yaml(objects: Sequence[Obj], notes: Iterable[str] = ()) -> str:
    """One stream of documents, with lists of strings on one line, as rules are usually written."""
    documents = (yaml.dump(one, Dumper=_Dumper, sort_keys=False, width=4096).rstrip("\n") for one in objects)
    head = "".join(f"# {escaped(note)}\n" for note in notes)
    return head + "\n---\n".join(documents)


class _Dumper(yaml.SafeDumper):
    """Lists of strings on one line, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_sequence(self, tag: Any, sequence: Any, flow_style: bool | None = None) -> Any:
        flat = all(isinstance(item, str) for item in sequence)
        return super().represent_sequence(tag, sequence, flow_style=flat)


def as_table(rights: Iterable[Right]) -> Text:
    """A row for each type and namespace, with all verbs."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for right in sorted(rights, key=lambda one: (one.group, one.resource, one.namespace, one.name)):
        rows.setdefault((right.full_name, right.namespace, right.name), []).append(right.verb)
    cells = [
        [resource, namespace or "*", name or "*", ",".join(in_order(verbs))]
        for (resource, namespace, name), verbs in rows.items()
    ]
    return table(cells, header=["RESOURCE", "NAMESPACE", "NAME", "VERBS"])


def unused_json(account: ControllerRights) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "controller": account.controller,
        "since": stamp(account.since or 0.0),
        "runs": account.runs,
        "reconciles": account.attempts,
        "unused": [
            {"apiGroup": one.group, "resource": one.resource, "verb": one.verb, "name": one.name}
            for one in sorted(account.unused)
        ],
    }


def missing_table(account: ControllerRights) -> Text:
    """The missing rights of each user, and how often they were denied."""
    count: dict[tuple[str, tuple[str, str, str]], int] = {}
    for refusal in account.refusals:
        key = (refusal.user, refusal.right.what)
        count[key] = count.get(key, 0) + refusal.count
    cells = []
    for user, rights in sorted(account.missing.items()):
        for right in sorted(rights):
            denied = count.get((user, right.what), 0)
            times = "once" if denied == 1 else f"{denied} times"
            why = f"denied {times}" if denied else "used, but not in rbac.yaml"
            cells.append([user, right.verb, right.full_name, right.namespace or "*", why])
    return table(cells, header=["WHO", "VERB", "RESOURCE", "NAMESPACE", "WHY"])
