"""`run --reload` against a real API server: from the save of a file to the first reconcile with the new code."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from e2e.crds import install_crd
from e2e.ctrl import Ctrl, Started
from e2e.kube import Audit, Kubectl, wait_until

MINE = """\
from kubectl_ctrl import CONFIGMAPS, controller
from helpers import WORD, pause


async def reconcile(ctx, request):
    await pause()
    if request.name == "mark":
        obj = await ctx.read.get(CONFIGMAPS, request.name)
        await ctx.write.patch(obj, {"data": {"word": WORD}})


CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)
"""


def save(path: Path, text: str) -> None:
    """In one step: a read in the middle of a write would find a file that cannot be loaded, or lacks a name."""
    new = path.with_name("new")
    new.write_text(text)
    new.rename(path)


HELPERS = """\
WORD = {word!r}


async def pause():
    pass
"""
# Each reconcile touches `begun`, and lasts until `enough` exists.
SLOW = """\
import asyncio
from pathlib import Path

WORD = {word!r}


async def pause():
    Path(__file__).with_name("begun").touch()
    while not Path(__file__).with_name("enough").exists():
        await asyncio.sleep(0.05)
"""


def helpers(word: str, text: str = HELPERS) -> str:
    return text.format(word=word)


@pytest.fixture
def folder(tmp_path: Path, kubectl: Kubectl) -> Path:
    folder = tmp_path.resolve() / "code"
    folder.mkdir()
    save(folder / "mine.py", MINE)
    save(folder / "helpers.py", helpers("one"))
    kubectl("create", "configmap", "mark")
    return folder


def begun(ctrl: Ctrl, folder: Path, *flags: str) -> Started:
    started = ctrl.started("run", str(folder / "mine.py"), "--reload", *flags)
    started.line(r"Watching for changes: .*helpers.py, .*mine.py")
    return started


def word(kubectl: Kubectl) -> str:
    return str(kubectl.json("get", "configmap", "mark").get("data", {}).get("word"))


def says(kubectl: Kubectl, expected: str) -> None:
    wait_until(lambda: word(kubectl) == expected, what=f"it says {expected!r}")


def watches(audit: Audit, namespace: str) -> list[str]:
    return [one.resource for one in audit.requests(namespace=namespace) if one.verb == "watch"]


@pytest.mark.real
def test_a_save_is_followed_by_the_new_code_on_the_same_caches(
    folder: Path, ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str
) -> None:
    started = begun(ctrl, folder)
    says(kubectl, "one")
    wait_until(lambda: "configmaps" in watches(audit, namespace))  # a watch may begin after its list
    since = audit.mark()
    took = []
    for turn in range(5):
        before = len(started.out)
        saved = time.monotonic()
        save(folder / "helpers.py", helpers(f"turn {turn}"))
        wait_until(
            lambda before=before: any("code reloaded" in line for line in started.out[before:]),  # type: ignore[misc]
            every=0.01,
            what="a reconcile with the new code",
        )
        took.append(time.monotonic() - saved)
        says(kubectl, f"turn {turn}")
    print(f"\nfrom save to the first reconcile: {', '.join(f'{seconds * 1000:.0f} ms' for seconds in took)}")  # noqa: T201 - measured, and not asserted
    asked = [one.verb for one in audit.requests(since, namespace=namespace) if one.resource == "configmaps"]
    assert set(asked) == {"patch"}, "neither listed nor watched again"
    assert started.stop() == 0


def test_code_that_cannot_be_loaded_is_reported_once_and_the_old_code_stays(
    folder: Path, ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str
) -> None:
    started = begun(ctrl, folder)
    says(kubectl, "one")
    for text, told in (
        ("def f(:\n", "mine.py:1:7: It does not compile"),
        ("import no_such_module\n", "mine.py:1:1: No module named 'no_such_module'."),
        ("x = 1\n", "mine.py: There is no controller in this file."),
        (MINE.replace('"mine"', '"yours"'), "The controller is now named 'yours', but runs as 'mine'."),
    ):
        save(folder / "mine.py", text)
        line = started.line(told.replace("(", r"\("))
        assert "warning: Not reloaded, the old code is still used." in line
        kubectl("patch", "configmap", "mark", "--type=merge", '--patch={"data":{"word":"changed"}}')
        says(kubectl, "one")
    audit.assert_no_writes(seconds=1, namespace=namespace)
    assert len([line for line in started.err if "Not reloaded" in line]) == 4
    save(folder / "helpers.py", helpers("mended"))
    save(folder / "mine.py", MINE + "# mended\n")
    says(kubectl, "mended")
    assert started.stop() == 0


def test_reconciles_in_progress_finish_before_new_code_starts(
    folder: Path, ctrl: Ctrl, kubectl: Kubectl, namespace: str
) -> None:
    started = begun(ctrl, folder)
    says(kubectl, "one")
    save(folder / "helpers.py", helpers("slow", SLOW))
    wait_until((folder / "begun").exists, what="a reconcile of the slow code")
    save(folder / "helpers.py", helpers("fast"))
    started.line("The new code starts after the reconciles in progress: ")
    (folder / "enough").touch()
    says(kubectl, "fast")
    words = [line for line in started.out if " mark " in line or "/mark " in line]
    assert all("FAILED" not in line and "canceled" not in line for line in words)
    assert started.stop() == 0


def test_new_code_may_watch_other_resources(
    folder: Path, ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str
) -> None:
    started = begun(ctrl, folder)
    says(kubectl, "one")
    wait_until(lambda: "configmaps" in watches(audit, namespace))  # a watch may begin after its list
    since = audit.mark()
    text = MINE.replace("for_(CONFIGMAPS)", "for_(SECRETS)").replace("import CONFIGMAPS", "import CONFIGMAPS, SECRETS")
    text = text.replace("ctx.read.get", "ctx.read.live")
    text = text.replace("patch(obj, ", "patch(obj, resource=CONFIGMAPS, change=")
    save(folder / "mine.py", text)
    started.line("Reloaded mine")
    kubectl("create", "secret", "generic", "mark")
    save(folder / "helpers.py", helpers("by a secret"))
    says(kubectl, "by a secret")
    asked = audit.requests(since, namespace=namespace)
    assert {one.resource for one in asked if one.verb == "watch"} == {"secrets"}
    assert started.stop() == 0


def test_the_lease_is_kept(folder: Path, ctrl: Ctrl, kubectl: Kubectl, namespace: str) -> None:
    started = begun(ctrl, folder, "--leader-elect=true")
    says(kubectl, "one")

    def lease() -> tuple[str, int, str]:
        spec = kubectl.json("get", "lease", f"kubectl-ctrl-mine-{namespace}", "--namespace=default")["spec"]
        return spec["holderIdentity"], spec.get("leaseTransitions", 0), spec["acquireTime"]

    before = lease()
    save(folder / "helpers.py", helpers("two"))
    says(kubectl, "two")
    assert lease() == before
    assert started.stop() == 0


def test_a_bundled_controller_is_watched_too_in_a_checkout(ctrl: Ctrl, kubectl: Kubectl, namespace: str) -> None:
    install_crd(kubectl, "foo")
    started = ctrl.started("run", "foo", "--reload")
    assert "controllers/foo/reconciler.py" in started.line("Watching for changes: ")
    assert started.stop() == 0
