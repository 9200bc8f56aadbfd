"""What one finding says, before the rest of the account is put around it."""

from __future__ import annotations

from kubectl_ctrl.findings.account import Coming, Fact, Finding, Gap, Step, Try, Turn
from kubectl_ctrl.model.record import Made, Recorded
from kubectl_ctrl.value import Value


class Found(Value, kw_only=True):
    """A verdict with what it stands on."""

    finding: Finding
    since: float | None
    why: tuple[Fact, ...]
    tries: tuple[Try, ...]
    about: Recorded | None = None  # the attempt whose chain of causes is told
    evidence: tuple[Fact, ...] = ()
    gap: tuple[Gap, ...] | None = None  # None: the gap of `about`
    turns: tuple[Turn, ...] = ()
    field: str = ""
    where: str = ""
    call: Made | None = None
    chain: tuple[Step, ...] = ()  # where `about` alone does not give it
    next: tuple[Coming, ...] = ()  # before what comes anyway
