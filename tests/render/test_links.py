from __future__ import annotations

from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.record import RecordedAttempt, RecordedCall
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.render.trace.links import Link, links
from kubectl_ctrl.value import replace
from tests.render.samples import NOON
from tests.render.stories import call, story, triggered

FIRST, SECOND = story(2).attempts
WRITE = call("web", "patch", DEPLOYMENTS, NOON, 0.01, id="r7f3-1.1", uid="u", old_version="4", new_version="5")
CHANGED = triggered(CauseKind.MODIFIED, NOON, uid="u", old_version="4", new_version="5")


def wrote(write: RecordedCall) -> tuple[RecordedAttempt, RecordedAttempt]:
    return replace(FIRST, calls=(write,)), replace(SECOND, causes=(CHANGED,))


def test_the_call_that_wrote_a_version_is_linked_to_the_attempt_with_that_cause() -> None:
    assert links(wrote(RecordedCall(call=WRITE))) == (
        Link(kind="wrote", source="r7f3-1", call="r7f3-1.1", target="r7f3-2", cause=0),
    )


def test_a_call_that_wrote_no_version_has_no_link() -> None:
    for other in (
        replace(WRITE, old_version="5", new_version="5"),
        replace(WRITE, dry_run=True),
        replace(WRITE, verb="get"),
        replace(WRITE, uid="v"),
        replace(WRITE, old_version="5", new_version="6"),
        replace(WRITE, uid="", new_version=""),
    ):
        assert links(wrote(RecordedCall(call=other))) == ()


def test_a_later_change_follows_the_write() -> None:
    before = RecordedCall(call=replace(WRITE, old_version="3", new_version="4"))
    link = Link(kind="followed", source="r7f3-1", call="r7f3-1.1", target="r7f3-2", cause=0)
    assert links(wrote(before)) == (link,)
    first, second = wrote(before)
    assert links((first, replace(second, uid="u"))) == ()
    assert links((first, replace(second, causes=(replace(CHANGED, relisted=True),)))) == ()


def test_a_retry_is_linked_to_the_failed_attempt_if_that_is_shown() -> None:
    retry = triggered(CauseKind.RETRY, NOON, attempt="r7f3-1")
    second = replace(SECOND, causes=(CHANGED, retry))
    assert links((FIRST, second)) == (Link(kind="retry", source="r7f3-1", target="r7f3-2", cause=1),)
    assert links((second,)) == ()
