"""What an e2e test needs of the outside: programs, a cluster, its audit log, waiting; nothing of the package."""

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

# Seconds after which a garbage collector has taken what lost its owner. It looks for new types every half minute, and
# waits as long once more where one that it began with has gone meanwhile.
COLLECTED = 150.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A program that ended."""

    command: tuple[str, ...]
    code: int
    out: str
    err: str

    def checked(self) -> Ran:
        assert self.code == 0, f"{' '.join(self.command)} ended with {self.code}.\n{self.out}{self.err}"
        return self


def run(*command: str | Path, env: Mapping[str, str], stdin: str = "", timeout: float = 120) -> Ran:
    """Run a program to its end."""
    words = tuple(map(str, command))
    done = subprocess.run(words, env=env, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
    return Ran(command=words, code=done.returncode, out=done.stdout, err=done.stderr)


def wait_until(condition: Callable[[], T], *, deadline: float = 120, every: float = 0.1, what: str = "") -> T:
    """The first true answer of `condition`, asked again and again.

    An AssertionError in it means "not yet", and so does what is looked up and is not there.
    """
    end = time.monotonic() + deadline
    while True:
        try:
            answer: T | str = condition()
            if answer:
                return answer  # type: ignore[return-value]
        except (AssertionError, LookupError) as not_yet:
            answer = str(not_yet)
        if time.monotonic() > end:
            raise AssertionError(f"{what or condition} not within {deadline:g} s; at last: {answer!r}")
        time.sleep(every)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A running cluster, as `hack/realkube show` describes it: what stays as it is while the cluster lives."""

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
    """What runs of a cluster now, and the pids; a test before this one may have restarted its API server."""
    parts: dict[str, int] = _shown(name, env)["processes"]
    return parts


def _shown(name: str, env: Mapping[str, str]) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(run(REALKUBE, "show", name, env=env).checked().out)
    return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class KindLane:
    """What `hack/realkube kind up` has prepared: a node image, and an environment with kind, kubectl and docker."""

    image: str
    env: Mapping[str, str]


class Kubectl:
    """Real kubectl with one environment: its KUBECONFIG says which cluster, user and namespace."""

    def __init__(self, program: Path, env: Mapping[str, str]) -> None:
        self.program = program
        self.env = env

    def __repr__(self) -> str:
        return f"<Kubectl {self.env.get('KUBECONFIG')}>"

    def try_(self, *args: str, stdin: str = "", timeout: float = 120) -> Ran:
        """Run it, whatever comes out."""
        return run(self.program, *args, env=self.env, stdin=stdin, timeout=timeout)

    def __call__(self, *args: str, stdin: str = "", timeout: float = 120) -> str:
        """Run it; it must succeed. Its stdout."""
        return self.try_(*args, stdin=stdin, timeout=timeout).checked().out

    def json(self, *args: str) -> Any:
        return json.loads(self(*args, "--output=json"))

    def find(self, *args: str) -> Any:
        """`get` of one object; None when it is not there."""
        return json.loads(self("get", *args, "--ignore-not-found", "--output=json") or "null")

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """`kubectl apply` of objects; server-side apply is `kubectl("apply", "--server-side", ...)`."""
        self("apply", "--filename=-", stdin=manifest(*objects))

    def create(self, *objects: Mapping[str, Any]) -> None:
        self("create", "--filename=-", stdin=manifest(*objects))


def manifest(*objects: Mapping[str, Any]) -> str:
    """Objects as one text for kubectl's stdin."""
    return "\n---\n".join(map(json.dumps, objects))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request that the API server answered, as its audit log tells."""

    agent: str
    user: str  # who it was made as: the impersonated one where there is one
    verb: str
    resource: str  # plural, with group and subresource where there are: foos.samplecontroller.k8s.io/status
    namespace: str
    name: str
    code: int
    audit_id: str
    dry_run: bool
    at: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Asked:
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
        """A non-dry-run create, update, patch or delete; renewing a Lease is none."""
        renewal = self.resource == "leases.coordination.k8s.io" and self.verb in ("update", "patch")
        return self.verb in _WRITES and not self.dry_run and not renewal


_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})

OURS = "kubectl-ctrl/"


class Audit:
    """The API server's audit log. A line is there before its answer is sent, so counting needs no waiting."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __repr__(self) -> str:
        return f"<Audit {self.log} {self.mark()} bytes>"

    def mark(self) -> int:
        """A place in the log: what comes later comes after it."""
        return self.log.stat().st_size

    def asked(self, since: int = 0, *, agent: str = OURS, namespace: str = "") -> list[Asked]:
        """Requests since the mark by user agents that start so; a watch is there twice, as it starts and as it ends."""
        with self.log.open("rb") as log:
            assert since <= self.mark(), "The audit log was cut off; what it says is no longer the whole."
            log.seek(max(since - 1, 0))
            # The last line may be half written, as was the one at the mark: that one came before it.
            written = log.read().rpartition(b"\n")[0]
            lines = (written.partition(b"\n")[2] if since else written).splitlines()
        found = [Asked.of(json.loads(line)) for line in lines]
        return [one for one in found if one.agent.startswith(agent) and namespace in ("", one.namespace)]

    def writes(self, since: int = 0, *, agent: str = OURS, namespace: str = "") -> list[Asked]:
        return [one for one in self.asked(since, agent=agent, namespace=namespace) if one.is_write]

    def count(self, since: int = 0, *, agent: str = OURS, namespace: str = "") -> Counter[tuple[str, str]]:
        """Writes by (verb, resource)."""
        return Counter((one.verb, one.resource) for one in self.writes(since, agent=agent, namespace=namespace))

    def assert_rests(self, namespace: str, *, seconds: float = 5, pause: float = 2) -> None:
        """Once `pause` seconds have passed without a write, so many more do. Whatever fights or retries, is seen by
        then: the pauses between retries have grown from milliseconds. A file keeps the promised ten for what matters
        most, and says a longer pause where its controller means to wait between two writes."""

        def paused() -> bool:
            self.assert_no_writes(seconds=pause, namespace=namespace)
            return True

        wait_until(paused)
        self.assert_no_writes(seconds=seconds, namespace=namespace)

    def assert_no_writes(self, *, seconds: float = 10, agent: str = OURS, namespace: str = "") -> None:
        """From now on nothing is written for so long; fails at the first write."""
        since, end = self.mark(), time.monotonic() + seconds
        while time.monotonic() < end:
            written = self.writes(since, agent=agent, namespace=namespace)
            assert not written, f"There was a write at rest: {written!r}"
            time.sleep(0.2)


def crd_of_anything(plural: str, kind: str, group: str) -> dict[str, Any]:
    """A CRD whose objects may hold whatever they like."""
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
