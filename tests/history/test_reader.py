"""The queries of the verbs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubectl_ctrl.errors import NotRecorded
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.model.attempt import (
    BackgroundCall,
    CallProgress,
    ControllerState,
    DroppedEcho,
    ObjectRead,
    Observed,
    Outcome,
    Tally,
    WriteRequest,
)
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.masking import MASKED
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import AttemptCounts, Incarnation, RecordedCluster, RecordedRun, to_recorded
from kubectl_ctrl.model.resources import CONFIGMAPS, DEPLOYMENTS, LEASES, SECRETS, STATEFULSETS, Resource
from kubectl_ctrl.value import replace
from tests.history.made import FOO, FOOS, KNOWN, NOON, RUN, begun, done, owned, read_of, recording, woken, wrote
from tests.objects import present
from tests.render.samples import CREATED, INITIAL, SCALED, STATUS

WEB = Key("default", "web")
OLD = owned("Foo", "web", "u-web", "10", replicas=1)
NEW = owned("Foo", "web", "u-web", "12", replicas=3)
CHILD = owned("Deployment", "web", "u-child", "11", replicas=1)
CHILD_NEW = owned("Deployment", "web", "u-child", "13", replicas=3)
OTHER_RUN = replace(RUN, id="rabc", began=NOON + 1000, cluster="c1")

FIRST = begun(1, woken(CauseKind.ADDED, OLD))
SECOND = begun(2, woken(CauseKind.MODIFIED, NEW, OLD))
THIRD = begun(3, woken(CauseKind.MODIFIED, CHILD_NEW, CHILD, DEPLOYMENTS))
STORY = (
    FIRST,
    done(FIRST, wrote(FIRST, 1, CHILD), reads=(read_of(OLD),)),
    SECOND,
    done(SECOND, wrote(SECOND, 1, CHILD_NEW, CHILD), reads=(read_of(NEW),)),
    THIRD,
    done(THIRD, outcome=Outcome.RETRY),
)


@contextmanager
def opened(folder: Path, *values: Observed, run: RecordedRun = RUN) -> Iterator[Recording]:
    with Recording.open(recording(folder, *values, run=run)) as read:
        yield read


def ids(read: Recording, **narrow: object) -> list[str]:
    attempts = read.attempts(cluster="c1", resource=FOOS, key=WEB, **narrow)  # type: ignore[arg-type]
    return [attempt.id for attempt in attempts]


def test_recorded_values_are_read_back(tmp_path: Path) -> None:
    start = begun(12, INITIAL, SCALED)
    whole = done(start, CREATED, STATUS)
    with opened(tmp_path, start, whole) as read:
        assert read.attempts(cluster="c1", resource=FOOS, key=WEB) == [to_recorded(whole)]
        assert read.attempt("r7f3-12") == to_recorded(whole)


def test_the_uid_of_a_request_comes_from_any_record_of_the_object(tmp_path: Path) -> None:
    unseen = begun(4, name="api")
    with opened(tmp_path, *STORY, unseen, done(unseen)) as read:
        assert [one.uid for one in read.attempts(cluster="c1", resource=FOOS, key=WEB)] == ["u-web"] * 3
        assert read.uids("c1", FOOS, WEB) == ("u-web",)
        assert read.lived("c1", FOOS, WEB) == (Incarnation(uid="u-web", first=NOON + 1, last=NOON + 3, attempts=3),)
        assert ids(read, uid="u-web") == ids(read) == ["r7f3-1", "r7f3-2", "r7f3-3"]
        assert read.attempt("r7f3-4").uid == ""
    again = begun(1, woken(CauseKind.ADDED, owned("Foo", "web", "u-2", "50")), run="rabc", at=NOON + 1000)
    with opened(tmp_path, again, done(again), run=OTHER_RUN) as read:
        assert [*read.uids("c1", FOOS, WEB)] == ["u-2", "u-web"]
        assert ids(read, uid="u-2") == ["rabc-1"]


def test_attempts_can_be_selected(tmp_path: Path) -> None:
    recording(tmp_path, *STORY)
    late = begun(1, run="rabc", at=NOON + 1000)
    with opened(tmp_path, late, done(late), run=OTHER_RUN) as read:
        assert ids(read, last=2) == ["r7f3-3", "rabc-1"]
        assert ids(read, last=0) == []
        assert ids(read, since=NOON + 3) == ["r7f3-3", "rabc-1"]
        assert ids(read, run="rabc") == ["rabc-1"]
        assert ids(read, after="r7f3-2") == ["r7f3-3", "rabc-1"]
        assert ids(read, controller="bar") == []
        assert read.attempts(cluster="c2", resource=FOOS, key=WEB) == []
        assert read.attempts(cluster="c1", resource=DEPLOYMENTS, key=WEB) == []


def test_a_type_is_found_in_any_version_of_its_group(tmp_path: Path) -> None:
    with opened(tmp_path, *STORY) as read:
        newer = Resource(FOOS.group, "v2", FOOS.plural, FOOS.kind)
        assert len(read.attempts(cluster="c1", resource=newer, key=WEB)) == 3


def test_versions_of_writes_and_causes_are_joined(tmp_path: Path) -> None:
    with opened(tmp_path, *STORY) as read:
        assert read.writer_of("c1", "u-child", "13") == ("r7f3-2", "r7f3-2.1")
        assert read.triggered_by("c1", "u-child", "13") == ("r7f3-3",)
        assert read.writer_of("c1", "u-web", "12") is None
        assert read.writer_of("c2", "u-child", "13") is None
        assert [attempt.id for attempt in read.related(cluster="c1", uid="u-child")] == ["r7f3-1", "r7f3-2", "r7f3-3"]


def test_a_write_without_effect_made_no_version(tmp_path: Path) -> None:
    start = begun(1)
    with opened(tmp_path, start, done(start, replace(wrote(start, 1, CHILD, CHILD), old_version="11"))) as read:
        assert read.writer_of("c1", "u-child", "11") is None


def test_bodies_are_read_as_they_were_stored(tmp_path: Path) -> None:
    noted = {**NEW, "metadata": {**NEW["metadata"], "managedFields": [{"manager": "m"}]}}
    bare = {"kind": "PartialObjectMetadata", "metadata": NEW["metadata"]}
    start = begun(1)
    wish = WriteRequest(verb="status", resource=FOOS, key=WEB, body="{}", uid="u-web", version="12", answer=noted)
    whole = replace(done(start, reads=(read_of(noted), read_of(bare, noted))), wishes=(wish,))
    with opened(tmp_path, start, whole) as read:
        again = read.replayable("r7f3-1")
        assert [read.objects for read in again.reads] == [(noted,), (bare, noted)]
        assert [wish.answer for wish in again.wishes] == [noted]
        assert read.body("c1", "u-web", "12") == NEW
        assert read.body("c1", "u-web", "11") is None
        assert read.body("c2", "u-web", "12") is None


def test_the_scale_of_an_object_is_not_its_body(tmp_path: Path) -> None:
    scale = {**NEW, "apiVersion": "autoscaling/v1", "kind": "Scale", "status": {"selector": "app=a-much-longer-text"}}
    start = begun(1)
    wish = WriteRequest(verb="patch", resource=FOOS, key=WEB, body="{}", uid="u-web", version="12", answer=scale)
    end = replace(done(start, reads=(read_of(scale, query="default/web/scale"),)), wishes=(wish,))
    with opened(tmp_path, start, end) as read:
        again = read.replayable("r7f3-1")
        assert [one.objects for one in again.reads] == [(scale,)]
        assert [one.answer for one in again.wishes] == [scale]
        assert read.body("c1", "u-web", "12") is None
    with opened(tmp_path, begun(2), done(begun(2), reads=(read_of(NEW),))) as read:
        assert read.body("c1", "u-web", "12") == NEW


def test_bodies_with_hidden_values_are_marked(tmp_path: Path) -> None:
    obj = owned("ConfigMap", "c", "u-c", "5", password="canary")
    start = begun(1)
    with opened(tmp_path, start, done(start, reads=(read_of(obj, resource=CONFIGMAPS),))) as read:
        body = present(read.body("c1", "u-c", "5"))
        assert (body["spec"], body["metadata"][MASKED]) == ({"password": "***"}, True)


def test_secrets_have_no_body(tmp_path: Path) -> None:
    secret: Obj = {**owned("Secret", "s", "u-s", "5"), "data": {"a": "Y2FuYXJ5LXZhbHVl"}}
    start = begun(1)
    whole = done(start, reads=(read_of(secret, resource=SECRETS),))
    path = recording(tmp_path, start, whole)
    with Recording.open(path) as read:
        assert read.body("c1", "u-s", "5") is None
        [again] = read.replayable("r7f3-1").reads
        assert (again.objects, again.found) == ((), (("u-s", "5"),))


def test_an_attempt_without_an_end_is_running_or_interrupted(tmp_path: Path) -> None:
    sent = CallProgress(attempt="r7f3-1", call=replace(wrote(FIRST, 1, CHILD), code=None), answered=False)
    path = recording(tmp_path, FIRST, sent)
    with Recording.open(path, dead=lambda run: False) as read:
        running = read.attempt("r7f3-1")
        assert (running.verdict, running.interrupted) == (None, False)
        assert [(made.call.id, made.call.code) for made in running.calls] == [("r7f3-1.1", None)]
    with Recording.open(path, dead=lambda run: run.id == "r7f3") as read:
        assert read.attempt("r7f3-1").interrupted


def test_an_answered_call_of_a_running_attempt_has_its_answer(tmp_path: Path) -> None:
    call = wrote(FIRST, 1, CHILD_NEW, CHILD)
    values = [CallProgress(attempt="r7f3-1", call=replace(call, code=None, answer=None), answered=False)]
    with opened(tmp_path, FIRST, *values, CallProgress(attempt="r7f3-1", call=call, answered=True)) as read:
        [made] = read.attempt("r7f3-1").calls
        assert (made.call.code, [one.path for one in made.changes.shown]) == (200, ["spec.replicas"])


def test_later_calls_and_echoes_are_read_with_their_attempt(tmp_path: Path) -> None:
    echo = DroppedEcho(attempt="r7f3-1", request=WEB, uid="u-child", version="11", after=0.008)
    event = replace(CREATED, id="r7f3-1.9")
    lease = replace(CREATED, id="r7f3.1", resource=LEASES, verb="update")
    values = (echo, BackgroundCall(attempt="r7f3-1", call=event), BackgroundCall(attempt="", call=lease))
    with opened(tmp_path, *STORY, *values) as read:
        attempt = read.attempt("r7f3-1")
        assert attempt.heard == (echo,)
        assert [made.call for made in attempt.background] == [event]
        assert [made.call for made in read.background(run="r7f3")] == [lease]
        assert read.attempt("r7f3-2").background == ()


def test_few_renewals_of_a_lease_are_recorded(tmp_path: Path) -> None:
    def renewal(at: float, error: str = "") -> BackgroundCall:
        call = replace(CREATED, resource=LEASES, verb="update", started=NOON + at, error=error)
        return BackgroundCall(attempt="", call=call)

    with opened(tmp_path, *(renewal(2.0 * number) for number in range(60)), renewal(121.0, "It failed.")) as read:
        assert [made.call.started - NOON for made in read.background(run="r7f3")] == [0.0, 60.0, 121.0]


def test_subjects_have_counts_and_their_last_attempt(tmp_path: Path) -> None:
    other = begun(4, name="api")
    with opened(tmp_path, *STORY, other, done(other)) as read:
        api, web = read.subjects(cluster="c1")
        assert (web.key, web.attempts, web.failures, web.first) == (WEB, 3, 1, NOON + 1)
        assert (web.controller, web.resource, web.last) == ("foo", FOOS, read.attempt("r7f3-3"))
        assert (api.key, api.attempts, api.failures) == (Key("default", "api"), 1, 0)
        assert read.subjects(cluster="c1", resource=FOOS, namespace="default", controller="foo") == (api, web)
        assert read.subjects(cluster="c1", resource=DEPLOYMENTS) == ()
        assert read.subjects(cluster="c1", namespace="other") == ()
        assert read.subjects(cluster="c2") == ()


def test_a_controller_of_several_types_has_subjects_of_the_met_types(tmp_path: Path) -> None:
    both = replace(RUN, controllers=(replace(FOO, primaries=(DEPLOYMENTS, STATEFULSETS)),))
    unseen, seen = begun(1), begun(2)
    values = (unseen, done(unseen), seen, done(seen, reads=(read_of(CHILD, resource=DEPLOYMENTS),)))
    with opened(tmp_path, *values, run=both) as read:
        [of_deployment, of_stateful_set] = (
            [attempt.id for attempt in read.attempts(cluster="c1", resource=resource, key=WEB)]
            for resource in (DEPLOYMENTS, STATEFULSETS)
        )
        assert of_deployment == ["r7f3-1", "r7f3-2"]
        assert of_stateful_set == ["r7f3-1"]


def test_objects_are_found_in_all_clusters(tmp_path: Path) -> None:
    recording(tmp_path, *STORY)
    late = begun(1, run="rabc")
    with opened(tmp_path, late, done(late), run=replace(OTHER_RUN, cluster="c2")) as read:
        assert read.find(resource=FOOS, key=WEB) == ("c1", "c2")
        assert read.find(resource=DEPLOYMENTS, key=WEB) == ("c1",)
        assert read.find(resource=FOOS, key=Key("default", "w%")) == ()
        assert [cluster.key for cluster in read.clusters()] == ["c2", "c1"]


def test_a_cluster_has_all_its_servers_and_contexts(tmp_path: Path) -> None:
    recording(tmp_path)
    renamed = replace(OTHER_RUN, context="work", server="https://10.0.0.1:6443")
    with opened(tmp_path, run=renamed) as read:
        [cluster] = read.clusters()
        assert cluster == RecordedCluster(
            key="c1",
            servers=(("https://10.0.0.1:6443", "ca1"), ("https://127.0.0.1:6443", "ca1")),
            contexts=("work", "kind-dev"),
            seen=cluster.seen,
        )


def test_runs_and_types_are_read_as_recorded(tmp_path: Path) -> None:
    recording(tmp_path)
    with opened(tmp_path, run=OTHER_RUN) as read:
        assert [run.id for run in read.runs()] == ["rabc", "r7f3"]
        run = present(read.run("r7f3"))
        assert replace(run, seen=0.0, ended=None) == RUN
        assert run.ended is not None
        assert read.run("none") is None
        assert [run.id for run in read.runs(cluster="c2")] == []
        assert [run.id for run in read.runs(controller="bar")] == []
        assert read.known("c1") == KNOWN
        assert read.known("c2") == ()


def test_the_last_state_of_a_controller_is_recorded(tmp_path: Path) -> None:
    early, late = (ControllerState(controller="foo", at=at, leading=True, synced=True, entries=()) for at in (1.0, 2.0))
    tally = Tally(controller="foo", at=2.0, filtered=(("generation", 3),), versions=((FOOS, "12"),))
    with opened(tmp_path, early, tally, late) as read:
        [moment] = read.moments(run="r7f3")
        assert (moment.run, moment.state, moment.tally) == ("r7f3", late, tally)
        assert read.moments(cluster="c2") == ()


@pytest.mark.parametrize(
    "word", ["r7f3-99", "none-1", "r7f3-", "r7f3-x", "", "r7f3-99999999999999999999", "r7f3-1' OR 1"]
)
def test_an_unknown_attempt_is_not_recorded(tmp_path: Path, word: str) -> None:
    with opened(tmp_path, *STORY) as read, pytest.raises(NotRecorded):
        read.attempt(word)


def test_s07_names_are_values_and_never_sql(tmp_path: Path) -> None:
    name = "x' OR '1'='1"
    start = begun(1, name=name)
    with opened(tmp_path, *STORY, replace(start, id="r7f3-9"), done(replace(start, id="r7f3-9"))) as read:
        found = read.attempts(cluster="c1", resource=FOOS, key=Key("default", name))
        assert [attempt.id for attempt in found] == ["r7f3-9"]


def test_a_reader_sees_later_commits(tmp_path: Path) -> None:
    path = recording(tmp_path, *STORY)
    with Recording.open(path) as read:
        before = read.changed()
        assert read.changed() == before
        assert ids(read) == ["r7f3-1", "r7f3-2", "r7f3-3"]
        late = begun(1, run="rabc", at=NOON + 1000)
        recording(tmp_path, late, done(late), run=OTHER_RUN)
        assert read.changed() > before
        assert ids(read)[-1] == "rabc-1"


def test_objects_of_several_reads_stay_with_their_read(tmp_path: Path) -> None:
    two = owned("Foo", "api", "u-api", "7")
    listed = ObjectRead(
        verb="list", resource=FOOS, query="default", found=(("u-web", "12"), ("u-api", "7")), objects=(NEW, two)
    )
    start = begun(1)
    with opened(tmp_path, start, done(start, reads=(listed,))) as read:
        assert read.replayable("r7f3-1").reads[0].objects == (NEW, two)


def test_the_attempts_of_an_object_are_counted_without_their_documents(tmp_path: Path) -> None:
    again = begun(1, woken(CauseKind.ADDED, owned("Foo", "web", "u-2", "50")), run="rabc", at=NOON + 1000)
    cut = begun(2, run="rabc", at=NOON + 1000)
    recording(tmp_path, *STORY)
    with opened(tmp_path, again, done(again), cut, run=OTHER_RUN) as read:

        def counts(**narrow: object) -> AttemptCounts:
            return read.counts(cluster="c1", resource=FOOS, key=WEB, **narrow)  # type: ignore[arg-type]

        assert counts() == AttemptCounts(attempts=5, writes=2, errors=1, interrupted=1, first=NOON + 1)
        assert counts(uid="u-web") == AttemptCounts(attempts=3, writes=2, errors=1, first=NOON + 1)
        assert counts(uid="u-2") == AttemptCounts(attempts=2, interrupted=1, first=NOON + 1001)
        assert counts(since=NOON + 3) == AttemptCounts(attempts=3, errors=1, interrupted=1, first=NOON + 3)
        assert counts(controller="bar") == AttemptCounts()
