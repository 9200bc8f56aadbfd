"""Whether a node admits a pod: node selector, required node affinity, taints and tolerations."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl.model.objects import Obj, labels_of, name_of
from kubectl_ctrl.model.selectors import Requirement

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": ">", "Lt": "<"}


def fits_affinity(spec: Obj, node: Obj) -> bool:
    """The node selector and the required node affinity of a pod's spec."""
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return not affinity or any(_matches(term, node) for term in affinity.get("nodeSelectorTerms") or ())


def _matches(term: Obj, node: Obj) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    named = {"metadata.name": name_of(node)}
    return all(_holds(one, labels_of(node)) for one in expressions) and all(_holds(one, named) for one in fields)


def _holds(expression: Obj, values: dict[str, str]) -> bool:
    operator = _OPERATORS[expression["operator"]]
    wanted = tuple(expression.get("values") or ())
    return Requirement(key=expression["key"], operator=operator, values=wanted).matches(values)


def untolerated(spec: Obj, node: Obj, effects: Iterable[str]) -> bool:
    """Whether the node has a taint with one of the effects that the pod does not tolerate."""
    taints = (node.get("spec") or {}).get("taints") or ()
    tolerations = spec.get("tolerations") or ()
    return any(
        taint["effect"] in effects and not any(_tolerates(one, taint) for one in tolerations) for taint in taints
    )


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")
