"""Kubernetes' own end-to-end specs of sig-api-machinery, on sandboxes.

usage: conformance.py PROGRAM [--others] [WORD...]

Runs the specs that passing.txt lists; fails if one of them does not pass. WORD: only specs whose names contain one.
--others runs those that are not listed, and prints the names of those that pass: add them to the list. Most others fail
by a timeout, and every process stops after 15 minutes.
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
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PASSING = HERE / "passing.txt"
SANDBOX = (str(HERE.parent.parent / "bin/kubectl-ctrl"), "sandbox", "--nodes", "2", "--")
SIG = "[sig-api-machinery] "
# Not even tried: they are slow, break the cluster, or need a program that runs in a pod.
NEVER = r"\[(Slow|Disruptive)\]|\[Feature:|[Ww]ebhook|Aggregat(or|ed APIServer)|sample-apiserver|FieldSelectors"
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


def results(report: Path) -> list[Result]:
    """The specs that ran, out of a JSON report of Ginkgo; also what failed before or after all of them."""
    found = []
    for spec in (spec for suite in json.loads(report.read_bytes()) for spec in suite["SpecReports"] or ()):
        passed = spec["State"] == "passed"
        if spec["State"] in ("skipped", "pending") or (passed and spec["LeafNodeType"] != "It"):
            continue
        words = (*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"] or spec["LeafNodeType"])
        failure = spec.get("Failure") or {}
        place = failure.get("Location") or {}
        why = f"{failure.get('Message')} ({Path(place.get('FileName', '')).name}:{place.get('LineNumber')})"
        found.append(Result(" ".join(words).removeprefix(SIG), "" if passed else why))
    return found


def command(program: str, report: Path, **options: str) -> list[str]:
    given = {**options, "json-report": str(report), "timeout": TIMEOUT}
    words = ("-num-nodes=2", "-dump-logs-on-failure=false", "-ginkgo.no-color")
    return [program, *words, *(f"-ginkgo.{name.replace('_', '-')}={value}" for name, value in given.items())]


def unlisted(program: str, folder: Path) -> list[str]:
    """The specs that are not listed and that a sandbox could pass."""
    report = folder / "all.json"
    words = command(program, report, dry_run="true", focus=re.escape(SIG), skip=NEVER)
    subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return sorted({one.name for one in results(report)} - {*listed()})


def ran(program: str, names: Sequence[str], folder: Path) -> list[Result]:
    """The results of these specs, which several processes run at the same time."""
    found, started = [], []
    with ExitStack() as stack:
        for number in range(min(SIDE_BY_SIDE, len(names))):
            report, log = folder / f"{number}.json", folder / f"{number}.log"
            words = [*SANDBOX, *command(program, report, focus=expression(names[number::SIDE_BY_SIDE]))]
            out = stack.enter_context(log.open("wb"))
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            started.append((process, report, log))
        for process, report, log in started:
            code = process.wait()
            if report.exists():
                found += results(report)
                continue
            tail = log.read_text(errors="replace").splitlines()[-20:]
            found.append(Result(Path(program).name, "\n".join([*tail, f"exited with code {code}, without a report"])))
    missing = sorted({*names} - {one.name for one in found})
    return [*found, *(Result(name, "There is no such spec, or it did not run.") for name in missing)]


def main(arguments: Sequence[str]) -> int:
    if not arguments or {"-h", "--help"} & {*arguments}:
        print(__doc__)
        return 0 if arguments else 2
    began, (program, *words) = time.monotonic(), arguments
    others = "--others" in words
    words = [word for word in words if word != "--others"]
    with tempfile.TemporaryDirectory() as folder:
        names = unlisted(program, Path(folder)) if others else listed()
        names = [name for name in names if not words or any(word in name for word in words)]
        if not names:
            print("There is no such spec.")
            return 2
        found = ran(program, names, Path(folder))
    passed, failed = [one for one in found if not one.failure], [one for one in found if one.failure]
    for one in failed:
        print(f"\nFAILED {one.name}\n{one.failure}")
    if others:
        print(f"\npassed, not in {PASSING.name}:", *sorted(one.name for one in passed), sep="\n")
    print(f"\n{len(failed)} failed, {len(passed)} passed in {time.monotonic() - began:.1f}s")
    return int(bool(failed))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
