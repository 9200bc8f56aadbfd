"""What kwokctl and its servers complain of, as errors; `kwoksaid` is what the real ones print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubectl_ctrl.clusters.kwok import kwokctl
from kubectl_ctrl.errors import ClusterError, CtrlError, ProgramFailed, TimedOut

SAID = Path(__file__).parent / "kwoksaid"


@pytest.mark.parametrize(
    ("part", "message", "kind"),
    [
        ("etcd-port", "etcd of cluster 'one' exited: another program uses 127.0.0.1:20111.", kwokctl.PortTaken),
        (
            "etcd-files",
            "etcd of cluster 'one' exited: file descriptor limit of etcd process is too low; please set higher.",
            ClusterError,
        ),
        ("etcd-full", "etcd of cluster 'one' exited: the disk is full.", ClusterError),
        (
            "kube-apiserver-port",
            "kube-apiserver of cluster 'one' exited: another program uses 127.0.0.1:20111.",
            kwokctl.PortTaken,
        ),
        (
            "kube-apiserver-flag",
            "kube-apiserver of cluster 'one' exited: unknown flag: --nonsense.",
            ClusterError,
        ),
    ],
)
def test_f58_the_log_of_a_server_that_ended_says_why(part: str, message: str, kind: type[CtrlError]) -> None:
    name = part.rpartition("-")[0]
    error = kwokctl.exited(name, "one", (SAID / f"{part}.log").read_text())
    assert (type(error), error.message) == (kind, message)
    assert len(error.output.splitlines()) <= 40


def test_the_log_of_a_server_that_gives_no_reason_is_shown_at_its_end() -> None:
    log = "".join(f"W1122 00:57:22.554452 1 x.go:1] warning {number}\n" for number in range(20))
    error = kwokctl.exited("kube-apiserver", "one", f"{log}I1122 00:57:23 1 x.go:2] by the way\nKilled\n")
    assert error.message == "kube-apiserver of cluster 'one' exited: Killed."
    assert len(error.last_words) == 12
    assert error.last_words[-1] == "W1122 00:57:22.554452 1 x.go:1] warning 19"


def test_of_a_kwokctl_that_ends_without_a_reason_the_end_is_shown() -> None:
    said = "goroutine 1 [running]:\nmain.main()\n\tk8s/main.go:44 +0x76\nout of \x1bmemory\nexit status 2\n"
    error = ProgramFailed("long", argv=("kwokctl",), outcome="exited with code 2", code=2, stderr=said)
    found = kwokctl.failed(error, "one")
    assert isinstance(found, ClusterError)
    assert found.message == "kwokctl failed for cluster 'one': exit status 2."
    assert found.last_words == ("goroutine 1 [running]:", "out of \\x1bmemory")


def test_the_message_of_a_long_complaint_of_kwokctl_is_short_and_its_lines_follow() -> None:
    lines = ["cmd start: etcd --data-dir " + "x" * 300, "exit status 1", "goodbye"]
    said = json.dumps({"level": "ERROR", "msg": "Failed to start", "err": "\n".join(lines)})
    error = ProgramFailed("long", argv=("kwokctl",), outcome="exited with code 1", code=1, stderr=said)
    found = kwokctl.failed(error, "one")
    assert isinstance(found, ClusterError)
    assert found.message == "kwokctl failed for cluster 'one': " + lines[0][:197] + "..."
    assert found.last_words == tuple(lines)


def test_a_server_that_said_nothing_is_told_so() -> None:
    assert kwokctl.exited("etcd", "one", "").message == "etcd of cluster 'one' exited: its log is empty."


def test_a_server_whose_last_words_are_json_is_told_without_it() -> None:
    log = '{"level":"ERROR","msg":"Failed to list nodes","err":"connection refused"}\n' * 2
    error = kwokctl.exited("kwok", "one", f"{log}Killed\n")
    assert error.last_words == ("Failed to list nodes: connection refused",) * 2
    error = kwokctl.exited("kwok", "one", log)
    assert error.message == "kwok of cluster 'one' exited: Failed to list nodes: connection refused."
    assert error.last_words == ()


def test_f58_a_full_disk_takes_no_last_words() -> None:
    error = kwokctl.exited("etcd", "one", '{"level":"info","msg":"Opening db file (/sn', full=True)
    assert error.message == "etcd of cluster 'one' exited: the disk is full."


def test_time_that_runs_out_is_no_failure_of_kwokctl() -> None:
    outcome = "did not exit within 5 s and was stopped"
    said = (SAID / "no-network").read_text()
    found = kwokctl.failed(ProgramFailed("long", argv=("kwokctl",), outcome=outcome, code=-15, stderr=said), "one")
    assert isinstance(found, TimedOut)
    assert found.message == f"The control plane of cluster 'one' does not work: kwokctl {outcome}."
    assert found.output == said
    assert found.last_words[0] == (
        "Retry after 1s: proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused"
    )
