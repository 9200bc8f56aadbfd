"""An object that no recording knows: what it tells of itself, all of it inferred."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_ctrl.findings.account import Account, Coming, Fact, Finding, Risk, Try
from kubectl_ctrl.findings.inference import Evidence, Inferred, Sign
from kubectl_ctrl.model.record import Source
from kubectl_ctrl.model.suggestions import command, ctrl


def unrecorded(found: Inferred, word: str, flags: tuple[str, ...]) -> Account:
    """NEVER RAN, as far as anybody here knows; and who wrote it last, and what was said about it."""
    target = f"{word}/{found.key.name}"
    return Account(
        finding=Finding.NEVER_RAN,
        resource=found.resource,
        key=found.key,
        uid=found.uid,
        controller="",
        run="",
        context=found.context,
        now=found.at,
        since=None,
        attempts=0,
        why=tuple(_why(found)),
        next=(Coming(text="not known: no controller of it was recorded"),),
        tries=(
            Try(risk=Risk.READ, command=str(ctrl("trace", target, *flags))),
            Try(risk=Risk.READ, command=str(command("kubectl", "describe", target, *flags))),
            Try(risk=Risk.READ, command=str(ctrl("list"))),
        ),
        evidence=tuple(map(_evidence, found.signs[::-1])),
        notes=found.lacking,
    )


def _why(found: Inferred) -> Iterator[Fact]:
    yield Fact(
        text=f"no run of a controller for {found.resource} is recorded here", source=Source.INFERRED, at=found.at
    )
    keeper = next((sign for sign in found.signs[::-1] if _keeps(sign)), None)
    if keeper is not None:
        by = " or ".join(keeper.by)
        yield Fact(text=f"{by} seems to look after it: it wrote its status last", source=Source.INFERRED, at=keeper.at)
    if found.deleting:
        yield Fact(text="it is being deleted, and something holds it", source=Source.LIVE, at=found.at)
    if found.observed is not None and found.observed != found.generation:
        text = f"its status is about generation {found.observed}, and it is at {found.generation}: somebody lags behind"
        yield Fact(text=text, source=Source.INFERRED, at=found.at)
    for name, status, since in found.standing:
        yield Fact(text=f"it says {name}={status}", source=Source.LIVE, at=since)


def _keeps(sign: Sign) -> bool:
    return bool(sign.by) and sign.evidence is Evidence.FIELDS and "status" in (sign.subresource, sign.wrote[:6])


def _evidence(sign: Sign) -> Fact:
    by = " or ".join(sign.by) or "?"
    what = f"{sign.verb} of {sign.wrote}" if sign.wrote else " ".join(filter(None, (sign.came, sign.message)))
    times = f" x{sign.count}" if sign.count > 1 else ""
    return Fact(text=f"{sign.evidence}: {what}{times} by {by}", source=Source.INFERRED, at=sign.at)
