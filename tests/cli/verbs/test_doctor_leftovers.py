"""What `doctor` finds of us where nothing should be left, and how `--fix` takes it away."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.cli.verbs.doctor.fixes import fix_all
from kubectl_ctrl.clusters.provider import ClusterState
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry, locked_file
from kubectl_ctrl.doctor import leftovers
from kubectl_ctrl.doctor.diagnosis import Line, RepairOutcome
from kubectl_ctrl.errors import PrerequisiteMissing, Refused
from kubectl_ctrl.model.resources import DEPLOYMENTS, LEASES
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.runs.runners import only_runner
from kubectl_ctrl.runs.takeover import ANNOTATION
from kubectl_ctrl.sandbox.answers import answer
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.stage import Stage
from kubectl_ctrl.value import replace
from tests.cli.bench import ABLE, Layout, Toy, kubeconfig, laid_out
from tests.objects import present
from tests.runs.test_instances import ELSEWHERE, deployment, lease
from tests.runs.test_runners import ME
from tests.runs.test_takeover import gone, note

FOO = "kubectl-ctrl-foo"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this user's state lies."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "kubectl-ctrl"


@pytest.fixture
def registry(state: Path) -> Registry:
    return Registry(state / "clusters")


def page(registry: Registry, name: str, phase: Phase = Phase.READY) -> ClusterEntry:
    entry = ClusterEntry(name=name, provider="toy", phase=phase, began=1000.0, folder=registry.place(name))
    registry.write(entry)
    return entry


def texts(lines: list[Line]) -> list[str]:
    return [line.text for line in lines]


# On this machine.


async def test_nothing_left_is_said(at: Layout) -> None:
    assert texts(await at.see(leftovers.machine)) == ["no leftovers on this machine"]
    assert texts(await at.see(leftovers.cluster)) == ["no leftovers on the cluster"]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ((Phase.CREATING, ClusterState.RUNNING), ["was not completely created", "kubectl ctrl down a"]),
        ((Phase.DELETING, ClusterState.RUNNING), ["was not completely deleted", "kubectl ctrl down a"]),
        ((Phase.READY, ClusterState.ABSENT), ["no longer exists, but its files do", "kubectl ctrl down a"]),
        ((Phase.READY, ClusterState.PARTIAL), ["is incomplete: parts of it are missing", "kubectl ctrl down a"]),
        ((Phase.READY, ClusterState.STOPPED), ["is stopped; this starts it", "kubectl ctrl up --name a"]),
        ((Phase.READY, ClusterState.RUNNING), ["no leftovers on this machine", ""]),
    ],
)
async def test_a_cluster_that_is_not_all_there(
    tmp_path: Path, registry: Registry, found: tuple[Phase, ClusterState], told: list[str]
) -> None:
    (phase, state), (text, command) = found, told
    page(registry, "a", phase)
    at = laid_out(tmp_path)
    at.providers = {"toy": Toy("toy", ABLE, {"a": state})}
    (line,) = await at.see(leftovers.machine)
    assert text in line.text
    assert line.command == command


async def test_a_cluster_that_somebody_sees_to_meanwhile_is_not_taken_away(tmp_path: Path, registry: Registry) -> None:
    page(registry, "a", Phase.CREATING)
    page(registry, "b", Phase.CREATING)
    at = laid_out(tmp_path)
    bench = await at.bench()
    found = await leftovers.local_leftovers(bench)
    page(registry, "a")  # `up` has made it anew
    with registry.locked("b"):  # and is about to
        done = [await one.mend() for one in found if one.mend]
    assert done == ["it is kept, since another process has changed it"] * 2
    assert [entry.phase for entry in registry.entries()] == [Phase.READY, Phase.CREATING]


async def test_how_a_cluster_stands_may_not_be_known(tmp_path: Path, registry: Registry) -> None:
    page(registry, "a")
    registry.write(replace(page(registry, "b"), provider="unheard-of"))
    at = laid_out(tmp_path, "--fix", "--yes")
    toy = at.providers["toy"]
    toy.error = PrerequisiteMissing("The box does not answer.", next_step="open it")
    first, second = await at.see(leftovers.machine)
    assert first.text == "cluster a (toy): its state is unknown: The box does not answer"
    assert (first.mark.value, first.advice) == ("warn", "open it")
    assert "does not support the provider 'unheard-of'" in second.text
    toy.silent = True
    (first, _) = await at.see(leftovers.machine)
    assert first.text.endswith("The programs of toy did not answer within 3 s")
    assert [one.outcome for one in (await at.fix_all()).diagnosis.repairs] == [RepairOutcome.BY_HAND] * 2


async def test_a_kubeconfig_that_still_has_a_cluster_that_is_gone_is_named(tmp_path: Path, registry: Registry) -> None:
    registry.write(replace(page(registry, "a"), used={"file": "/home/me/.kube/config"}))
    at = laid_out(tmp_path)
    (line,) = await at.see(leftovers.machine)
    assert line.text.endswith("no longer exists, but its files do; --use added it to /home/me/.kube/config")


async def test_a_cluster_that_a_process_is_changing_is_none(tmp_path: Path, registry: Registry) -> None:
    page(registry, "a", Phase.CREATING)
    at = laid_out(tmp_path)
    with registry.locked("a"):
        assert texts(await at.see(leftovers.machine)) == ["no leftovers on this machine"]
    assert len(await at.see(leftovers.machine)) == 1


async def test_folders_without_a_page_that_can_be_read(tmp_path: Path, registry: Registry) -> None:
    for name in ("bare", "Not A Name", "torn"):
        registry.folder.joinpath(name).mkdir(parents=True)
    (registry.folder / "torn" / "cluster.json").write_text("{")
    at = laid_out(tmp_path)
    odd, bare, torn = await at.see(leftovers.machine)
    assert odd.command == f"rm -r '{registry.folder / 'Not A Name'}'"
    assert bare.command == "kubectl ctrl down bare"
    assert "cannot be read" in torn.text
    assert torn.command == "kubectl ctrl down torn"


@pytest.mark.parametrize("name", ["a.lock", ".ports.lock"])
async def test_a_lock_file_that_nobody_holds_is_removed(tmp_path: Path, registry: Registry, name: str) -> None:
    registry.folder.mkdir(parents=True)
    path = registry.folder / name
    path.write_text("4121")
    at = laid_out(tmp_path)
    (line,) = await at.see(leftovers.machine)
    assert line.command == f"rm {path}"
    with locked_file(path):
        assert texts(await at.see(leftovers.machine)) == ["no leftovers on this machine"]
    path.write_text("4121")
    assert [one.outcome for one in (await at.fix_all()).diagnosis.repairs] == [RepairOutcome.DONE]
    assert not path.exists()


async def test_a_lock_that_keeps_the_kubeconfig_from_everybody_goes_with_yes(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(kubeconfig("https://127.0.0.1:6443"))
    lock = tmp_path / "kubeconfig.lock"
    lock.touch()
    os.utime(lock, (1000, 1000))

    at = laid_out(tmp_path, "--fix")
    (line,) = await at.see(leftovers.machine)
    assert line.command == f"rm {lock}"
    done = await at.fix_all()
    assert [one.outcome for one in done.diagnosis.repairs] == [RepairOutcome.LISTED]
    assert done.refused is not None
    assert done.refused.next_step == "kubectl ctrl doctor --fix --yes"
    assert lock.exists()

    at = laid_out(tmp_path, "--fix", "--yes")
    done = await at.fix_all()
    assert ([one.outcome for one in done.diagnosis.repairs], done.refused) == ([RepairOutcome.DONE], None)
    assert not lock.exists()


@pytest.mark.parametrize("moment", ["before", "while"])
async def test_a_lock_that_was_taken_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    (tmp_path / "kubeconfig").write_text(kubeconfig("https://127.0.0.1:6443"))
    lock = tmp_path / "kubeconfig.lock"
    lock.touch()
    os.utime(lock, (1000, 1000))
    rename = Path.rename

    def taken_by_kubectl() -> None:
        lock.unlink()
        lock.write_text("kubectl")

    def too_late(self: Path, target: Path) -> Path:
        taken_by_kubectl()
        return rename(self, target)

    at = laid_out(tmp_path, "--fix", "--yes")
    (left,) = await leftovers.local_leftovers(await at.bench())
    assert left.mend
    if moment == "before":
        taken_by_kubectl()
    else:
        monkeypatch.setattr(Path, "rename", too_late)
    assert await left.mend() == "it is kept, since another program has taken or deleted it"
    assert lock.read_text() == "kubectl"
    assert sorted(path.name for path in tmp_path.glob("*kubeconfig*")) == ["kubeconfig", "kubeconfig.lock"]


# On the cluster.


@pytest.fixture
def scar() -> Any:
    """Puts a Deployment there that somebody took over and did not give back."""

    def put(stage: Stage, holder: str) -> None:
        stage.install(deployment(FOO, replicas=2))
        stage.server.change(DEPLOYMENTS, FOO, note(holder, 3))

    return put


def replicas(at: Layout) -> tuple[int, bool]:
    """The count, and whether the annotation is still there."""
    found = present(at.stage.server.get(DEPLOYMENTS, FOO))
    return found["spec"]["replicas"], ANNOTATION in (found["metadata"].get("annotations") or {})


async def test_a_takeover_whose_run_is_dead_is_given_back(scar: Any, at: Layout) -> None:
    scar(at.stage, gone())
    (line,) = await at.see(leftovers.cluster)
    assert line.text.endswith("and not restored")
    assert line.command.startswith("kubectl --context kind-ctrl --namespace default patch deployment")
    (repair,) = (await at.fix_all()).diagnosis.repairs
    assert repair.outcome is RepairOutcome.DONE
    assert repair.text.endswith(f"deployments.apps default/{FOO} is scaled back to 3")
    assert replicas(at) == (3, False)
    assert (await at.fix_all()).diagnosis.repairs == ()


async def test_a_takeover_whose_run_may_go_on_is_left_to_a_person(tmp_path: Path, scar: Any, state: Path) -> None:
    at = laid_out(tmp_path, "--fix", "--yes")
    scar(at.stage, ELSEWHERE)
    (line,) = await at.see(leftovers.cluster)
    assert "may still be active; if it is not" in line.advice
    (repair,) = (await at.fix_all()).diagnosis.repairs
    assert (repair.outcome, repair.command) == (RepairOutcome.BY_HAND, line.command)
    assert replicas(at) == (0, True)

    at = laid_out(tmp_path)
    me = replace(ME, holder=identity("r7f3"))
    scar(at.stage, me.holder)
    with only_runner(state, me):
        assert texts(await at.see(leftovers.cluster)) == ["no leftovers on the cluster"]


async def test_who_may_not_list_deployments_is_told_of_those_in_their_own_namespaces(scar: Any, at: Layout) -> None:
    scar(at.stage, gone())
    at.stage.server.faults.fail(Match(verb="list", plural="deployments", namespace=""), 403, times=None)
    (line,) = await at.see(leftovers.cluster)
    assert line.text.endswith("deployments.apps in other namespaces than those of the controllers")
    asked = [one.path for one in at.stage.server.requests if "deployments" in one.path]
    assert "/apis/apps/v1/namespaces/foo-system/deployments" in asked


def leases(at: Layout, **held: tuple[str, float]) -> None:
    """Leases of foo by name, each with its holder and how long ago that renewed it."""
    for name, (who, age) in held.items():
        at.stage.install(lease(at.stage, name, who=who, age=age, **{"managed-by": "kubectl-ctrl"}))


async def test_leases_of_holders_that_are_gone_are_deleted(at: Layout) -> None:
    leases(at, alive=(ELSEWHERE, 3), late=(ELSEWHERE, 60), silent=(ELSEWHERE, 4000), dead=(gone(), 3), free=("", 9))
    dead, silent = await at.see(leftovers.cluster)
    assert dead.text.startswith("Lease default/dead is held by process ")
    assert dead.text.endswith("on this machine, which has exited")
    assert silent.text.endswith(f"held by {ELSEWHERE}, which should have renewed it 1h6m ago")
    assert silent.command == "kubectl --context kind-ctrl delete lease silent --namespace default"
    done = await at.fix_all()
    assert [one.outcome for one in done.diagnosis.repairs] == [RepairOutcome.DONE] * 2
    assert sorted(one["metadata"]["name"] for one in at.stage.server.objects(LEASES)) == ["alive", "free", "late"]


async def test_a_lease_that_was_renewed_meanwhile_stays(at: Layout) -> None:
    leases(at, dead=(gone(), 3))
    (left,) = (await leftovers.cluster_leftovers(await at.bench(), at.reached)).left
    at.stage.server.change(LEASES, "dead", {"spec": {"holderIdentity": ELSEWHERE}})
    assert left.mend is not None
    with pytest.raises(Exception, match="does not match"):
        await left.mend()
    assert at.stage.server.get(LEASES, "dead") is not None


async def test_a_webhook_that_nobody_answers_is_listed(state: Path, at: Layout) -> None:
    meta = {"name": "hook", "uid": "u", "resourceVersion": "7"}
    meta |= {"labels": {"app.kubernetes.io/managed-by": "kubectl-ctrl", "app.kubernetes.io/name": "foo"}}  # type: ignore[dict-item]
    for kind, items in (("Validating", [{"metadata": meta}]), ("Mutating", [])):
        path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations"
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfigurationList",
            "metadata": {"resourceVersion": "9"},
            "items": items,
        }
        at.stage.server.faults.answer(Match(path=path), answer(body), times=None)
    (line,) = await at.see(leftovers.cluster)
    assert line.text == "ValidatingWebhookConfiguration hook exists, but foo does not run"
    named = "validatingwebhookconfigurations.admissionregistration.k8s.io hook"
    assert line.command == f"kubectl --context kind-ctrl delete {named}"
    done = await at.fix_all()
    assert [one.outcome for one in done.diagnosis.repairs] == [RepairOutcome.LISTED]
    with only_runner(state, replace(ME, cluster="c")):
        assert texts(await at.see(leftovers.cluster)) == ["no leftovers on the cluster"]


# The guard.


async def test_a_foreign_cluster_is_changed_by_nothing_but_its_name(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "kubeconfig").write_text(kubeconfig("https://10.0.0.1:6443", context="prod-eu"))
    registry.folder.mkdir(parents=True)
    lock = registry.folder / "a.lock"

    at = laid_out(tmp_path, "--fix")
    lock.touch()
    leases(at, dead=(gone(), 3))
    done = await at.fix_all()
    assert [one.outcome for one in done.diagnosis.repairs] == [RepairOutcome.DONE, RepairOutcome.REFUSED]
    assert done.refused is not None
    assert done.refused.next_step == "kubectl ctrl doctor --fix --allow-context=prod-eu"
    assert at.stage.server.get(LEASES, "dead") is not None
    assert not lock.exists(), "What is on this machine is mended all the same."

    at = laid_out(tmp_path, "--fix", "--allow-context=prod-eu")
    leases(at, dead=(gone(), 3))
    done = await at.fix_all()
    assert ([one.outcome for one in done.diagnosis.repairs], done.refused) == ([RepairOutcome.DONE], None)


async def test_the_guard_looks_at_the_cluster_that_was_asked_and_not_at_what_is_meant_by_now(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig("https://10.0.0.1:6443", context="prod-eu"))
    at = laid_out(tmp_path, "--fix")
    leases(at, dead=(gone(), 3))
    bench = await at.bench()
    file.write_text(kubeconfig("https://127.0.0.1:6443"))
    done = await fix_all(at.app, at.given, bench)
    assert [one.outcome for one in done.diagnosis.repairs] == [RepairOutcome.REFUSED]
    assert at.stage.server.get(LEASES, "dead") is not None


async def test_what_fails_holds_up_nothing_else(tmp_path: Path) -> None:
    at = laid_out(tmp_path, "--fix")
    leases(at, one=(gone(), 3), other=(gone(), 3))
    at.stage.server.faults.fail(Match(verb="delete", plural="leases", name="one"), 403)
    done = await at.fix_all()
    assert [one.outcome for one in done.diagnosis.repairs] == [RepairOutcome.FAILED, RepairOutcome.DONE]
    assert done.code == 7


async def test_without_a_cluster_the_machine_is_mended_all_the_same(tmp_path: Path, registry: Registry) -> None:
    registry.folder.mkdir(parents=True)
    (registry.folder / "a.lock").touch()
    at = laid_out(tmp_path, "--fix")
    at.reachable = Refused("Nobody answers.")
    done = await at.fix_all()
    assert [one.outcome for one in done.diagnosis.repairs] == [RepairOutcome.DONE]
    assert "Leftovers on the cluster are unknown: Nobody answers." in at.app.err.getvalue()  # type: ignore[attr-defined]
