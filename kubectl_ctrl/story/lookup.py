"""Recordings looked into without a cluster: which file and which cluster is meant, and which object or attempt.

What every verb has in common that looks back. Nothing here asks a server: types and their short names are those that a
run noted, and the cluster is the one that the kubeconfig's context names by server and authority.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.registry import Entry
from kubectl_ctrl.errors import ConfigError, CtrlError, NotRecorded, RecordingError, UsageError
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.kubeconfig.resolution import ca_fingerprint
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import Cluster, Known, Recorded
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.story.query import Query
from kubectl_ctrl.target.choice import deleted_cluster
from kubectl_ctrl.text import nearest
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Unshown, Value

# As `runtime/ids` makes them.
_ATTEMPT = re.compile(r"#?(?:(r[0-9a-z]+)-)?([0-9]+)")
_KEY_CUT, _SHORTEST_KEY = 8, 4
_MOST_TYPES = 12


# Which cluster.


class Unclear(NotRecorded):
    """Several clusters are recorded, and nothing says which of them is meant."""


class Meant(Value, kw_only=True):
    """A recording, opened, and the cluster in it that a command line means."""

    recording: Unshown[Recording]
    cluster: Cluster
    namespace: str  # where a name without one is looked for
    everywhere: bool = False  # -A
    note: str = ""  # why it is this cluster, where the current context does not say so: to be told first

    @property
    def known(self) -> tuple[Known, ...]:
        """The types that runs had to do with; also those that no server served, as a missing CRD's."""
        found = self.recording.known(self.cluster.key)
        served = {(one.resource.group, one.resource.plural) for one in found}
        declared = dict.fromkeys(
            resource
            for run in self.recording.runs(cluster=self.cluster.key)
            for played in run.controllers
            for resource in (*played.primaries, *played.owns, *played.watches)
            if (resource.group, resource.plural) not in served
        )
        return (*found, *(Known(resource=one, singular=one.kind.lower()) for one in declared))


class _Context(Value, kw_only=True):
    """What the kubeconfig says, without asking anyone; `server` is "" where it says nothing that can be used."""

    name: str
    namespace: str
    server: str = ""
    ca: str = ""
    why: str = ""  # nothing can be used
    gone: str = ""  # the cluster of ours that it was of


def meant_recording(query: Query, words: Sequence[str] = ()) -> Meant:
    """The recording and the cluster that are meant, to look for what `words` name.

    That cluster is the current context's; also a cluster of ours that is gone, where the shell still points to it.
    Where the context is missing or nothing was ever recorded of its cluster, it is the only one that knows the object;
    where that is not one either, NotRecorded says which there are.
    """
    recording = opened(query.file, SystemClock().now())
    try:
        return _meant(query, words, recording)
    except BaseException:
        recording.__exit__(None, None, None)
        raise


def _meant(query: Query, words: Sequence[str], recording: Recording) -> Meant:
    context, clusters = _context(query), recording.clusters()

    def meaning(cluster: Cluster, note: str = "", namespace: str = "") -> Meant:
        place = query.namespace or namespace or context.namespace or "default"
        return Meant(recording=recording, cluster=cluster, namespace=place, everywhere=query.everywhere, note=note)

    if not clusters:
        raise NotRecorded(
            f"Nothing is recorded in {str(recording.path)!r} yet.",
            next_step=("create one with kubectl ctrl run CONTROLLER"),
        )

    def last(named: Sequence[Cluster]) -> tuple[Cluster, str]:
        """Of several that had one name, the last that knows it, and where it does."""
        known = _that_know(recording, named, words, query.namespace, context.namespace)
        return known[0] if known else (named[0], "")

    if query.recorded_cluster:
        cluster, namespace = last(all_of_name(query.recorded_cluster, clusters))
        return meaning(cluster, namespace=namespace)
    if query.named_file and len(clusters) == 1:
        return meaning(clusters[0])
    for cluster in clusters:
        if context.server and (context.server, context.ca) in cluster.servers:
            return meaning(cluster)
    # A context that is gone and was named still says which is meant.
    if query.target.flags.context and (
        named := [one for one in clusters if query.target.flags.context in one.contexts]
    ):
        cluster, namespace = last(named)
        return meaning(cluster, _as_recorded(cluster, context), namespace)
    if context.gone and (lived := [one for one in clusters if one.name == context.gone]):
        cluster, namespace = last(lived[:1])
        return meaning(cluster, namespace=namespace)
    found = _that_know(recording, clusters, words, query.namespace, context.namespace)
    if len({name_of(one) for one, _ in found}) == 1:
        cluster, namespace = last([one for one, _ in found])
        only = _only(cluster, len(found))
        note = f"{only}. {context.why}" if query.target.flags.context and not context.server else only
        return meaning(cluster, note, namespace)
    raise _unclear([one for one, _ in found] or list(clusters), context)


def _as_recorded(cluster: Cluster, context: _Context) -> str:
    if cluster.ended is None:
        return f"{cluster_text(cluster)}: as recorded; {context.why}"
    # Of one that is gone there is no more to say, except where another has its name by now.
    return context.why if context.server else ""


def _only(cluster: Cluster, count: int) -> str:
    why = "the only recorded cluster with it" if count == 1 else f"the newest of {count} clusters of this name with it"
    return why if cluster.ended else f"{cluster_text(cluster)}: {why}"


def cluster_text(cluster: Cluster) -> str:
    """`cluster kind-ctrl (3f2a77b0)`: a name that --recorded-cluster takes, and what tells it from others of it."""
    return f"cluster {name_of(cluster)} ({cluster.key[:_KEY_CUT]})"


def name_of(cluster: Cluster) -> str:
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


def all_of_name(name: str, clusters: Sequence[Cluster]) -> list[Cluster]:
    """Newest first; a UID, or how it begins, tells several of one name apart."""
    found = [
        cluster
        for cluster in clusters
        if name in cluster.contexts or name == cluster.key or name in [server for server, _ in cluster.servers]
    ]
    short = [cluster for cluster in clusters if len(name) >= _SHORTEST_KEY and cluster.key.startswith(name)]
    if found or len(short) == 1:
        return found or short
    raise NotRecorded(f"No cluster {name!r} is recorded.", tried=_listed(clusters), next_step="use one of these names")


def _that_know(
    recording: Recording, clusters: Sequence[Cluster], words: Sequence[str], namespace: str, other: str
) -> list[tuple[Cluster, str]]:
    """The clusters that know the object, newest first, each with the namespace in which it does; without one, all."""
    kind, name = split_words(words)
    if not name:
        number = _ATTEMPT.fullmatch(kind)
        ours = [one for one in clusters if not kind or number or _types(kind, recording.known(one.key))]
        return [(one, "") for one in ours]
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
    # One cluster that knows the name in several namespaces is still one cluster.
    one_each = {cluster.key: (cluster, place) for cluster, place in reversed(found)}
    return sorted(one_each.values(), key=lambda one: one[0].seen, reverse=True)


def _unclear(clusters: Sequence[Cluster], context: _Context) -> Unclear:
    return Unclear(
        f"The recorded cluster is ambiguous: {context.why.rstrip('.')}.",
        tried=_listed(clusters),
        next_step=f"add {command('--recorded-cluster', name_of(clusters[0]))}",
    )


def _listed(clusters: Iterable[Cluster]) -> str:
    """By name, of each the last."""
    named: dict[str, list[Cluster]] = {}
    for one in clusters:
        named.setdefault(name_of(one), []).append(one)
    shown = []
    for name, (newest, *older) in named.items():
        before = f", and {len(older)} older" if older else ""
        shown.append(f"{name} ({newest.key[:_KEY_CUT]}{before})")
    return f"recorded: {', '.join(shown)}"


def cluster_deleted(user: User, entry: Entry, at: float) -> str:
    """Note the end of a cluster of ours where runs on it are recorded; what is wrong where that cannot be, else ""."""
    # Only `down` writes; whoever looks back loads no more than it takes to read.
    from kubectl_ctrl.history.deletions import Deleted, note_deleted

    deleted = Deleted(name=entry.name, provider=entry.provider, at=at, uid=entry.uid, server=entry.server, ca=entry.ca)
    try:
        note_deleted(recording_file(user), deleted)
    except RecordingError as error:
        return f"The recording does not note its deletion: {error.message}"
    return ""


# Which object.


def split_words(words: Sequence[str]) -> tuple[str, str]:
    """`TYPE/NAME` or `TYPE NAME` as (TYPE, NAME), without what comes after; NAME is "" where only a type is given."""
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


def object_of(meant: Meant, words: Sequence[str]) -> tuple[Resource, Key]:
    """The object that `TYPE/NAME` or `TYPE NAME` means; its type out of what was recorded."""
    kind, name = split_words(words)
    if not name:
        raise UsageError("No object is named.", next_step="write TYPE/NAME, for example foo/example-foo")
    resource = type_of(meant, kind)
    return resource, Key(meant.namespace if resource.namespaced else "", name)


def type_of(meant: Meant, word: str) -> Resource:
    """The type that a word means as kubectl reads it: plural, singular, short name, kind, TYPE.GROUP and so on."""
    known = meant.known
    found = _types(word, known)
    if len(found) > 1:
        names = ", ".join(one.full_name for one in found)
        raise UsageError(f"The type {word!r} is ambiguous: {names}.", next_step=f"write {found[0].full_name}")
    if found:
        return found[0]
    types = sorted({one.resource.full_name for one in known})
    listed = ", ".join(types[:_MOST_TYPES]) + (", ..." if len(types) > _MOST_TYPES else "")
    raise NotRecorded(
        f"No type {word!r} is recorded in {cluster_text(meant.cluster)}.",
        tried=f"recorded: {listed}",
        next_step=nearest(word.lower(), [*_all_names(known)]) or "use one of these, or run its controller first",
    )


def _types(word: str, known: Sequence[Known]) -> list[Resource]:
    """Every type that the word can mean, each once, in the version seen last."""
    plain, _, rest = word.lower().partition(".")
    found: dict[tuple[str, str], Resource] = {}
    for one in known:
        resource = one.resource
        names = (resource.plural, one.singular, resource.kind.lower(), *one.short_names)
        if plain in names and _is_of(rest, resource):
            found[resource.group, resource.plural] = resource
    return list(found.values())


def _is_of(rest: str, resource: Resource) -> bool:
    """Whether `GROUP` or `VERSION.GROUP` means it; a group may be cut short, as for kubectl."""
    if not rest:
        return True
    return resource.group.startswith(rest) or rest.rstrip(".") == f"{resource.version}.{resource.group}".rstrip(".")


def _all_names(known: Iterable[Known]) -> Iterable[str]:
    for one in known:
        yield from (one.resource.plural, one.singular or one.resource.kind.lower())


# Which attempt.


def is_attempt(word: str) -> bool:
    """Whether a word looks like `12`, `#12` or `r7f3-12`."""
    return _ATTEMPT.fullmatch(word) is not None


def attempt_of(meant: Meant, word: str, of: tuple[Resource, Key] | None = None) -> Recorded:
    """The attempt that `RUN-N` names, or N alone: then of the newest run that has the object."""
    match = _ATTEMPT.fullmatch(word)
    if match is None:
        raise UsageError(f"{word!r} is not an attempt.", next_step="write its number, or RUN-N, for example r7f3-12")
    run, number = match[1], match[2]
    if run:
        return meant.recording.attempt(f"{run}-{number}", cluster=meant.cluster.key)
    if of is None:
        raise UsageError(f"The run of attempt {number} is missing.", next_step=f"write RUN-{number}, or an object")
    resource, key = of
    newest = meant.recording.attempts(cluster=meant.cluster.key, resource=resource, key=key, last=1)
    if not newest:
        raise not_recorded(meant, resource, key)
    found = meant.recording.attempts(cluster=meant.cluster.key, resource=resource, key=key, run=newest[0].run)
    for attempt in found:
        if attempt.number == int(number):
            return attempt
    raise NotRecorded(
        f"{_object_text(resource, key)} has no attempt {number} in run {newest[0].run}, the newest run with it.",
        tried=f"recorded: {found[0].number} to {found[-1].number}",
        next_step="write RUN-N for another run",
    )


def not_recorded(meant: Meant, resource: Resource, key: Key) -> CtrlError:
    """What to raise where nothing is known of an object, with what is known beside it."""
    elsewhere = [one for one in meant.recording.clusters() if one.key != meant.cluster.key]
    others = {one.key: one for one in elsewhere if one.key in meant.recording.find(resource=resource, key=key)}
    subjects = meant.recording.subjects(cluster=meant.cluster.key, resource=resource)
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
        f"Nothing is recorded about {_object_text(resource, key)} in {cluster_text(meant.cluster)}.",
        tried=f"recorded {resource.plural}: {', '.join(shown)}{more}" if shown else "",
        next_step=next_step,
    )


def _object_text(resource: Resource, key: Key) -> str:
    return f"{resource.kind} {key}"
