"""Declares a controller: `controller("foo", reconcile).for_(FOOS).owns(DEPLOYMENTS)`.

Each step returns a new frozen value, and refuses an invalid declaration at once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

from kubectl_ctrl.cache.selection import parse_fields
from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.objects import PARTIAL_KIND, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.runtime.contract import Indexer, Mapper, Reconciler
from kubectl_ctrl.runtime.predicates import Predicate
from kubectl_ctrl.value import Unshown, Value, replace

# The name becomes part of a Lease's and a field manager's name, and a label's value.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")

When = Predicate | Sequence[Predicate]


class Via(Enum):
    """How changes of a watched object become requests."""

    SELF = "for_"
    OWNER = "owns"
    MAPPING = "watches"
    NOTHING = "reads"  # cached, triggers nothing


class WatchClause(Value, kw_only=True):
    """One clause of the declaration."""

    resource: Resource
    via: Via
    through: tuple[Resource, ...] = ()  # OWNER: the links between, from the child upward
    to: Mapper | None = None  # MAPPING
    when: tuple[Predicate, ...] = ()


class NamedIndex(Value, kw_only=True):
    """A named index over the cached objects of one resource."""

    resource: Resource
    name: str
    values: Unshown[Indexer]


class View(Value, kw_only=True):
    """How much of a resource is watched and kept."""

    resource: Resource
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False


class ControllerSpec(Value, kw_only=True):
    """The declaration of a controller, for the manager."""

    name: str
    reconcile: Unshown[Reconciler]
    sources: tuple[WatchClause, ...] = ()
    indexes: tuple[NamedIndex, ...] = ()
    views: tuple[View, ...] = ()
    undo: Unshown[Reconciler | None] = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ControllerError(
                f"Invalid controller name {self.name!r}.",
                next_step="Use at most 40 lower-case letters, digits and dashes, with a letter or digit at both ends.",
            )
        self._check_reconciler(self.reconcile)

    def for_(self, resource: Resource, *more: Resource, when: When = ()) -> ControllerSpec:
        """The primary resource, which requests name; called exactly once.

        A request is a name. A controller for several resources (Deployments and StatefulSets, handled alike) is called
        once for a name and reads each object that has it. They are all namespaced, or all cluster-scoped.
        """
        resources = tuple(_checked(one) for one in (resource, *more))
        if self._primaries:
            raise self._error(
                f"calls .for_() twice, for {self._primaries[0].full_name} and for {resource.full_name}.",
                "Keep the resource that requests name, and use .watches(..., to=...) for the other.",
            )
        if len(set(resources)) < len(resources):
            raise self._error("names a resource twice in .for_().", "Name each resource once.")
        if other := next((one for one in more if one.namespaced != resource.namespaced), None):
            raise self._error(
                f"is for {resource.full_name} and {other.full_name}, of which only one is namespaced.",
                "Write two controllers: one request cannot name both.",
            )
        predicates = self._predicates(when)
        found = (WatchClause(resource=one, via=Via.SELF, when=predicates) for one in resources)
        return replace(self, sources=(*self.sources, *found))

    def owns(self, resource: Resource, *, through: Sequence[Resource] = (), when: When = ()) -> ControllerSpec:
        """A resource whose objects trigger the primary that controls them, directly or through a chain of owners.

        `.owns(PODS, through=(REPLICASETS, DEPLOYMENTS))`: a Pod of a ReplicaSet of a Deployment of the primary. Every
        link is watched and triggers the primary as well; `when` applies to `resource` alone.
        """
        primary = self.primary
        chain = tuple(_checked(link) for link in through)
        if primary.namespaced and (outside := [one for one in (resource, *chain) if not one.namespaced]):
            raise self._error(
                f"cannot own {outside[0].full_name}: it is cluster-scoped, and {primary.kind} is namespaced.",
                "Find the objects by a label with .watches(..., to=...), and delete them through a finalizer.",
            )
        if any(source.resource == resource and source.through == chain for source in self._via(Via.OWNER)):
            raise self._error(f"calls .owns({resource.full_name}) twice.", "Remove one, or combine their predicates.")
        source = WatchClause(resource=_checked(resource), via=Via.OWNER, through=chain, when=self._predicates(when))
        return self._with(source)

    def watches(self, resource: Resource, *, to: Mapper, when: When = ()) -> ControllerSpec:
        """A resource whose objects trigger the requests which `to(obj, cached)` returns."""
        _ = self.primary
        self._check_plain(to, "to", "(obj, cached)")
        return self._with(WatchClause(resource=_checked(resource), via=Via.MAPPING, to=to, when=self._predicates(when)))

    def reads(self, resource: Resource) -> ControllerSpec:
        """A resource that `ctx.read` finds in the cache, and that triggers nothing."""
        _ = self.primary
        return self._with(WatchClause(resource=_checked(resource), via=Via.NOTHING))

    def index(self, resource: Resource, name: str, values: Indexer) -> ControllerSpec:
        """Let `indexed(resource, name, value)` find the cached objects for which `values(obj)` gives that value."""
        self._check_plain(values, "values", "(obj)")
        if resource not in self.resources:
            raise self._error(
                f"indexes {resource.full_name} without watching or reading it.", "Declare it before .index()."
            )
        if any(index.resource == resource and index.name == name for index in self.indexes):
            raise self._error(f"has two indexes {name!r} of {resource.full_name}.", "Rename one.")
        return replace(self, indexes=(*self.indexes, NamedIndex(resource=resource, name=name, values=values)))

    def caching(
        self, resource: Resource, *, labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> ControllerSpec:
        """Watch and cache less of a resource: the objects that these selectors match, or only the metadata of each.

        An object that leaves the selection counts as deleted. Objects cached without their spec can be patched and
        deleted, but neither ensured nor given a status.
        """
        if resource not in self.resources:
            raise self._error(
                f"caches {resource.full_name} without watching or reading it.", "Declare it before .caching()."
            )
        if any(view.resource == resource for view in self.views):
            raise self._error(f"calls .caching({resource.full_name}) twice.", "Combine them.")
        _ = Selector.parse(labels), parse_fields(fields)
        view = View(resource=resource, labels=labels, fields=fields, metadata_only=metadata_only)
        return replace(self, views=(*self.views, view))

    def view(self, resource: Resource) -> View:
        """The part of the resource that this controller caches."""
        return next((view for view in self.views if view.resource == resource), View(resource=resource))

    def cleanup(self, undo: Reconciler) -> ControllerSpec:
        """A function that undoes writes to objects which the controller does not own; called once for each primary.

        `uninstall` runs it on request. Owned objects are deleted with their owners anyway.
        """
        self._check_reconciler(undo)
        return replace(self, undo=undo)

    @property
    def undoing(self) -> ControllerSpec | None:
        """The same controller with its cleanup as reconciler; None without one."""
        return replace(self, reconcile=self.undo) if self.undo is not None else None

    @property
    def primary(self) -> Resource:
        """The resource that requests name; the first of several."""
        return self.primaries[0]

    @property
    def primaries(self) -> tuple[Resource, ...]:
        """The resources that requests name: nearly always one."""
        if not self._primaries:
            raise self._error("has no primary resource.", "Begin with .for_(RESOURCE).")
        return tuple(self._primaries)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All cached resources, each once: the primary first, then in the declared order."""
        found: dict[Resource, None] = {}
        for source in self.sources:
            found.update(dict.fromkeys((source.resource, *source.through)))
        return tuple(found)

    def declared(self, obj: Obj) -> Resource | None:
        """The declared resource with the apiVersion and kind of the object, or None."""
        named = obj.get("apiVersion"), obj.get("kind")
        return next((one for one in self.resources if (one.api_version, one.kind) == named), None)

    def resource_of(self, obj: Obj) -> Resource:
        """The declared resource of an object to write; raises ControllerError if there is none."""
        if (found := self.declared(obj)) is not None:
            return found
        version, kind = obj.get("apiVersion"), obj.get("kind")
        if not version or not kind:
            problem = "got an object without apiVersion and kind to write"
        elif kind == PARTIAL_KIND:
            problem = f"got a {PARTIAL_KIND} to write, which does not carry the kind of its object"
        else:
            problem = f"writes a {kind} ({version}), which it does not declare"
        declared = ", ".join(f"{one.kind} ({one.api_version})" for one in self.resources)
        raise self._error(
            f"{problem}. Declared: {declared or 'nothing'}.",
            "Pass resource=... to the write, or declare the resource with .owns(), .watches() or .reads().",
        )

    @property
    def field_manager(self) -> str:
        return f"kubectl-ctrl-{self.name}"

    @property
    def _primaries(self) -> list[Resource]:
        return [source.resource for source in self._via(Via.SELF)]

    def _via(self, via: Via) -> list[WatchClause]:
        return [source for source in self.sources if source.via is via]

    def _with(self, source: WatchClause) -> ControllerSpec:
        return replace(self, sources=(*self.sources, source))

    def _predicates(self, when: When) -> tuple[Predicate, ...]:
        predicates = (when,) if isinstance(when, Predicate) else tuple(when)
        for predicate in predicates:
            if not isinstance(predicate, Predicate):
                raise self._error(
                    f"got {predicate!r} as a predicate.",
                    "Give it a name: named('image changed', function); the name is what explain shows.",
                )
        return predicates

    def _check_reconciler(self, function: Reconciler) -> None:
        if not _is_async(function):
            raise self._error(
                f"got {_name_of(function)}, which is not async.",
                "Write `async def reconcile(ctx, request)`; blocking code goes through `await ctx.in_thread(...)`.",
            )
        _check_takes(function, "(ctx, request)", self._error)

    def _check_plain(self, function: Callable[..., Any], what: str, expected: str) -> None:
        if _is_async(function):
            raise self._error(
                f"got the async function {_name_of(function)} as `{what}`.",
                "Write a plain function: it is called without await.",
            )
        _check_takes(function, expected, self._error)

    def _error(self, problem: str, next_step: str) -> ControllerError:
        return ControllerError(f"Controller {self.name!r} {problem}", next_step=next_step)


def controller(name: str, reconcile: Reconciler) -> ControllerSpec:
    """Declare a controller by its name and the function that is called for each request."""
    return ControllerSpec(name=name, reconcile=reconcile)


def check_together(specs: Iterable[ControllerSpec]) -> None:
    """Refuse controllers that cannot run in one process, or that have no primary resource."""
    seen: set[str] = set()
    for spec in specs:
        _ = spec.primary
        if spec.name in seen:
            raise ControllerError(
                f"Two controllers are named {spec.name!r}.",
                next_step="Rename one: writes, Leases and recordings are distinguished by the name.",
            )
        seen.add(spec.name)


def _checked(resource: Resource) -> Resource:
    if not isinstance(resource, Resource):
        raise ControllerError(
            f"Expected a Resource, got {resource!r}.",
            next_step='Write Resource("apps", "v1", "deployments", "Deployment"), or a constant such as DEPLOYMENTS.',
        )
    return resource


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _check_takes(function: Callable[..., Any], expected: str, error: Callable[[str, str], ControllerError]) -> None:
    wanted = expected.count(",") + 1
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # not callable, or a built-in that hides its parameters
        if callable(function):
            return
        raise error(
            f"got {function!r}, which cannot be called.", f"Expected a function that takes {expected}."
        ) from None
    try:
        signature.bind(*[None] * wanted)
    except TypeError:
        raise error(f"got {_name_of(function)}{signature}.", f"Expected a function that takes {expected}.") from None


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or repr(function)
