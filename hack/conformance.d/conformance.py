"""Kubernetes' own end-to-end specs of sig-api-machinery, on sandboxes.

usage: conformance.py PROGRAM [--others] [WORD...]

Runs the specs that passing.txt lists; fails if one of them does not pass. WORD: only specs whose names contain one.
--others runs those that are not listed instead, and prints the names of those that pass: add them to the list.
PROGRAM has the specs; `hack/realkube conformance` builds it.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PASSING = HERE / "passing.txt"
SANDBOX = (str(HERE.parent.parent / "bin/kubectl-ctrl"), "sandbox", "--nodes", "2", "--")
SIG = "[sig-api-machinery] "
# Not even tried: they are slow, break the cluster, or need a program that runs in a pod.
NEVER = r"\[(Slow|Disruptive)\]|\[Feature(Gate)?:|[Ww]ebhook|Aggregat(or|ed APIServer)|sample-apiserver|FieldSelectors"
SIDE_BY_SIDE = 6  # processes, each with its own sandbox: specs mostly wait
TIMEOUT = "15m"


@dataclass(frozen=True, slots=True)
class Result:
    """One spec that ran; `failure` is empty if it passed."""

    name: str
    failure: str


def listed() -> list[str]:
    return [line for line in PASSING.read_text().splitlines() if line and not line.startswith("#")]


def expression(names: Sequence[str]) -> str:
    """The regular expression of Go for exactly these specs."""
    return f"{re.escape(SIG)}({'|'.join(map(re.escape, names))})$"


def results(report: Sequence[Mapping[str, Any]]) -> list[Result]:
    """The specs that ran, out of a JSON report of Ginkgo; also what failed before or after all of them."""
    specs = [spec for suite in report for spec in suite["SpecReports"] or ()]
    found = []
    for spec in specs:
        passed = spec["State"] == "passed"
        if spec["State"] in ("skipped", "pending") or (passed and spec["LeafNodeType"] != "It"):
            continue
        words = (*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"] or spec["LeafNodeType"])
        failure = spec.get("Failure") or {}
        place = failure.get("Location") or {}
        why = f"{failure.get('Message')} ({Path(place.get('FileName', '')).name}:{place.get('LineNumber')})"
        found.append(Result(" ".join(words).removeprefix(SIG), "" if passed else why))
    return found


def ran(program: str, selections: Sequence[Mapping[str, str]]) -> list[Result]:
    """The results of all selections (`focus` and `skip`), which run at the same time on a sandbox each."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        started = []
        for number, selection in enumerate(selections):
            report, log = Path(folder, f"{number}.json"), Path(folder, f"{number}.log")
            options = {"timeout": TIMEOUT, "json-report": str(report), **selection}
            words = ["-num-nodes=2", "-dump-logs-on-failure=false", "-ginkgo.no-color"]
            command = [*SANDBOX, program, *words, *(f"-ginkgo.{name}={value}" for name, value in options.items())]
            out = stack.enter_context(log.open("wb"))
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            started.append((process, report, log))
        found = []
        for process, report, log in started:
            code = process.wait()
            if not report.exists():
                tail = log.read_text(errors="replace").splitlines()[-20:]
                found.append(
                    Result(Path(program).name, "\n".join([*tail, f"exited with code {code}, without a report"]))
                )
                continue
            found += results(json.loads(report.read_bytes()))
        return found


def main(arguments: Sequence[str]) -> int:
    if not arguments or {"-h", "--help"} & {*arguments}:
        print(__doc__)
        return 0 if arguments else 2
    began, (program, *words) = time.monotonic(), arguments
    others = "--others" in words
    words = [word for word in words if word != "--others"]
    names = [name for name in listed() if not words or any(word in name for word in words)]
    if others:
        focus = f"{re.escape(SIG)}.*({'|'.join(map(re.escape, words))})"
        selections = [{"focus": focus, "skip": f"{NEVER}|{expression(listed())}"}]
    else:
        parts = [names[number::SIDE_BY_SIDE] for number in range(SIDE_BY_SIDE)]
        selections = [{"focus": expression(part)} for part in parts if part]
    if not selections:
        print(f"No spec in {PASSING.name} has {' or '.join(words)} in its name.")
        return 2
    found = ran(program, selections)
    if not others:
        missing = sorted({*names} - {one.name for one in found})
        found += [Result(name, "There is no such spec, or it did not run.") for name in missing]
    passed, failed = [one for one in found if not one.failure], [one for one in found if one.failure]
    for one in failed:
        print(f"\nFAILED {one.name}\n{one.failure}")
    if others:
        print("\npassed, not in passing.txt:", *sorted(one.name for one in passed), sep="\n")
    print(f"\n{len(failed)} failed, {len(passed)} passed in {time.monotonic() - began:.1f}s")
    return int(bool(failed) and not others)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
