"""One real cluster for the session, a namespace, a kubeconfig and a home for each test; and guards around every test.

With pytest-xdist each worker is a session: pieces of files side by side do not see each other.

A test names what it needs: `kubectl`, `ctrl`, `audit`, `namespace`. Their KUBECONFIG is the test's own, and the test's
namespace is its context's, so no command of a test needs `-n`.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

import pytest
import yaml

from e2e.ctrl import Ctrl
from e2e.kube import CHECKOUT, REALKUBE, Audit, Cluster, KindLane, Kubectl, run
from e2e.user import USERS_OWN, KindUser, User
from tests.skips import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401 - hooks

# Ours among all clusters: this checkout's, then the pid of the session or worker, which tells whether it still runs.
_PREFIX = f"e2e-{hashlib.sha256(os.fsencode(CHECKOUT)).hexdigest()[:8]}-"
SESSION = f"{_PREFIX}{os.getpid()}"

# Minutes long, so they begin: one that came last would have the other workers wait for it.
_LONG = ("clusters", "foo", "memcached", "scaler", "realkube", "uninstall", "run_alone", "rbac", "podcount", "install")

# Tests of one file that go to a worker together. Enough of them to pay for what a file leaves to be removed, and few
# enough that no worker has minutes left when the others have none.
_PIECE = 3

_numbers = count(1)

# A script's background job ignores Ctrl-C, under nohup the end of the terminal, and so would every program that is
# started from there; tests send both.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in _LONG)
    seen: Counter[Path] = Counter()
    for item in items:
        # A file whose tests share something of their own is one group already.
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}-{seen[item.path] // _PIECE + 1}"))
            seen[item.path] += 1


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder in which ~/.kube/config points to production."""
    folder = tmp_path_factory.mktemp("home")
    (folder / ".kube").mkdir()
    (folder / ".kube" / "config").write_text(USERS_OWN)
    return folder


@pytest.fixture(scope="session")
def plain_env(home: Path) -> Mapping[str, str]:
    """The environment of every program that a test starts: that home, and no cluster but the user's."""
    foreign = re.compile(r"KUBECONFIG|KUBECTL_.*|KWOK_.*|KIND_.*|PYTEST_.*|PYTHON.*|XDG_.*|VIRTUAL_ENV|LANG.*|LC_.*")
    kept = {name: value for name, value in os.environ.items() if not foreign.fullmatch(name)}
    # What was built once (a Python environment, Kubernetes) is built once: the cache is the real one.
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    # In a locale without UTF-8 there are other arrows and ticks.
    return {**kept, "HOME": str(home), "XDG_CACHE_HOME": cache, "LANG": "C.UTF-8"}


@pytest.fixture(scope="session")
def programs(plain_env: Mapping[str, str]) -> Path:
    """The folder with kubectl and the rest; skips where this machine cannot build it."""
    # A cold build takes longer than pytest gives a test before it takes it for hung.
    faulthandler.cancel_dump_traceback_later()
    built = run(REALKUBE, "build", env=plain_env, timeout=3600)
    if built.code == 3:
        pytest.skip(f"No real Kubernetes here. {built.err}")
    return Path(built.checked().out.strip())


@pytest.fixture(scope="session")
def kind_lane(plain_env: Mapping[str, str]) -> Iterator[KindLane]:
    """kind, a docker daemon and a node image; skips where this machine cannot have them."""
    faulthandler.cancel_dump_traceback_later()
    prepared = run(REALKUBE, "kind", "up", env=os.environ, timeout=3600)
    if prepared.code == 3:
        pytest.skip(f"No kind here. {prepared.err}")
    facts = json.loads(prepared.checked().out)
    path = os.pathsep.join([*facts["path"], str(CHECKOUT / "bin"), plain_env["PATH"]])
    lane = KindLane(image=facts["image"], env={**plain_env, **facts["env"], "PATH": path})
    for name in run("kind", "get", "clusters", env=lane.env).checked().out.split():
        if (session := re.match(rf"{_PREFIX}(\d+)", name)) and not _runs(session[1]):
            run("kind", "delete", "cluster", "--name", name, env=lane.env).checked()
    yield lane
    # Whoever prepared it before us (hack/lanes.py does) stops it.
    if facts["started"]:
        run(REALKUBE, "kind", "stop", env=os.environ, timeout=300).checked()


@pytest.fixture
def kind_env(kind_lane: KindLane, tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """The environment of a user with kind and a docker daemon; kubeconfig, state and settings are the test's own."""
    folders = {f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("STATE", "CONFIG", "DATA")}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(USERS_OWN)
    yield {**kind_lane.env, **folders, "KUBECONFIG": str(kubeconfig)}
    assert kubeconfig.read_text() == USERS_OWN, "The test changed the user's kubeconfig."


@pytest.fixture(scope="session")
def cluster(programs: Path, plain_env: Mapping[str, str]) -> Iterator[Cluster]:
    """The session's cluster; 10 nodes hold 1,100 pods."""
    sweep(plain_env)
    run(REALKUBE, "up", SESSION, "--nodes=10", env=plain_env, timeout=300).checked()
    yield Cluster.shown(SESSION, plain_env)
    run(REALKUBE, "down", SESSION, env=plain_env, timeout=300).checked()  # it waits for the others who make theirs


def sweep(env: Mapping[str, str]) -> None:
    """Remove the clusters of this checkout whose session was killed."""
    for line in run(REALKUBE, "list", env=env).checked().out.splitlines():
        name = line.split("\t")[0]
        if (session := re.match(rf"{_PREFIX}(\d+)", name)) and not _runs(session[1]):
            run(REALKUBE, "down", name, env=env).checked()


def _runs(pid: str) -> bool:
    """Whether it is there, and no zombie."""
    try:
        return bool(Path("/proc", pid, "cmdline").read_bytes())
    except OSError:
        return False


@pytest.fixture(autouse=True, scope="module")
def _cluster_as_found(request: pytest.FixtureRequest, plain_env: Mapping[str, str]) -> Iterator[None]:
    """What one file leaves in the whole cluster would change what the next one sees: it goes with the file."""
    if request.path.stem.startswith(("test_kind", "test_clusters")):
        yield  # they make clusters of their own
        return
    cluster: Cluster = request.getfixturevalue("cluster")
    yield
    admin = Kubectl(cluster.programs / "kubectl", {**plain_env, "KUBECONFIG": str(cluster.kubeconfig)})
    names = admin("get", "clusterroles,clusterrolebindings,customresourcedefinitions", "--output=name").split()
    ours = [name for name in names if "/kubectl-ctrl-" in name or (name.startswith("customresource") and _alien(name))]
    # One that does not go is the next test's to trip over, and no reason to fail what has passed.
    patience = ("--ignore-not-found", "--timeout=60s")
    if ours:
        admin.try_("delete", *patience, *ours, timeout=600)
    admin.try_("delete", "namespaces", "--selector=app.kubernetes.io/managed-by=kubectl-ctrl", *patience, timeout=600)
    leases = admin("get", "leases", "--namespace=default", "--output=name").split()
    if leases:
        admin("delete", "--namespace=default", "--ignore-not-found", *leases)


def _alien(crd: str) -> bool:
    """Whether it is none of the bundled controllers': files share those, and new ones are known only after a while."""
    return not crd.endswith(("/foos.samplecontroller.k8s.io", "/memcacheds.cache.example.com"))


@pytest.fixture
def namespace(cluster: Cluster, plain_env: Mapping[str, str], request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own. Its removal is asked for and not waited for: the cluster ends anyway."""
    admin = Kubectl(cluster.programs / "kubectl", {**plain_env, "KUBECONFIG": str(cluster.kubeconfig)})
    slug = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    name = f"{slug[:40]}-{next(_numbers)}"
    admin("create", "namespace", name)
    # Without it the first pods would be refused. Whoever makes it may not have found the API server again yet, where
    # the test before has restarted that.
    admin("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=100s")
    yield name
    admin("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def kubeconfig(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """The test's own kubeconfig: the session's cluster, the test's namespace; nobody may change it."""
    content = yaml.safe_load(cluster.kubeconfig.read_text())
    content["contexts"][0]["context"]["namespace"] = namespace
    path = tmp_path / "test.kubeconfig"  # `user` may have one of their own
    path.write_text(yaml.safe_dump(content))
    before = path.read_bytes(), cluster.kubeconfig.read_bytes()
    yield path
    assert (path.read_bytes(), cluster.kubeconfig.read_bytes()) == before, "The test changed a kubeconfig."


@pytest.fixture
def env(cluster: Cluster, plain_env: Mapping[str, str], kubeconfig: Path, tmp_path: Path) -> Mapping[str, str]:
    """The environment of a user who works on the session's cluster; state and settings are the test's own."""
    path = f"{cluster.programs}:{CHECKOUT / 'bin'}:{plain_env['PATH']}"
    folders = {f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("STATE", "CONFIG", "DATA")}
    return {**plain_env, **folders, "PATH": path, "KUBECONFIG": str(kubeconfig)}


@pytest.fixture
def kubectl(cluster: Cluster, env: Mapping[str, str]) -> Kubectl:
    return Kubectl(cluster.programs / "kubectl", env)


@pytest.fixture
def ctrl(env: Mapping[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ctrl]:
    """bin/kubectl-ctrl: `ctrl("list")` runs it to its end, `ctrl.started("run", "foo")` in the background."""
    program = Ctrl(env, tmp_path)
    yield program
    for started in program.all_started:
        started.kill()
        request.node.add_report_section("teardown", "kubectl-ctrl", started.output())


@pytest.fixture
def user(programs: Path, plain_env: Mapping[str, str], tmp_path: Path) -> Iterator[User]:
    """`kubectl` is on the PATH, and what kwok needs only where --bin-dir says."""
    path = f"{CHECKOUT / 'bin'}:{plain_env['PATH']}"
    env = {**plain_env, "PATH": path, "KUBECTL_CTRL_BIN_DIR": str(programs), "KUBECTL_CTRL_PROVIDER": "kwok"}
    user = User(tmp_path, env)
    yield user
    user.clean()
    assert user.kubeconfig.read_text() == USERS_OWN, "The test changed the user's kubeconfig."


@pytest.fixture
def kind_user(kind_lane: KindLane, kind_env: Mapping[str, str], tmp_path: Path) -> Iterator[KindUser]:
    user = KindUser(tmp_path, kind_env, kind_lane.image)
    volumes = user.docker.forgotten_volumes()
    yield user
    user.clean()
    for name in (user.name, user.other):
        user.docker.remove(name)
    user.docker.try_("network", "rm", user.network)
    user.docker.assert_none_is_forgotten(volumes)


@pytest.fixture
def audit(cluster: Cluster) -> Audit:
    return Audit(cluster.audit)


@pytest.fixture(autouse=True)
def _user_kubeconfig_unchanged(home: Path) -> Iterator[None]:
    """Neither the tests' user nor the one who runs them finds another kubeconfig afterwards."""
    named = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    paths = [Path(name) for name in named if name] + [Path.home() / ".kube" / "config", home / ".kube" / "config"]

    def snapshot() -> dict[Path, bytes | None]:
        return {path: path.read_bytes() if path.exists() else None for path in paths}

    before = snapshot()
    yield
    assert snapshot() == before, "The test changed the user's kubeconfig."
