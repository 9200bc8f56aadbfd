"""A recorded error is raised again: the same for code and verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kubectl_ctrl import errors
from kubectl_ctrl.errors import ApiError, CallError, CallSite, CtrlError, StatusCause
from kubectl_ctrl.replay.recorded_errors import RecordedError, raised_again
from kubectl_ctrl.runtime.questions import raised
from kubectl_ctrl.runtime.verdict import judge_error

SITE = CallSite("patch", "toys.example.com default/bear")
SEEN = ("message", "next_step", "retry_after", "code", "reason", "causes")


def every_error() -> Iterator[CtrlError]:
    """One error of each class that reader and writer can raise, with all attributes."""
    for kind in vars(errors).values():
        if not (isinstance(kind, type) and issubclass(kind, CtrlError)):
            continue
        if issubclass(kind, ApiError):
            causes = (StatusCause(reason="Required", message="must be there", field="spec.x"),)
            yield kind("No.", site=SITE, code=418, reason="Teapot", causes=causes, next_step="Look.", retry_after=2.5)
        elif issubclass(kind, CallError):
            yield kind("No.", site=SITE, next_step="Look.", retry_after=2.5)
        elif not issubclass(kind, errors.ProgramFailed | errors.ClusterError):  # which reader and writer never raise
            yield kind("No.", next_step="Look.")


@pytest.mark.parametrize("error", list(every_error()), ids=lambda error: type(error).__name__)
def test_own_errors_are_raised_with_all_attributes(error: CtrlError) -> None:
    again = raised_again(raised(error))
    assert type(again) is type(error)
    assert [getattr(again, name, None) for name in SEEN] == [getattr(error, name, None) for name in SEEN]
    if isinstance(error, CallError) and isinstance(again, CallError):
        assert (again.site.verb, again.site.target) == (error.site.verb, error.site.target)
    assert judge_error(again, about=SITE.target) == judge_error(error, about=SITE.target)


class Strange(Exception):
    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one}, {other}")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        KeyError("metadata"),
        TimeoutError(),
        FileNotFoundError("gone"),
        json.JSONDecodeError("bad", "x", 0),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
        Strange("a", "b"),
        errors.ProgramFailed("It failed.", argv=("a",), outcome="ended", code=3),
        errors.NoCluster("There is none.", output="none"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_other_errors_lead_to_the_same_verdict(error: Exception) -> None:
    again = raised_again(raised(error))
    assert type(again).__name__ == type(error).__name__
    assert str(again) == str(error)
    if not isinstance(error, CtrlError):
        assert judge_error(again) == judge_error(error)
    assert type(again) is type(error) or isinstance(again, RecordedError)
