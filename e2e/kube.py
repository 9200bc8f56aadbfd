"""Programs, a cluster, its audit log, and waiting, for end-to-end tests; independent of the package."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

CHECKOUT = Path(__file__).resolve().parents[1]
REALKUBE = CHECKOUT / "hack" / "realkube"

# Seconds after which the garbage collector has deleted orphans. It discovers new types every half minute, and waits for
# another half minute if a type has disappeared meanwhile.
COLLECTION_SECONDS = 150.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The result of a program."""

    command: tuple[str, ...]
    code: int
    out: str
    err: str

    def checked(self) -> Ran:
        assert self.code == 0, f"{' '.join(self.command)} exited with code {self.code}.\n{self.out}{self.err}"
        return self


def run(*command: str | Path, env: Mapping[str, str], stdin: str = "", timeout: float = 120) -> Ran:
    words = tuple(map(str, command))
    done = subprocess.run(words, env=env, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
    return Ran(command=words, code=done.returncode, out=done.stdout, err=done.stderr)


def wait_until(condition: Callable[[], T], *, deadline: float = 120, every: float = 0.1, what: str = "") -> T:
    """Poll `condition` until it is true, and return its value; an AssertionError or LookupError counts as false."""
    end = time.monotonic() + deadline
    while True:
        try:
            value: T | str = condition()
            if value:
                return value  # type: ignore[return-value]
        except (AssertionError, LookupError) as not_yet:
            value = str(not_yet)
        if time.monotonic() > end:
            raise AssertionError(f"{what or condition} not within {deadline:g} s; the last value: {value!r}")
        time.sleep(every)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A running cluster, from `hack/realkube show`: the attributes that do not change."""

    name: str
    context: str
    kubeconfig: Path
    audit: Path
    programs: Path

    @classmethod
    def shown(cls, name: str, env: Mapping[str, str]) -> Cluster:
        facts = _shown(name, env)
        paths = {key: Path(facts[key]) for key in ("kubeconfig", "audit", "programs")}
        return cls(name=name, context=facts["context"], **paths)


def parts_of(name: str, env: Mapping[str, str]) -> dict[str, int]:
    """The running programs of a cluster and their pids; an earlier test may have restarted the API server."""
    parts: dict[str, int] = _shown(name, env)["processes"]
    return parts


def _shown(name: str, env: Mapping[str, str]) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(run(REALKUBE, "show", name, env=env).checked().out)
    return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class KindLane:
    """The result of `hack/realkube kind up`: a node image, and an environment with kind, kubectl and docker."""

    image: str
    env: Mapping[str, str]


class Kubectl:
    """Real kubectl with one environment, whose KUBECONFIG selects the cluster, the user and the namespace."""

    def __init__(self, program: Path, env: Mapping[str, str]) -> None:
        self.program = program
        self.env = env

    def __repr__(self) -> str:
        return f"<Kubectl {self.env.get('KUBECONFIG')}>"

    def try_(self, *args: str, stdin: str = "", timeout: float = 120) -> Ran:
        """Run it, with any exit code."""
        return run(self.program, *args, env=self.env, stdin=stdin, timeout=timeout)

    def __call__(self, *args: str, stdin: str = "", timeout: float = 120) -> str:
        """Run it, which must succeed; returns its standard output."""
        return self.try_(*args, stdin=stdin, timeout=timeout).checked().out

    def json(self, *args: str) -> Any:
        return json.loads(self(*args, "--output=json"))

    def find(self, *args: str) -> Any:
        """`get` of one object; None if it does not exist."""
        return json.loads(self("get", *args, "--ignore-not-found", "--output=json") or "null")

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """`kubectl apply` of objects; server-side apply is `kubectl("apply", "--server-side", ...)`."""
        self("apply", "--filename=-", stdin=manifest(*objects))

    def create(self, *objects: Mapping[str, Any]) -> None:
        self("create", "--filename=-", stdin=manifest(*objects))


def manifest(*objects: Mapping[str, Any]) -> str:
    return "\n---\n".join(map(json.dumps, objects))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRequest:
    """A request in the audit log of the API server."""

    agent: str
    user: str  # the impersonated user if there is one
    verb: str
    resource: str  # plural, with group and subresource: foos.samplecontroller.k8s.io/status
    namespace: str
    name: str
    code: int
    audit_id: str
    dry_run: bool
    at: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> AuditedRequest:
        ref = event.get("objectRef", {})
        resource = ref.get("resource", "") + (f".{ref['apiGroup']}" if ref.get("apiGroup") else "")
        return cls(
            agent=event.get("userAgent", ""),
            user=(event.get("impersonatedUser") or event.get("user") or {}).get("username", ""),
            verb=event["verb"],
            resource=resource + (f"/{ref['subresource']}" if ref.get("subresource") else ""),
            namespace=ref.get("namespace", ""),
            name=ref.get("name", ""),
            code=event.get("responseStatus", {}).get("code", 0),
            audit_id=event["auditID"],
            dry_run="dryRun" in parse_qs(urlsplit(event["requestURI"]).query),
            at=event["requestReceivedTimestamp"],
        )

    @property
    def is_write(self) -> bool:
        """A create, update, patch or delete, other than dry runs and renewals of a Lease."""
        renewal = self.resource == "leases.coordination.k8s.io" and self.verb in ("update", "patch")
        return self.verb in _WRITES and not self.dry_run and not renewal


def _is_end_of_watch(event: Mapping[str, Any]) -> bool:
    """A refused watch has no start."""
    status = event.get("responseStatus", {})
    return (event["verb"], event["stage"], status.get("code")) == ("watch", "ResponseComplete", 200)


_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})

AGENT = "kubectl-ctrl/"


class Audit:
    """The API server's audit log. It contains a request before the response is sent, so counting needs no waiting."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __repr__(self) -> str:
        return f"<Audit {self.log} {self.mark()} bytes>"

    def mark(self) -> int:
        """The current end of the log."""
        return self.log.stat().st_size

    def requests(self, since: int = 0, *, agent: str = AGENT, namespace: str = "") -> list[AuditedRequest]:
        """Requests since the mark whose user agent starts with `agent`.

        A watch is logged when it starts, and again when it ends, which may be after the mark: its start alone counts.
        """
        with self.log.open("rb") as log:
            assert since <= self.mark(), "The audit log was truncated, so requests are missing from it."
            log.seek(max(since - 1, 0))
            # The last line may be incomplete, and so may have been the one at the mark, which is before it.
            written = log.read().rpartition(b"\n")[0]
            lines = (written.partition(b"\n")[2] if since else written).splitlines()
        events = [json.loads(line) for line in lines]
        found = [AuditedRequest.of(event) for event in events if not _is_end_of_watch(event)]
        return [one for one in found if one.agent.startswith(agent) and namespace in ("", one.namespace)]

    def writes(self, since: int = 0, *, agent: str = AGENT, namespace: str = "") -> list[AuditedRequest]:
        return [one for one in self.requests(since, agent=agent, namespace=namespace) if one.is_write]

    def count(self, since: int = 0, *, agent: str = AGENT, namespace: str = "") -> Counter[tuple[str, str]]:
        """Writes by (verb, resource)."""
        return Counter((one.verb, one.resource) for one in self.writes(since, agent=agent, namespace=namespace))

    def assert_no_writes(self, *, seconds: float = 10, agent: str = AGENT, namespace: str = "") -> None:
        """Fails at the first write within so many seconds from now."""
        since, end = self.mark(), time.monotonic() + seconds
        while time.monotonic() < end:
            written = self.writes(since, agent=agent, namespace=namespace)
            assert not written, f"There was a write at rest: {written!r}"
            time.sleep(0.2)


def set_quota(kubectl: Kubectl, name: str, hard: str) -> None:
    """Create a quota, and wait until admission applies it: it reads quotas from a cache."""
    kubectl("create", "quota", name, f"--hard={hard},secrets=0")
    probe = ("create", "secret", "generic", "probe", "--dry-run=server")
    wait_until(lambda: f"exceeded quota: {name}" in kubectl.try_(*probe).err, what=f"admission applies quota {name}")


def crd_of_anything(plural: str, kind: str, group: str) -> dict[str, Any]:
    """A CRD whose objects may have any fields."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
