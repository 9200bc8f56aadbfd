"""Explanations as JSON: `kubectl-ctrl.explanation/v1`. Every fact has its source and its time.

docs/schemas/explanation.v1.json describes every field.
"""

from __future__ import annotations

from datetime import UTC
from typing import Any

from kubectl_ctrl.findings.account import Account, AttemptAccount, ChainStep, Fact, Gap, Qualifier, Try
from kubectl_ctrl.render.attempt_json import attempt_json, call_json, cause_json, nonempty, sides_json, stamp, time_json

SCHEMA = "kubectl-ctrl.explanation/v1"

Fields = dict[str, Any]


def account_json(account: Account) -> Fields:
    return {
        "schema": SCHEMA,
        "about": "object",
        "time": stamp(account.now),
        "verdict": account.finding.value,
        "converged": account.good,
        "since": time_json(account.since),
        "source": account.source.value,
        "asOf": time_json(account.qualifier.since) if account.qualifier else stamp(account.now),
        "qualifier": qualifier_json(account.qualifier),
        "resource": account.resource.full_name,
        "kind": account.resource.kind,
        "namespace": account.key.namespace,
        "name": account.key.name,
        "uid": account.uid,
        "controller": account.controller,
        "run": account.run,
        "context": account.context,
        "attempts": account.attempts,
        "why": [_fact(fact) for fact in account.why],
        "chain": [_step(step) for step in account.chain],
        "edited": _step(account.edited) if account.edited is not None else None,
        "field": account.field,
        "turns": [
            {"time": stamp(turn.at), "manager": turn.who, "value": turn.value, "ours": turn.ours, "call": turn.attempt}
            for turn in account.turns
        ],
        "gap": [_gap(gap) for gap in account.gap],
        "where": account.where,
        "call": call_json(account.call, UTC) if account.call is not None else None,
        "next": [{"text": one.text, "time": time_json(one.at)} for one in account.next],
        "try": [try_json(one) for one in account.tries],
        "evidence": [_fact(fact) for fact in account.evidence],
        "notes": list(account.notes),
    }


def single_json(single: AttemptAccount) -> Fields:
    return {
        "schema": SCHEMA,
        "about": "attempt",
        "source": "recorded",
        "attempt": attempt_json(single.attempt),
        "chain": [_step(step) for step in single.chain],
        "caused": [_fact(fact) for fact in single.caused],
        "try": [try_json(one) for one in single.tries],
        "evidence": [_fact(fact) for fact in single.evidence],
    }


def qualifier_json(one: Qualifier | None) -> Fields | None:
    return None if one is None else {"controller": one.state.value, "since": stamp(one.since), "text": one.text}


def _fact(fact: Fact) -> Fields:
    cause = cause_json(fact.cause, UTC) if fact.cause is not None else None
    return {"text": fact.text, "source": fact.source.value, "time": time_json(fact.at)} | nonempty({"cause": cause})


def _step(step: ChainStep) -> Fields:
    return {
        "attempt": step.attempt.id,
        "time": stamp(step.attempt.started),
        "cause": cause_json(step.cause, UTC) if step.cause is not None else None,
        "causesTotal": step.attempt.causes_total,
        "outcome": step.attempt.outcome,
        "link": step.link.value if step.link is not None else None,
        "proof": step.proof,
    }


def _gap(gap: Gap) -> Fields:
    return {
        "resource": gap.resource.full_name,
        "namespace": gap.key.namespace,
        "name": gap.key.name,
        "path": gap.path,
        **sides_json(want=gap.want, live=gap.live),
        "owners": list(gap.owners),
        "source": gap.source.value,
        "time": time_json(gap.at),
    }


def try_json(one: Try) -> Fields:
    return {"risk": one.risk.value, "command": one.command}
