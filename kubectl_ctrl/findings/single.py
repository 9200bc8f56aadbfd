"""One attempt explained: the chain that led to it, and what it caused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubectl_ctrl.findings.account import Fact, Risk, Single
from kubectl_ctrl.findings.case import Case, short
from kubectl_ctrl.findings.chain import chain
from kubectl_ctrl.findings.judge import proofs
from kubectl_ctrl.model.record import Recorded


def single(case: Case, attempt: Recorded, woken: Mapping[str, Sequence[str]]) -> Single:
    """`woken`: of each of its calls the attempts that the version caused which the call was answered with."""
    steps = chain(case, attempt)
    return Single(
        attempt=attempt,
        resource=case.resource,
        chain=steps,
        caused=tuple(_caused(case, attempt, woken)),
        tries=(
            case.ctrl(Risk.READ, "trace", case.target, f"--id={attempt.id}"),
            case.ctrl(Risk.READ, "replay", attempt.id),
        ),
        evidence=proofs(steps),
    )


def _caused(case: Case, attempt: Recorded, woken: Mapping[str, Sequence[str]]) -> Iterator[Fact]:
    for made in attempt.writes:
        for one in woken.get(made.call.id, ()):
            if one != attempt.id:
                version = f"version {made.call.new_version} (uid {made.call.uid})"
                yield Fact(text=f"{_named(one, attempt)} by call {short(made.call.id)}, which made {version}")
    for later in case.attempts:
        for cause in later.causes:
            if cause.attempt == attempt.id:
                yield Fact(
                    text=f"{_named(later.id, attempt)}, the {cause.kind.value} that it asked for", at=later.started
                )


def _named(id_: str, beside: Recorded) -> str:
    """Without the run where that is the same."""
    return short(id_) if id_.rpartition("-")[0] == beside.run else id_
