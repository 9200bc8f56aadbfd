"""Rights as roles that kubectl takes, and as a table that people read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.rbac.rights import Account, Right, binding, in_order, roles
from kubectl_ctrl.render.attempt_json import stamp
from kubectl_ctrl.text import Text, escaped, table

SCHEMA = "kubectl-ctrl.rights/v1"

_LONGEST_NAME = 253


def missing_objects(account: Account, base: str, labels: dict[str, str]) -> list[Obj]:
    """Roles with what is missing, each bound to who lacks it.

    The name holds a digest of the rules: what was granted so before is never replaced by less.
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
    """Documents of one stream, with lists on one line as people write rules."""
    documents = (yaml.dump(one, Dumper=_Dumper, sort_keys=False, width=4096).rstrip("\n") for one in objects)
    head = "".join(f"# {escaped(note)}\n" for note in notes)
    return head + "\n---\n".join(documents)


class _Dumper(yaml.SafeDumper):
    """Lists of plain words on one line, everything else below each other; no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_sequence(self, tag: Any, sequence: Any, flow_style: bool | None = None) -> Any:
        flat = all(isinstance(item, str) for item in sequence)
        return super().represent_sequence(tag, sequence, flow_style=flat)


def as_table(rights: Iterable[Right]) -> Text:
    """One row for each type and place, with all verbs."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for right in sorted(rights, key=lambda one: (one.group, one.resource, one.namespace, one.name)):
        rows.setdefault((right.full_name, right.namespace, right.name), []).append(right.verb)
    cells = [
        [resource, namespace or "*", name or "*", ",".join(in_order(verbs))]
        for (resource, namespace, name), verbs in rows.items()
    ]
    return table(cells, header=["RESOURCE", "NAMESPACE", "NAME", "VERBS"])


def unused_json(account: Account) -> dict[str, Any]:
    """For machines; the schema's name says which version of it this is."""
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


def missing_table(account: Account) -> Text:
    """Who lacks what, and how often and when it was refused."""
    count: dict[tuple[str, tuple[str, str, str]], int] = {}
    for refusal in account.refusals:
        key = (refusal.user, refusal.right.what)
        count[key] = count.get(key, 0) + refusal.count
    cells = []
    for user, right in ((user, right) for user, rights in sorted(account.missing.items()) for right in sorted(rights)):
        place = right.namespace or "*"
        why = _why(count.get((user, right.what), 0))
        cells.append([user, right.verb, right.full_name, place, why])
    return table(cells, header=["WHO", "VERB", "RESOURCE", "NAMESPACE", "WHY"])


def _why(refused: int) -> str:
    if not refused:
        return "used, but not in rbac.yaml"
    return "denied once" if refused == 1 else f"denied {refused} times"
