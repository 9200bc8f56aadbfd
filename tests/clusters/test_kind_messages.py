"""What kind says when something goes wrong, word for word as v0.33.0 says it, and the error that its user sees."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from kubectl_ctrl.clusters.kind.messages import failure, late, progress
from kubectl_ctrl.clusters.provider import ClusterSpec
from kubectl_ctrl.errors import (
    ClusterError,
    CtrlError,
    PrerequisiteMissing,
    ProgramFailed,
    Refused,
    TimedOut,
    UsageError,
)
from kubectl_ctrl.exec import Output
from tests.clusters.kindprograms import SAID, TOOLS, Programs

pytestmark = pytest.mark.programs(*TOOLS)


@dataclass(frozen=True, slots=True)
class Row:
    said: str
    error: type[CtrlError]
    message: str
    next_step: str
    tried: str = "kind create cluster --name ctrl"


NO_NODE = (
    "kind could not create cluster 'ctrl': the container does not start as a node, so its image is not a node image."
)
ROWS = (
    Row(
        "daemon-down",
        PrerequisiteMissing,
        "docker does not answer: nothing listens on unix:///var/run/docker.sock.",
        "start docker, or set DOCKER_HOST to its address, or use --provider kwok",
        "docker info",
    ),
    Row(
        "denied",
        PrerequisiteMissing,
        "docker does not answer: you have no permission to use its socket.",
        "add yourself to the group docker (sudo usermod -aG docker $USER) and log in again, or use --provider kwok",
        "docker info",
    ),
    Row(
        "no-docker",
        PrerequisiteMissing,
        "kind found no docker on PATH.",
        "install docker, podman or nerdctl, or use --provider kwok",
    ),
    Row(
        "not-pulled",
        PrerequisiteMissing,
        "The node image 'registry.invalid/x:1' is not on this machine and could not be pulled:"
        ' Get "https://registry.invalid/v2/": dial tcp: lookup registry.invalid on 192.0.2.53:53: no such host.',
        "choose an existing image with --image (see `docker images`), or use --provider kwok",
        "docker pull registry.invalid/x:1",
    ),
    Row(
        "exists",
        Refused,
        "The name 'ctrl' is in use: docker has nodes of a kind cluster of that name.",
        "choose another --name: only clusters created by kubectl ctrl are changed",
    ),
    Row(
        "bad-name",
        UsageError,
        "kind does not accept the cluster name 'Bad_Name!'.",
        "use a-z, 0-9 and '-' in --name",
    ),
    Row(
        "config-absent",
        UsageError,
        "kind does not accept the configuration 'kind.yaml': error reading file: open nowhere.yaml: no such file or "
        "directory.",
        "correct the file; apiVersion is kind.x-k8s.io/v1alpha4, roles are control-plane and worker",
    ),
    Row(
        "config-field",
        UsageError,
        "kind does not accept the configuration 'kind.yaml': yaml: unmarshal errors: line 3: field nodez not found "
        "in type v1alpha4.Cluster.",
        "correct the file; apiVersion is kind.x-k8s.io/v1alpha4, roles are control-plane and worker",
    ),
    Row(
        "config-role",
        UsageError,
        "kind does not accept the configuration 'kind.yaml': [invalid configuration for node 0:"
        ' "boss" is not a valid node role, must have at least one control-plane node].',
        "correct the file; apiVersion is kind.x-k8s.io/v1alpha4, roles are control-plane and worker",
    ),
    Row(
        "config-version",
        UsageError,
        "kind does not accept the configuration 'kind.yaml': unknown apiVersion: kind.x-k8s.io/v9.",
        "correct the file; apiVersion is kind.x-k8s.io/v1alpha4, roles are control-plane and worker",
    ),
    Row(
        "config-syntax",
        UsageError,
        "kind does not accept the configuration 'kind.yaml': yaml: line 1: did not find expected node content.",
        "correct the file; apiVersion is kind.x-k8s.io/v1alpha4, roles are control-plane and worker",
    ),
    Row(
        "port-of-container",
        ClusterError,
        "kind could not create cluster 'ctrl': port 127.0.0.1:40095 of this machine is in use.",
        "stop the program that listens there, or choose another hostPort in the --config file",
    ),
    Row(
        "port-of-process",
        ClusterError,
        "kind could not create cluster 'ctrl': port 127.0.0.1:18999 of this machine is in use.",
        "stop the program that listens there, or choose another hostPort in the --config file",
    ),
    Row(
        "not-a-node",
        ClusterError,
        NO_NODE,
        "use an image built by `kind build node-image`, or omit --image",
    ),
    Row(
        "no-kubernetes",
        ClusterError,
        NO_NODE,
        "use an image built by `kind build node-image`, or omit --image",
    ),
    Row(
        "kubeadm",
        ClusterError,
        "kind could not create cluster 'ctrl': its control plane did not start (kubeadm init failed).",
        "-v 1 shows its full output; --keep-on-failure keeps the cluster for inspection",
    ),
    Row(
        "locked",
        ClusterError,
        (
            "kind could not create cluster 'ctrl': failed to lock config file: open /home/u/kubeconfig.lock: file "
            "exists."
        ),
        "-v 1 shows its full output; --keep-on-failure keeps the cluster for inspection",
    ),
    Row(
        "stopped-load",
        ClusterError,
        "Cluster 'ctrl' is stopped.",
        "start it: kubectl ctrl up --name ctrl",
    ),
    Row(
        "stopped-logs",
        ClusterError,
        "kind could not create cluster 'ctrl': commands in its nodes failed.",
        "-v 1 shows its full output; --keep-on-failure keeps the cluster for inspection",
    ),
    Row(
        "unknown-load",
        ClusterError,
        "Cluster 'ctrl' no longer has any nodes.",
        "recreate it: kubectl ctrl up --name ctrl",
    ),
    Row(
        "no-image-load",
        PrerequisiteMissing,
        "docker has no image 'no/such:1'.",
        "build or pull it first, or use an archive.tar written by `docker save`",
        "docker image inspect no/such:1",
    ),
)
CODES = {PrerequisiteMissing: 5, Refused: 6, UsageError: 2, ClusterError: 1}


def said(name: str) -> str:
    return (SAID / f"{name}.txt").read_text()


@pytest.mark.parametrize("row", ROWS, ids=[row.said for row in ROWS])
def test_f58_each_row_of_what_kind_says_is_a_clear_error(row: Row) -> None:
    output = Output(
        argv=("/x/bin/kind", "create", "cluster", "--name", "ctrl"), code=1, stdout="", stderr=said(row.said)
    )
    error = failure(output, "could not create cluster 'ctrl'", "ctrl", "docker", Path("kind.yaml"))
    assert type(error) is row.error
    assert (error.message, error.next_step, error.tried) == (row.message, row.next_step, row.tried)
    assert error.exit_code == CODES[row.error]
    assert "\n" not in error.message + error.next_step
    assert "-v 1" in error.next_step or not getattr(error, "last_words", ())


def test_all_that_kind_said_is_kept() -> None:
    output = Output(argv=("kind", "create"), code=1, stdout="", stderr=said("kubeadm"))
    error = failure(output, "could not create cluster 'ctrl'", "ctrl", "docker")
    assert isinstance(error, ClusterError)
    assert error.output == said("kubeadm")


# The first and the last line of what the error has of it.
LAST = {
    "kubeadm": (
        3,
        "failed to init node with kubeadm: command ",
        'error: networking.podSubnet: Invalid value: "nonsense": couldn\'t parse subnet',
    ),
    "kubeadm-late": (
        12,
        '[kubeconfig] Writing "scheduler.conf" kubeconfig file',
        "error: error execution phase wait-control-plane: cannot obtain client without bootstrap: could not bootstrap ",
    ),
}


@pytest.mark.parametrize(("name", "last"), LAST.items())
def test_of_what_kubeadm_said_the_error_has_the_end_without_places_in_its_source(
    name: str, last: tuple[int, str, str]
) -> None:
    output = Output(argv=("kind", "create"), code=1, stdout="", stderr=said(name))
    error = failure(output, "could not create cluster 'ctrl'", "ctrl", "docker")
    assert isinstance(error, ClusterError)
    assert len(error.last_words) == last[0]
    assert error.last_words[0].startswith(last[1])
    assert error.last_words[-1].startswith(last[2])


def test_what_the_message_has_already_is_not_said_again() -> None:
    output = Output(argv=("kind", "create"), code=1, stdout="", stderr=said("locked"))
    error = failure(output, "could not create cluster 'ctrl'", "ctrl", "docker")
    assert isinstance(error, ClusterError)
    assert error.last_words == ()


def test_who_loads_an_image_is_not_sent_to_a_flag_of_up() -> None:
    output = Output(argv=("kind", "load"), code=1, stdout="", stderr="ERROR: the moon is in the wrong phase\n")
    error = failure(output, "could not load the images", "ctrl", "docker")
    assert error.next_step == "-v 1 shows its full output"


def test_words_that_are_not_known_are_passed_on() -> None:
    stderr = "Creating cluster ...\nERROR: failed to create cluster: the moon is in the wrong phase\n"
    error = failure(Output(argv=("kind",), code=1, stdout="", stderr=stderr), "could not make it", "ctrl", "docker")
    assert error.message == "kind could not make it: the moon is in the wrong phase."
    assert error.exit_code == 1


def test_colours_and_controls_of_a_terminal_do_not_pass() -> None:
    stderr = "\x1b[31mERROR\x1b[0m: failed to create cluster: \x1b]0;title\x07 gone\n"
    error = failure(Output(argv=("kind",), code=1, stdout="", stderr=stderr), "could not make it", "ctrl", "docker")
    assert error.message == "kind could not make it: \\x1b]0;title\\x07 gone."


def test_a_kind_that_was_killed_is_told_as_such() -> None:
    error = failure(Output(argv=("kind",), code=-9, stdout="", stderr=""), "could not make it", "ctrl", "docker")
    assert error.message == "kind could not make it: it was terminated by signal 9."


def test_of_a_kind_that_does_not_end_the_steps_tell_where_it_stood() -> None:
    said = "Creating cluster ...\n \x1b[32m✓\x1b[0m Ensuring node image (x) 🖼\n • Preparing nodes 📦  ...\n"
    argv, outcome = ("/x/bin/kind", "create", "cluster"), "did not exit within 9 s and was stopped"
    error = late(ProgramFailed("long", argv=argv, outcome=outcome, code=-15, stderr=said))
    assert (error.message, error.tried) == (f"kind {outcome}.", "kind create cluster")
    assert error.last_words == ("Creating cluster ...", "✓ Ensuring node image (x) 🖼", "• Preparing nodes 📦 ...")
    assert "\x1b" not in error.output


def test_its_steps_become_ours() -> None:
    told = [step for line in said("made").splitlines() if (step := progress(line))]
    assert told == [
        "node image example/node:v1.36.3",
        "creating the nodes",
        "writing the configuration",
        "starting the control plane",
        "installing the network",
        "installing the storage class",
        "waiting until the control plane is Ready",
    ]


# As the provider meets them.


@pytest.mark.parametrize(
    "row", [row for row in ROWS if not row.said.endswith(("load", "logs"))], ids=lambda row: row.said
)
def test_f58_a_create_that_fails_raises_it_and_leaves_nothing(row: Row, there: Programs) -> None:
    there.kind_says(row.said)
    if row.error is Refused:
        (there.home / "create.makes").unlink()
    entry, kind = there.entry(), there.kind()
    config = there.home / "kind.yaml"
    config.write_text("nodes: []")
    with pytest.raises(row.error) as caught:
        asyncio.run(kind.create(entry, ClusterSpec(config=config), lambda line: None))
    assert row.message.replace("'kind.yaml'", repr(str(config))) == caught.value.message
    assert there.nodes() == []


def test_f58_a_wait_that_ran_out_is_a_timeout_although_kind_ends_well(there: Programs) -> None:
    there.kind_says("waited-in-vain", 0)
    there.says(
        "kubectl.nodes",
        '{"items": [{"metadata": {"name": "ctrl-control-plane"}, "status": {"conditions": [{"type": "Ready",'
        ' "status": "False", "message": "container runtime network not ready"}]}},'
        ' {"metadata": {"name": "ctrl-worker"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}',
    )
    with pytest.raises(TimedOut) as caught:
        asyncio.run(there.kind().create(there.entry(), ClusterSpec(wait=1), lambda line: None))
    error = caught.value
    assert error.message == (
        "Cluster 'ctrl' was not Ready after 1 s: ctrl-control-plane (container runtime network not ready)."
    )
    assert (error.exit_code, error.tried) == (124, "kind create cluster --name ctrl --wait 1s")
    assert error.next_step == "use a longer --wait, or --keep-on-failure to inspect it"
    assert there.nodes() == []
