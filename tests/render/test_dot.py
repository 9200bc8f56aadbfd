from __future__ import annotations

import re
import subprocess

import pytest

from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.record import Story
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.render.trace.dot import quoted
from kubectl_ctrl.render.trace.formats import export
from kubectl_ctrl.value import replace
from tests.render.samples import NOON
from tests.render.stories import hostile, story, triggered

# As far as these documents go: a string, a name, a number, or a mark.
TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<name>[A-Za-z_]\w*)|(?P<number>\d+)|(?P<mark>->|[{}\[\]=,]))'
)
STORIES = [story(3), story(60), hostile(), replace(story(1), attempts=())]


def tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text.rstrip()):
        token = TOKEN.match(text, at)
        assert token, text[at : at + 80]
        found.append(token[0].strip())
        at = token.end()
    return found


@pytest.mark.parametrize("shown", STORIES)
def test_it_has_only_tokens_of_the_language(shown: Story) -> None:
    text = "".join(export("dot", shown))
    found = tokens(text)
    assert found[:3] == ["digraph", '"kubectl-ctrl"', "{"]
    depth = 0
    for place, token in enumerate(found):
        depth += token in ("{", "[")
        depth -= token in ("}", "]")
        assert depth > 0 or place < 2 or place == len(found) - 1
    assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.programs("dot")
@pytest.mark.parametrize("shown", STORIES)
def test_graphviz_reads_it(shown: Story) -> None:
    done = subprocess.run(["dot", "-Tplain"], input="".join(export("dot", shown)).encode(), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(re.findall(r"^node a\d+ ", done.stdout.decode(), re.MULTILINE)) == len(shown.attempts)


def test_a_write_leads_to_the_attempt_that_it_triggered() -> None:
    text = "".join(export("dot", story(60)))
    edges = re.findall(r"^  (\w+) -> (\w+)", text, re.MULTILINE)
    made = {target for source, target in edges if source.startswith("a") and target.startswith("c")}
    woke = {source for source, target in edges if source.startswith("c") and target.startswith("a")}
    assert made & woke
    assert any(source.startswith("a") and target.startswith("a") for source, target in edges)  # retries and timers


def test_a_later_change_follows_the_write() -> None:
    shown = story(60)
    writer = next(one for one in shown.attempts if one.writes and one.writes[0].call.new_version)
    write = writer.writes[0].call
    cause = triggered(
        CauseKind.MODIFIED, NOON, resource=DEPLOYMENTS, key=writer.request, uid=write.uid, new_version="9"
    )
    after = replace(writer, id="r7f3-99", causes=(replace(cause, old_version=write.new_version),), calls=())
    text = "".join(export("dot", replace(shown, attempts=(writer, after))))
    made, followed = re.findall(r"a1 -> (c\d+) .*patch|(?<=  )(c\d+) -> a2", text)
    assert f'{made[0]} -> {followed[1]} [label="then", style=dotted]' in text


def test_labels_are_text_and_nothing_else() -> None:
    assert quoted('a"b\\N', "&lt;") == '"a\\"b\\\\N\\n&amp;lt;"'
