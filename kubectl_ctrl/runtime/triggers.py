"""From a change in the cache to the requests that it triggers: predicates first, then the mapping of each clause.

The cache calls this for every change, so nothing here waits, and exceptions of a user's functions are caught. A change
that triggers nothing is counted by its reason, such as the name of a predicate: `explain` prints these counts.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial

from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.change import Change, ChangeKind
from kubectl_ctrl.model.objects import Key, Obj, key_of, namespace_of, uid_of, version_of
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.runtime.builder import ControllerSpec, Via, WatchClause
from kubectl_ctrl.runtime.contract import Cached, Mapper
from kubectl_ctrl.runtime.filtered import FilteredChanges
from kubectl_ctrl.runtime.predicates import Predicate
from kubectl_ctrl.value import Value

_log = logging.getLogger(__name__)

# So many deleted owners are remembered, so that objects that outlive them still find their primary.
_REMEMBERED = 4096

Mapping = Callable[[Obj], Iterable[Request]]


class Route(Value, kw_only=True):
    """One way from a watched resource to requests."""

    resource: Resource
    when: tuple[Predicate, ...]
    to: Mapping
    nothing: str  # the reason to count if the mapping returns no request; "" for none
    name: str  # of the mapping, for the log


class Watching:
    """The routes of one controller, and the counts of changes that triggered nothing."""

    def __init__(
        self,
        spec: ControllerSpec,
        cached: Cached,
        *,
        namespace: str = "",
        selected: Callable[[Request], bool] = lambda _: True,
        first: CauseKind = CauseKind.INITIAL,
    ) -> None:
        self._cached = cached
        self._first = first  # the cause of the first list
        self._namespace = namespace  # requests elsewhere are not part of this run; "" means everywhere
        self._primaries = spec.primaries
        self._selected = selected  # False: the primary does not match the run's selector
        links = {link for source in spec.sources for link in source.through}
        self._owners = OwnerChains(cached, links)
        self._routes: dict[Resource, list[Route]] = {}
        for route in self._all_routes(spec):
            self._routes.setdefault(route.resource, []).append(route)
        self.back = FilteredChanges(spec.primaries)
        self.held = self.back.counts
        self._reasons: list[str] = []  # why the current change triggered nothing so far

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources whose changes can trigger requests."""
        return tuple(self._routes)

    def requests_of(self, change: Change, at: float) -> list[tuple[Request, Cause]]:
        """The requests that a change triggers, each once however many routes lead to it."""
        self._owners.remember(change)
        self._reasons.clear()
        cause = cause_of(change, at, self._first)
        triggered: dict[Request, Cause] = {}
        for route in self._routes.get(change.resource, ()):
            if self._passes(route, change):
                triggered.update(dict.fromkeys(self._follow(route, change), cause))
        found = [(request, why) for request, why in triggered.items() if self._in_scope(request, change)]
        if found:
            self.back.triggered(change)
        elif self._reasons:
            self.back.note(change, tuple(dict.fromkeys(self._reasons)), at)
        return found

    def _hold(self, name: str) -> None:
        self.held[name] += 1
        self._reasons.append(name)

    def _passes(self, route: Route, change: Change) -> bool:
        for predicate in route.when:
            try:
                passed = predicate.passes(change)
            except Exception:  # noqa: BLE001  # a needless reconcile is harmless, a missing one is not
                self._complain(f"predicate {predicate.name} raised", change)
                continue
            if not passed:
                self._hold(predicate.name)
                return False
        return True

    def _follow(self, route: Route, change: Change) -> list[Request]:
        found: list[Request] = []
        raised = False
        for state in _states(change):
            try:
                found += (_checked(request) for request in route.to(state))  # also those before an invalid one
            except Exception:  # noqa: BLE001  # one broken mapping must not stop the other routes
                self._complain(f"mapping {route.name} raised", change)
                raised = True
        if not found and not raised and route.nothing:
            self._hold(route.nothing)
        return found

    def _in_scope(self, request: Request, change: Change) -> bool:
        if self._namespace and request.namespace not in ("", self._namespace):
            self._hold(f"outside of namespace {self._namespace}")
            return False
        # A primary's own changes come through its selection already, and it is gone after the last of them.
        if change.resource not in self._primaries and not self._selected(request):
            self._hold("not selected by this run's labels")
            return False
        return True

    def _complain(self, what: str, change: Change) -> None:
        self.held[what] += 1
        if self.held[what] == 1:  # it will raise for every such change; the count has the number
            _log.exception(
                "A predicate or mapping of the controller raised; the change is processed without it.",
                extra={"action": "watching.raised", "what": what, "object": str(change.key)},
            )

    def _all_routes(self, spec: ControllerSpec) -> Iterator[Route]:
        for source in _with_links(spec.sources):
            if source.via is Via.SELF:
                yield _route(source, lambda obj: (key_of(obj),), "itself")
            elif source.via is Via.OWNER:
                for primary in spec.primaries:
                    owner = partial(self._owners.owner, chain=(*source.through, primary))
                    yield _route(source, owner, "owner", f"not controlled by a {primary.kind}")
            elif source.to is not None:
                name = getattr(source.to, "__qualname__", repr(source.to))
                yield _route(source, _bound(source.to, self._cached), name, f"mapping {name}: nobody")

    def __repr__(self) -> str:
        return f"Watching(resources={len(self._routes)}, held={self.held.total()})"


class OwnerChains:
    """Finds the primary of an object through a chain of owners, also after the deletion of a link.

    The garbage collector deletes from the top: at the deletion of a Pod, its ReplicaSet has often left the cache.
    """

    def __init__(self, cached: Cached, links: Container[Resource]) -> None:
        self._cached = cached
        self._links = links  # only their deletions are remembered
        self._gone: OrderedDict[str, Obj | None] = OrderedDict()  # UID of a deleted object -> its controller reference

    def remember(self, change: Change) -> None:
        old = change.old
        if (
            old is None
            or change.resource not in self._links
            or (change.new is not None and uid_of(change.new) == uid_of(old))
        ):
            return
        self._gone[uid_of(old)] = controller_of(old)
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)

    def owner(self, obj: Obj, chain: tuple[Resource, ...]) -> tuple[Request, ...]:
        """The request of the primary that controls `obj`; by name, since a recreated primary is concerned too."""
        namespace = namespace_of(obj)
        ref = controller_of(obj)
        for link in chain[:-1]:
            ref = self._above(ref, link, namespace) if _refers_to(ref, link) else None
        primary = chain[-1]
        if ref is None or not _refers_to(ref, primary):
            return ()
        return (Key(namespace if primary.namespaced else "", ref["name"]),)

    def _above(self, ref: Obj | None, link: Resource, namespace: str) -> Obj | None:
        assert ref is not None
        parent = self._cached.get(link, ref["name"], namespace if link.namespaced else "")
        if parent is not None and uid_of(parent) == ref.get("uid"):
            return controller_of(parent)
        return self._gone.get(ref.get("uid") or "")


def cause_of(change: Change, at: float, first: CauseKind = CauseKind.INITIAL) -> Cause:
    """The cause of the triggered requests; it refers to the objects of the change."""
    return Cause(
        kind=first if change.initial else _KINDS[change.kind],
        at=at,
        resource=change.resource,
        key=change.key,
        uid=uid_of(change.obj),
        old_version=version_of(change.old) if change.old is not None else "",
        new_version=change.version,
        old=change.old,
        new=change.new,
        relisted=change.relisted,
    )


_KINDS = {
    ChangeKind.ADDED: CauseKind.ADDED,
    ChangeKind.MODIFIED: CauseKind.MODIFIED,
    ChangeKind.DELETED: CauseKind.DELETED,
    ChangeKind.RESYNC: CauseKind.RESYNC,
}


def _route(source: WatchClause, to: Mapping, name: str, nothing: str = "") -> Route:
    return Route(resource=source.resource, when=source.when, to=to, nothing=nothing, name=name)


def _checked(request: object) -> Request:
    """Refuse anything but requests here: it would fail later, far from the mapping."""
    if not isinstance(request, Key):
        raise TypeError(f"A mapping returned {request!r}; expected Requests.")
    return request


def _bound(mapper: Mapper, cached: Cached) -> Mapping:
    return lambda obj: mapper(obj, cached)


def _with_links(sources: tuple[WatchClause, ...]) -> Iterator[WatchClause]:
    """Each clause, and for each owner chain those links that have no clause."""
    said = {(source.resource, source.through) for source in sources if source.via is Via.OWNER}
    for source in sources:
        yield source
        for at, link in enumerate(source.through):
            above = source.through[at + 1 :]
            if (link, above) not in said:
                said.add((link, above))
                yield WatchClause(resource=link, via=Via.OWNER, through=above)


def _states(change: Change) -> Iterator[Obj]:
    if change.old is not None:
        yield change.old
    if change.new is not None and change.new is not change.old:
        yield change.new


def _refers_to(ref: Obj | None, resource: Resource) -> bool:
    """In any version of the group: owner references keep the version in which they were written."""
    if ref is None or ref.get("kind") != resource.kind:
        return False
    group, slash, _ = str(ref.get("apiVersion") or "").partition("/")
    return (group if slash else "") == resource.group
