"""One real cluster for the session; a namespace, a kubeconfig and a home for each test; and guards around every test.

With pytest-xdist each worker is a session with its own cluster.

The cluster is a sandbox, or in the lane kwok a real one: tests marked `real` need that, or are the few of each verb
that run there although they do not.

Fixtures: `kubectl`, `ctrl`, `audit`, `namespace`. They use the test's own KUBECONFIG, whose context has the test's
namespace, so no command of a test needs `-n`.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
import yaml

from e2e.ctrl import AssertRests, Ctrl
from e2e.kube import CHECKOUT, REALKUBE, Audit, Cluster, KindLane, Kubectl, run
from e2e.user import USER_KUBECONFIG, KindUser, User
from tests.skips import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401 - hooks

# The names of clusters of this checkout. They end with the pid of the session or worker.
_PREFIX = f"e2e-{hashlib.sha256(os.fsencode(CHECKOUT)).hexdigest()[:8]}-"
SESSION = f"{_PREFIX}{os.getpid()}"

# They take minutes, so they are first: at the end, all other workers would wait for one of them.
_LONG = ("clusters", "foo", "memcached", "scaler", "realkube", "uninstall", "run_alone", "rbac", "podcount", "install")

# Number of tests of one file that go to a worker together: enough to amortize the cleanup after a file, and few enough
# that all workers finish at about the same time.
_PIECE = 3

_numbers = count(1)

# A background job of a script ignores SIGINT, and under nohup SIGHUP, and its children inherit that; tests send both.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="record the real server's answers to all scenarios")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in _LONG)
    seen: Counter[Path] = Counter()
    for item in items:
        # A file whose tests share a resource has its own group.
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}-{seen[item.path] // _PIECE + 1}"))
            seen[item.path] += 1


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder in which ~/.kube/config points to production."""
    folder = tmp_path_factory.mktemp("home")
    (folder / ".kube").mkdir()
    (folder / ".kube" / "config").write_text(USER_KUBECONFIG)
    return folder


@pytest.fixture(scope="session")
def plain_env(home: Path) -> Mapping[str, str]:
    """The environment of all programs of the tests: that home, and only the user's cluster."""
    foreign = re.compile(r"KUBECONFIG|KUBECTL_.*|KWOK_.*|KIND_.*|PYTEST_.*|PYTHON.*|XDG_.*|VIRTUAL_ENV|LANG.*|LC_.*")
    kept = {name: value for name, value in os.environ.items() if not foreign.fullmatch(name)}
    # The real cache, so that the Python environment and Kubernetes are built once.
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    # In a locale without UTF-8 the output has other arrows and check marks.
    return {**kept, "HOME": str(home), "XDG_CACHE_HOME": cache, "LANG": "C.UTF-8"}


@pytest.fixture(scope="session")
def programs(plain_env: Mapping[str, str]) -> Path:
    """The folder with kubectl and the rest; skips if this machine cannot build it."""
    # A cold build takes longer than the timeout of a test.
    faulthandler.cancel_dump_traceback_later()
    built = run(REALKUBE, "build", env=plain_env, timeout=3600)
    if built.code == 3:
        pytest.skip(f"This machine cannot build Kubernetes. {built.err}")
    return Path(built.checked().out.strip())


@pytest.fixture(scope="session")
def kind_lane(plain_env: Mapping[str, str]) -> Iterator[KindLane]:
    """kind, a docker daemon and a node image; skips if this machine cannot provide them."""
    faulthandler.cancel_dump_traceback_later()
    prepared = run(REALKUBE, "kind", "up", env=os.environ, timeout=3600)
    if prepared.code == 3:
        pytest.skip(f"This machine cannot run kind. {prepared.err}")
    facts = json.loads(prepared.checked().out)
    path = os.pathsep.join([*facts["path"], str(CHECKOUT / "bin"), plain_env["PATH"]])
    lane = KindLane(image=facts["image"], env={**plain_env, **facts["env"], "PATH": path})
    for name in run("kind", "get", "clusters", env=lane.env).checked().out.split():
        if (session := re.match(rf"{_PREFIX}(\d+)", name)) and not _runs(session[1]):
            run("kind", "delete", "cluster", "--name", name, env=lane.env).checked()
    yield lane
    # If the daemon ran before, its starter stops it (hack/lanes.py).
    if facts["started"]:
        run(REALKUBE, "kind", "stop", env=os.environ, timeout=300).checked()


@pytest.fixture
def kind_env(kind_lane: KindLane, tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """The environment of a user with kind and a docker daemon; kubeconfig, state and settings are the test's own."""
    folders = {f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("STATE", "CONFIG", "DATA")}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(USER_KUBECONFIG)
    yield {**kind_lane.env, **folders, "KUBECONFIG": str(kubeconfig)}
    assert kubeconfig.read_text() == USER_KUBECONFIG, "The test changed the user's kubeconfig."


@pytest.fixture(scope="session")
def cluster(
    programs: Path, plain_env: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """The session's cluster; 10 nodes hold 1,100 pods."""
    if os.environ.get("E2E_CLUSTER") == "sandbox":
        with sandbox(programs, plain_env, tmp_path_factory.mktemp("sandbox")) as made:
            yield made
        return
    sweep(plain_env)
    run(REALKUBE, "up", SESSION, "--nodes=10", env=plain_env, timeout=300).checked()
    yield Cluster.shown(SESSION, plain_env)
    run(
        REALKUBE, "down", SESSION, env=plain_env, timeout=300
    ).checked()  # it waits while another worker creates a cluster


@contextmanager
def sandbox(programs: Path, env: Mapping[str, str], folder: Path) -> Iterator[Cluster]:
    """A sandbox that ends with its standard input, and so with this process."""
    name, log = f"sandbox-{SESSION}", folder / "audit.log"
    flags = [str(folder / "box"), "--name", name, "--nodes=10", "--temporary", "--audit-log", str(log)]
    command = [sys.executable, "-m", "kubectl_ctrl.sandbox", *flags]
    with (
        (folder / "output").open("w") as output,
        subprocess.Popen(
            command, cwd=CHECKOUT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "output").read_text()
        kubeconfig = Path(json.loads(line)["kubeconfig"])
        yield Cluster(name=name, context=name, kubeconfig=kubeconfig, audit=log, programs=programs)
        process.communicate()
    assert not (folder / "output").read_text(), "The sandbox printed errors."


def sweep(env: Mapping[str, str]) -> None:
    """Delete the clusters of killed sessions of this checkout."""
    for line in run(REALKUBE, "list", env=env).checked().out.splitlines():
        name = line.split("\t")[0]
        if (session := re.match(rf"{_PREFIX}(\d+)", name)) and not _runs(session[1]):
            run(REALKUBE, "down", name, env=env).checked()


def _runs(pid: str) -> bool:
    """It exists and is not a zombie."""
    try:
        return bool(Path("/proc", pid, "cmdline").read_bytes())
    except OSError:
        return False


@pytest.fixture(autouse=True, scope="module")
def _cluster_as_found(request: pytest.FixtureRequest, plain_env: Mapping[str, str]) -> Iterator[None]:
    """Delete the cluster-wide objects of a file, which would affect the next file."""
    if request.path.stem.startswith(("test_kind", "test_clusters", "test_sandbox")):
        yield  # they create their own clusters
        return
    cluster: Cluster = request.getfixturevalue("cluster")
    yield
    admin = Kubectl(cluster.programs / "kubectl", {**plain_env, "KUBECONFIG": str(cluster.kubeconfig)})
    names = admin("get", "clusterroles,clusterrolebindings,customresourcedefinitions", "--output=name").split()
    left = [name for name in names if "/kubectl-ctrl-" in name or (name.startswith("customresource") and _alien(name))]
    # A failed deletion does not fail tests that have passed.
    patience = ("--ignore-not-found", "--timeout=60s")
    if left:
        admin.try_("delete", *patience, *left, timeout=600)
    admin.try_("delete", "namespaces", "--selector=app.kubernetes.io/managed-by=kubectl-ctrl", *patience, timeout=600)
    leases = admin("get", "leases", "--namespace=default", "--output=name").split()
    if leases:
        admin("delete", "--namespace=default", "--ignore-not-found", *leases)


def _alien(crd: str) -> bool:
    """It is not of a bundled controller: files share those, because a new CRD takes a while to be served."""
    return not crd.endswith(("/foos.samplecontroller.k8s.io", "/memcacheds.cache.example.com"))


@pytest.fixture
def namespace(cluster: Cluster, plain_env: Mapping[str, str], request: pytest.FixtureRequest) -> Iterator[str]:
    """The test's own namespace. Its deletion is not awaited, because the cluster is deleted anyway."""
    admin = Kubectl(cluster.programs / "kubectl", {**plain_env, "KUBECONFIG": str(cluster.kubeconfig)})
    slug = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    name = f"{slug[:40]}-{next(_numbers)}"
    admin("create", "namespace", name)
    # Without it the first pods would be refused. After a restart of the API server by the test before, the controller
    # manager may need time to reconnect and create it.
    admin("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=100s")
    yield name
    admin("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def kubeconfig(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """The test's own kubeconfig: the session's cluster and the test's namespace; it must not change."""
    content = yaml.safe_load(cluster.kubeconfig.read_text())
    content["contexts"][0]["context"]["namespace"] = namespace
    path = tmp_path / "test.kubeconfig"  # `user` has another one
    path.write_text(yaml.safe_dump(content))
    before = path.read_bytes(), cluster.kubeconfig.read_bytes()
    yield path
    assert (path.read_bytes(), cluster.kubeconfig.read_bytes()) == before, "The test changed a kubeconfig."


@pytest.fixture
def env(cluster: Cluster, plain_env: Mapping[str, str], kubeconfig: Path, tmp_path: Path) -> Mapping[str, str]:
    """The environment of a user of the session's cluster, with the test's own state and settings."""
    path = f"{cluster.programs}:{CHECKOUT / 'bin'}:{plain_env['PATH']}"
    folders = {f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("STATE", "CONFIG", "DATA")}
    return {**plain_env, **folders, "PATH": path, "KUBECONFIG": str(kubeconfig)}


@pytest.fixture
def kubectl(cluster: Cluster, env: Mapping[str, str]) -> Kubectl:
    return Kubectl(cluster.programs / "kubectl", env)


@pytest.fixture
def ctrl(env: Mapping[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ctrl]:
    """bin/kubectl-ctrl: `ctrl("list")` runs it in the foreground, `ctrl.started("run", "foo")` in the background."""
    program = Ctrl(env, tmp_path)
    yield program
    for started in program.all_started:
        started.kill()
        request.node.add_report_section("teardown", "kubectl-ctrl", started.output())


@pytest.fixture
def user(programs: Path, plain_env: Mapping[str, str], tmp_path: Path) -> Iterator[User]:
    """kubectl is on PATH; the programs of kwok are only in --bin-dir."""
    path = f"{CHECKOUT / 'bin'}:{plain_env['PATH']}"
    provider = os.environ.get("E2E_CLUSTER", "kwok")
    env = {**plain_env, "PATH": path, "KUBECTL_CTRL_BIN_DIR": str(programs), "KUBECTL_CTRL_PROVIDER": provider}
    user = User(tmp_path, env)
    yield user
    user.clean()
    assert user.kubeconfig.read_text() == USER_KUBECONFIG, "The test changed the user's kubeconfig."


@pytest.fixture
def kind_user(kind_lane: KindLane, kind_env: Mapping[str, str], tmp_path: Path) -> Iterator[KindUser]:
    user = KindUser(tmp_path, kind_env, kind_lane.image)
    volumes = user.docker.unused_volumes()
    yield user
    user.clean()
    for name in (user.name, user.other):
        user.docker.remove(name)
    user.docker.try_("network", "rm", user.network)
    user.docker.assert_no_new_volumes(volumes)


@pytest.fixture
def audit(cluster: Cluster) -> Audit:
    return Audit(cluster.audit)


@pytest.fixture
def assert_rests(ctrl: Ctrl, audit: Audit, namespace: str) -> AssertRests:
    return AssertRests(ctrl, audit, namespace)


@pytest.fixture(autouse=True)
def _user_kubeconfig_unchanged(home: Path) -> Iterator[None]:
    """The kubeconfigs of the tests' user and of the one who runs pytest do not change."""
    named = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    paths = [Path(name) for name in named if name] + [Path.home() / ".kube" / "config", home / ".kube" / "config"]

    def snapshot() -> dict[Path, bytes | None]:
        return {path: path.read_bytes() if path.exists() else None for path in paths}

    before = snapshot()
    yield
    assert snapshot() == before, "The test changed the user's kubeconfig."
