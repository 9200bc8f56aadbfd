"""Options of calls: scopes, queries, and options of writes."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.value import Unshown, Value


class Scope(Value, kw_only=True):
    """Who makes the calls, such as one attempt of a reconciler.

    `note` is called twice for each call: when it is sent, and when it has finished. `gate` is called before each send:
    it returns the seconds that the call may still take (None: no limit), or raises NotLeading.
    """

    prefix: str = ""  # of Audit-IDs: with `r7f3-12` they are `r7f3-12.1`, `.2` and so on; "" is the client's own
    note: Callable[[Call, bool], None] | None = None
    gate: Callable[[], float | None] | None = None
    timeout: float | None = None  # seconds for each call, instead of the defaults


class ListQuery(Value, kw_only=True):
    """The objects to list; `labels` and `fields` are selectors in kubectl's syntax."""

    namespace: str = ""  # "" lists all namespaces
    labels: str = ""
    fields: str = ""
    limit: int = 500  # per page; 0 for no pages
    version: str = ""  # "" for the newest, "0" for whatever the server has cached
    metadata_only: bool = False


class WatchQuery(Value, kw_only=True):
    """The objects to watch, the first version, and time limits."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    version: str = ""
    bookmarks: bool = True
    initial_events: bool = False  # first all existing objects, then an annotated bookmark
    timeout: float = 0.0  # seconds after which the server ends the stream; 0 for the server's default
    silence: float | None = None  # seconds without a byte after which the stream counts as dead
    metadata_only: bool = False


class PatchKind(StrEnum):
    """The kinds of patches, by media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"  # JSON is valid YAML


class WriteOptions(Value, kw_only=True):
    """Options of create, replace and patch."""

    manager: str = ""  # the field manager; required for an apply
    force: bool = False  # apply only: take fields from other managers
    dry_run: bool = False
    old_version: str = ""  # for the record: the version that the caller has read, if the body has none
    before: Unshown[Obj | None] = None  # for the record: the object that the caller has read


class DeleteOptions(Value, kw_only=True):
    """Options of delete; with `uid`, another object of the same name is never deleted."""

    propagation: str = ""  # Background, Foreground or Orphan
    uid: str = ""
    version: str = ""
    grace: int | None = None  # seconds of grace period; None for the Pod's own
    dry_run: bool = False
    before: Unshown[Obj | None] = None  # for the record: the object that the caller has read


# Defaults; they are immutable.
LIST_ALL = ListQuery()
WATCH_ALL = WatchQuery()
PLAIN_WRITE = WriteOptions()
PLAIN_DELETE = DeleteOptions()
