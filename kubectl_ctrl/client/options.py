"""What a caller may say about a call beyond its object: scopes, queries, and options of writes."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.value import Unshown, Value


class Scope(Value, kw_only=True):
    """On whose behalf calls are made.

    `note` hears of every call twice: when it leaves, and when it has ended. `gate` is asked before every send: it gives
    the seconds that a call may still take (None: no limit), or raises NotLeading.
    """

    prefix: str = ""  # `r7f3-12`; calls carry `r7f3-12.1`, `.2` and so on as Audit-ID; "" takes one of the client's own
    note: Callable[[Call, bool], None] | None = None
    gate: Callable[[], float | None] | None = None
    timeout: float | None = None  # seconds for each call, in place of the defaults


class ListQuery(Value, kw_only=True):
    """Which objects to list; `labels` and `fields` are selectors as kubectl writes them."""

    namespace: str = ""  # "" lists all namespaces
    labels: str = ""
    fields: str = ""
    limit: int = 500  # per page; 0 asks for everything at once
    version: str = ""  # "" is the newest there is, "0" whatever the server has at hand
    metadata_only: bool = False


class WatchQuery(Value, kw_only=True):
    """Which changes to watch, from which version on, and for how long."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    version: str = ""
    bookmarks: bool = True
    initial_events: bool = False  # first everything that exists, ended by a bookmark that says so
    timeout: float = 0.0  # seconds after which the server shall end the stream; 0 leaves it to the server
    silence: float | None = None  # seconds without a byte after which the stream counts as dead
    metadata_only: bool = False


class PatchKind(StrEnum):
    """How a patch's body is meant; the values are the media types."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"  # JSON is YAML


class WriteOptions(Value, kw_only=True):
    """Options of create, replace and patch."""

    manager: str = ""  # the field manager; an apply must name one
    force: bool = False  # apply only: take fields from other managers
    dry_run: bool = False
    old_version: str = ""  # for the record: the version that the writer knew; taken from the body when it holds one
    before: Unshown[Obj | None] = None  # for the record: the object that the writer knew


class DeleteOptions(Value, kw_only=True):
    """Options of delete; with `uid` it can only ever hit the object that was meant."""

    propagation: str = ""  # Background, Foreground or Orphan
    uid: str = ""
    version: str = ""
    grace: int | None = None  # seconds for a Pod to end; None leaves it to the Pod
    dry_run: bool = False
    before: Unshown[Obj | None] = None  # for the record: the object that the writer knew


# Shared defaults: frozen, so that one of each is enough.
LIST_ALL = ListQuery()
WATCH_ALL = WatchQuery()
PLAIN_WRITE = WriteOptions()
PLAIN_DELETE = DeleteOptions()
