"""The recording, cluster, object and attempt that a command line selects, without any request to a server.

Types and their short names are those recorded by runs. The current context selects the cluster by its server and
certificate authority.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.errors import ConfigError, CtrlError, NotRecorded, RecordingError, UsageError
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.kubeconfig.resolution import ca_fingerprint
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import RecordedAttempt, RecordedCluster, RecordedType
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.story.query import Query
from kubectl_ctrl.target.choice import deleted_cluster
from kubectl_ctrl.text import nearest
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Unshown, Value

# The format of `runtime/ids`.
_ATTEMPT = re.compile(r"#?(?:(r[0-9a-z]+)-)?([0-9]+)")
_KEY_CUT, _SHORTEST_KEY = 8, 4
_MOST_TYPES = 12


# Clusters.


class AmbiguousCluster(NotRecorded):
    """Several clusters are recorded, and nothing selects one of them."""


class SelectedRecording(Value, kw_only=True):
    """An open recording, and the cluster in it that a command line selects."""

    recording: Unshown[Recording]
    cluster: RecordedCluster
    namespace: str  # of names without one
    everywhere: bool = False  # -A
    note: str = ""  # why it is this cluster, unless the current context selects it; printed first

    @property
    def known(self) -> tuple[RecordedType, ...]:
        """The types of runs, including those that no server served because a CRD is missing."""
        found = self.recording.known(self.cluster.key)
        served = {(one.resource.group, one.resource.plural) for one in found}
        declared = dict.fromkeys(
            resource
            for run in self.recording.runs(cluster=self.cluster.key)
            for played in run.controllers
            for resource in (*played.primaries, *played.owns, *played.watches)
            if (resource.group, resource.plural) not in served
        )
        return (*found, *(RecordedType(resource=one, singular=one.kind.lower()) for one in declared))


class _Context(Value, kw_only=True):
    """The context of the kubeconfig; `server` is "" if it is unusable."""

    name: str
    namespace: str
    server: str = ""
    ca: str = ""
    why: str = ""  # it is unusable, or selects no recorded cluster
    gone: str = ""  # the deleted managed cluster that it belonged to


def open_recording(query: Query, words: Sequence[str] = ()) -> SelectedRecording:
    """Open the recording and select the cluster in which to search for the object of `words`.

    That is the cluster of the current context, also a deleted managed cluster if the shell still points to it. If the
    context is missing or its cluster is not recorded, it is the only recorded cluster with the object. If several have
    it, or none, NotRecorded lists them.
    """
    recording = opened(query.file, SystemClock().now())
    try:
        return _selected(query, words, recording)
    except BaseException:
        recording.__exit__(None, None, None)
        raise


def _selected(query: Query, words: Sequence[str], recording: Recording) -> SelectedRecording:
    context, clusters = _context(query), recording.clusters()

    def select(cluster: RecordedCluster, note: str = "", namespace: str = "") -> SelectedRecording:
        namespace = query.namespace or namespace or context.namespace or "default"
        return SelectedRecording(
            recording=recording, cluster=cluster, namespace=namespace, everywhere=query.everywhere, note=note
        )

    if not clusters:
        raise NotRecorded(
            f"Nothing is recorded in {str(recording.path)!r} yet.",
            next_step="create one with kubectl ctrl run CONTROLLER",
        )

    def last(named: Sequence[RecordedCluster]) -> tuple[RecordedCluster, str]:
        """The newest of several clusters of one name with the object, and its namespace there."""
        known = _with_object(recording, named, words, query.namespace, context.namespace)
        return known[0] if known else (named[0], "")

    if query.recorded_cluster:
        cluster, namespace = last(all_of_name(query.recorded_cluster, clusters))
        return select(cluster, namespace=namespace)
    if query.named_file and len(clusters) == 1:
        return select(clusters[0])
    for cluster in clusters:
        if context.server and (context.server, context.ca) in cluster.servers:
            return select(cluster)
    # A deleted context still selects its cluster if the user names it.
    if query.target.flags.context and (
        named := [one for one in clusters if query.target.flags.context in one.contexts]
    ):
        cluster, namespace = last(named)
        if cluster.ended is None:
            note = f"{cluster_text(cluster)}: as recorded; {context.why}"
        else:  # the end of the cluster says enough, unless another cluster now has its context
            note = context.why if context.server else ""
        return select(cluster, note, namespace)
    if context.gone and (lived := [one for one in clusters if one.name == context.gone]):
        cluster, namespace = last(lived[:1])
        return select(cluster, namespace=namespace)
    found = _with_object(recording, clusters, words, query.namespace, context.namespace)
    if len({name_of(one) for one, _ in found}) == 1:
        cluster, namespace = last([one for one, _ in found])
        note = "the only recorded cluster with it"
        if len(found) > 1:
            note = f"the newest of {len(found)} clusters of this name with it"
        if not cluster.ended:
            note = f"{cluster_text(cluster)}: {note}"
        if query.target.flags.context and not context.server:
            note = f"{note}. {context.why}"
        return select(cluster, note, namespace)
    named = [one for one, _ in found] or list(clusters)
    raise AmbiguousCluster(
        f"The recorded cluster is ambiguous: {context.why.rstrip('.')}.",
        tried=_listed(named),
        next_step=f"add {command('--recorded-cluster', name_of(named[0]))}",
    )


def cluster_text(cluster: RecordedCluster) -> str:
    """`cluster kind-ctrl (3f2a77b0)`: both are values of --recorded-cluster, the second is unique."""
    return f"cluster {name_of(cluster)} ({cluster.key[:_KEY_CUT]})"


def name_of(cluster: RecordedCluster) -> str:
    return cluster.contexts[0] if cluster.contexts else cluster.servers[0][0]


def _context(query: Query) -> _Context:
    try:
        resolved = query.target.resolved()
        ca = ca_fingerprint(resolved)
    except ConfigError as error:
        return _Context(
            name=query.target.flags.context,
            namespace="",
            why=error.message,
            gone=deleted_cluster(query.user, query.target.flags),
        )
    name = resolved.context or ("in-cluster" if resolved.in_cluster else resolved.server)
    why = f"nothing is recorded for the cluster of context {name!r}"
    return _Context(name=name, namespace=resolved.namespace, server=resolved.server, ca=ca, why=why)


def all_of_name(name: str, clusters: Sequence[RecordedCluster]) -> list[RecordedCluster]:
    """The clusters of that name, newest first, or the one with that UID or prefix of a UID."""
    found = [
        cluster
        for cluster in clusters
        if name in cluster.contexts or name == cluster.key or name in [server for server, _ in cluster.servers]
    ]
    short = [cluster for cluster in clusters if len(name) >= _SHORTEST_KEY and cluster.key.startswith(name)]
    if found or len(short) == 1:
        return found or short
    raise NotRecorded(f"No cluster {name!r} is recorded.", tried=_listed(clusters), next_step="use one of these names")


def _with_object(
    recording: Recording, clusters: Sequence[RecordedCluster], words: Sequence[str], namespace: str, other: str
) -> list[tuple[RecordedCluster, str]]:
    """The clusters with the object, newest first, each with its namespace there; without an object, all."""
    kind, name = split_words(words)
    if not name:
        number = _ATTEMPT.fullmatch(kind)
        having = [one for one in clusters if not kind or number or _types(kind, recording.known(one.key))]
        return [(one, "") for one in having]
    found = []
    for cluster in clusters:
        runs = [run.namespace for run in recording.runs(cluster=cluster.key)]
        places = [namespace] if namespace else list(dict.fromkeys(filter(None, [other, *runs, "default"])))
        keys = [
            (resource, Key(place, name))
            for resource in _types(kind, recording.known(cluster.key))
            for place in (places if resource.namespaced else [""])
        ]
        found += [
            (cluster, key.namespace)
            for resource, key in keys
            if cluster.key in recording.find(resource=resource, key=key)
        ]
    # A cluster with the name in several namespaces is one cluster.
    one_each = {cluster.key: (cluster, place) for cluster, place in reversed(found)}
    return sorted(one_each.values(), key=lambda one: one[0].seen, reverse=True)


def _listed(clusters: Iterable[RecordedCluster]) -> str:
    """Each name once, with the newest cluster of that name."""
    named: dict[str, list[RecordedCluster]] = {}
    for one in clusters:
        named.setdefault(name_of(one), []).append(one)
    shown = []
    for name, (newest, *older) in named.items():
        before = f", and {len(older)} older" if older else ""
        shown.append(f"{name} ({newest.key[:_KEY_CUT]}{before})")
    return f"recorded: {', '.join(shown)}"


def cluster_deleted(user: User, entry: ClusterEntry, at: float) -> str:
    """Note the deletion of a managed cluster in the recording of its runs; returns a warning if that fails, else ""."""
    # Only `down` writes; the other verbs need not load the writing side.
    from kubectl_ctrl.history.deletions import DeletedCluster, note_deleted

    deleted = DeletedCluster(
        name=entry.name, provider=entry.provider, at=at, uid=entry.uid, server=entry.server, ca=entry.ca
    )
    try:
        note_deleted(recording_file(user), deleted)
    except RecordingError as error:
        return f"The recording does not note its deletion: {error.message}"
    return ""


# Objects.


def split_words(words: Sequence[str]) -> tuple[str, str]:
    """`TYPE/NAME` or `TYPE NAME` as (TYPE, NAME), without further words; NAME is "" if only a type is given."""
    if not words:
        return "", ""
    kind, slash, name = words[0].partition("/")
    if slash:
        if not kind or not name or "/" in name:
            raise UsageError(
                f"{words[0]!r} is not TYPE/NAME.", next_step="write TYPE/NAME, for example foo/example-foo"
            )
        return kind, name
    return kind, words[1] if len(words) > 1 else ""


def object_of(selected: SelectedRecording, words: Sequence[str]) -> tuple[Resource, Key]:
    """The object of `TYPE/NAME` or `TYPE NAME`, by the recorded types."""
    kind, name = split_words(words)
    if not name:
        raise UsageError("No object is named.", next_step="write TYPE/NAME, for example foo/example-foo")
    resource = type_of(selected, kind)
    return resource, Key(selected.namespace if resource.namespaced else "", name)


def type_of(selected: SelectedRecording, word: str) -> Resource:
    """The recorded type of a word, as kubectl reads it: plural, singular, short name, kind, TYPE.GROUP and so on."""
    known = selected.known
    found = _types(word, known)
    if len(found) > 1:
        matches = ", ".join(one.full_name for one in found)
        raise UsageError(f"The type {word!r} is ambiguous: {matches}.", next_step=f"write {found[0].full_name}")
    if found:
        return found[0]
    types = sorted({one.resource.full_name for one in known})
    names = [name for one in known for name in (one.resource.plural, one.singular or one.resource.kind.lower())]
    listed = ", ".join(types[:_MOST_TYPES]) + (", ..." if len(types) > _MOST_TYPES else "")
    raise NotRecorded(
        f"No type {word!r} is recorded in {cluster_text(selected.cluster)}.",
        tried=f"recorded: {listed}",
        next_step=nearest(word.lower(), names) or "use one of these, or run its controller first",
    )


def _types(word: str, known: Sequence[RecordedType]) -> list[Resource]:
    """All types that the word matches, each once, in its last recorded version."""
    plain, _, rest = word.lower().partition(".")
    found: dict[tuple[str, str], Resource] = {}
    for one in known:
        resource = one.resource
        names = (resource.plural, one.singular, resource.kind.lower(), *one.short_names)
        # As for kubectl: TYPE.GROUP, also with a prefix of the group, or TYPE.VERSION.GROUP.
        full = f"{resource.version}.{resource.group}".rstrip(".")
        if plain in names and (resource.group.startswith(rest) or rest.rstrip(".") == full):
            found[resource.group, resource.plural] = resource
    return list(found.values())


# Attempts.


def is_attempt(word: str) -> bool:
    """The word has the form `12`, `#12` or `r7f3-12`."""
    return _ATTEMPT.fullmatch(word) is not None


def attempt_of(selected: SelectedRecording, word: str, of: tuple[Resource, Key] | None = None) -> RecordedAttempt:
    """The attempt `RUN-N`; N alone is of the newest run with the object."""
    match = _ATTEMPT.fullmatch(word)
    if match is None:
        raise UsageError(f"{word!r} is not an attempt.", next_step="write its number, or RUN-N, for example r7f3-12")
    run, number = match[1], match[2]
    if run:
        return selected.recording.attempt(f"{run}-{number}", cluster=selected.cluster.key)
    if of is None:
        raise UsageError(f"The run of attempt {number} is missing.", next_step=f"write RUN-{number}, or an object")
    resource, key = of
    newest = selected.recording.attempts(cluster=selected.cluster.key, resource=resource, key=key, last=1)
    if not newest:
        raise not_recorded(selected, resource, key)
    found = selected.recording.attempts(cluster=selected.cluster.key, resource=resource, key=key, run=newest[0].run)
    for attempt in found:
        if attempt.number == int(number):
            return attempt
    raise NotRecorded(
        f"{resource.kind} {key} has no attempt {number} in run {newest[0].run}, the newest run with it.",
        tried=f"recorded: {found[0].number} to {found[-1].number}",
        next_step="write RUN-N for another run",
    )


def not_recorded(selected: SelectedRecording, resource: Resource, key: Key) -> CtrlError:
    """The error for an object without records, with the recorded objects of its type."""
    elsewhere = [one for one in selected.recording.clusters() if one.key != selected.cluster.key]
    others = {one.key: one for one in elsewhere if one.key in selected.recording.find(resource=resource, key=key)}
    subjects = selected.recording.subjects(cluster=selected.cluster.key, resource=resource)
    same = [one.key for one in subjects if one.key.name == key.name]
    near = nearest(key.name, [one.key.name for one in subjects if one.key.namespace == key.namespace])
    if same:
        next_step = f"it is recorded in namespace {same[0].namespace}: add {command('-n', same[0].namespace)}"
    elif others:
        next_step = f"add {command('--recorded-cluster', name_of(next(iter(others.values()))))}, which has it"
    else:
        next_step = near or "kubectl ctrl run CONTROLLER records its reconciles"
    shown = [str(one.key) for one in subjects[:_MOST_TYPES]]
    more = f" and {len(subjects) - len(shown)} more" if len(subjects) > len(shown) else ""
    return NotRecorded(
        f"Nothing is recorded about {resource.kind} {key} in {cluster_text(selected.cluster)}.",
        tried=f"recorded {resource.plural}: {', '.join(shown)}{more}" if shown else "",
        next_step=next_step,
    )
