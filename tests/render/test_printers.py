"""Lists as `kubectl get -o` prints them; e2e/test_printers.py asks real kubectl for the same."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

import pytest

from kubectl_ctrl.cli.parsing.flags import LISTED
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.render.printers import TEMPLATES, Printer, printer

WORDS = ("", "wide", "name", "json", "yaml")

ITEMS: list[dict[str, Any]] = [
    {
        "metadata": {"name": "web", "labels": {"app": "web", "b": "2"}},
        "spec": {"size": 3, "paused": False, "ratio": 1.5, "room": "900m", "text": "a <b> & c"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}]},
    },
    {
        "metadata": {"name": "a-longer-name", "labels": {"app": "db"}},
        "spec": {"size": 1, "paused": True, "room": "1", "text": "two\nlines", "list": [1, "x", True]},
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    },
    {"metadata": {"name": "c"}, "spec": {"size": 10, "room": "1Ki", "text": "ä"}},
]
DOCUMENT = {"items": ITEMS}

# What is asked, and what kubectl 1.36.3 prints for it.
SAID: tuple[tuple[str, str], ...] = (
    ("jsonpath={.items[*].metadata.name}", "web a-longer-name c"),
    ('jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}', "web\na-longer-name\nc\n"),
    ('jsonpath={range .items[*]}{.metadata.name}{"\\t"}{.spec.size}{"\\n"}{end}', "web\t3\na-longer-name\t1\nc\t10\n"),
    ('jsonpath={.items[?(@.metadata.name=="web")].spec.size}', "3"),
    ("jsonpath={.items[?(@.spec.size>2)].metadata.name}", "web c"),
    ('jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}', "True False"),
    ("jsonpath={.items[-1].metadata.name}", "c"),
    ("jsonpath={.items[0:2].metadata.name}", "web a-longer-name"),
    ("jsonpath={.items[::2].metadata.name}", "web c"),
    ("jsonpath={.items[1].spec.text}", "two\nlines"),
    ("jsonpath={.items[1].spec.list}", '[1,"x",true]'),
    ("jsonpath={.items[0].metadata.labels}", '{"app":"web","b":"2"}'),
    ("jsonpath={.items[0].status.conditions}", '[{"status":"True","type":"Ready"},{"status":"False","type":"Old"}]'),
    ("jsonpath={.items[*].spec.paused}", "false true"),
    ("jsonpath={.items[0]['metadata.name', 'spec.size']}", "web 3"),
    ("jsonpath={.missing}", ""),
    ("jsonpath=names: {.items[0].metadata.name}!", "names: web!"),
    (
        "jsonpath-as-json={.items[*].metadata.name}",
        '[\n    "web",\n    "a-longer-name",\n    "c"\n]\n',
    ),
    ("jsonpath-as-json={.items[0].metadata.labels}", '[\n    {\n        "app": "web",\n        "b": "2"\n    }\n]\n'),
    ("jsonpath-as-json={.items[0].spec.text}", '[\n    "a \\u003cb\\u003e \\u0026 c"\n]\n'),
    ("jsonpath-as-json=a{.missing}", '[\n    "a"\n]\n[]\n'),
    (
        "custom-columns=NAME:.metadata.name,SIZE:.spec.size",
        "NAME            SIZE\nweb             3\na-longer-name   1\nc               10\n",
    ),
    (
        "custom-columns=N:spec.size,P:{.spec.paused},R:{spec.ratio}",
        "N     P        R\n3     false    1.5\n1     true     <none>\n10    <none>   <none>\n",
    ),
    (
        "custom-columns=L:.metadata.labels,X:.spec.list",
        "L                  X\nmap[app:web b:2]   <none>\nmap[app:db]        [1 x true]\n<none>             <none>\n",
    ),
    (
        "custom-columns=T:.status.conditions[*].type,R:.status.conditions[?(@.type=='Ready')].status",
        "T           R\nReady,Old   True\nReady       False\n<none>      <none>\n",
    ),
    (
        "custom-columns=NAME:.metadata.name,EMPTY:",
        "NAME            EMPTY\nweb             <none>\na-longer-name   <none>\nc               <none>\n",
    ),
)

# Which kubectl refuses as well.
REFUSED = (
    "jsonpath",
    "jsonpath=",
    "jsonpath={.items[}",
    "jsonpath-as-json=",
    "jsonpath-file=/no/such/file",
    "custom-columns",
    "custom-columns=",
    "custom-columns=NAME",
    "custom-columns=NAME:.a,B",
    "custom-columns=NAME:{.a}{.b}",
    "custom-columns-file=/no/such/file",
    "nonsense",
    "json=x",
    "wide=x",
    "name=",
)


def no_file(name: str) -> str:
    raise UsageError(f"no {name}")


def made(output: str, **more: Any) -> Printer:
    return printer(output, WORDS, read=no_file, **more)


def said(form: Printer) -> str:
    items = form.ordered(ITEMS, lambda item: item)
    return form.text({"items": items}, items, [f"thing/{item['metadata']['name']}" for item in items])


@pytest.mark.parametrize(("output", "text"), SAID)
def test_it_is_what_kubectl_prints(output: str, text: str) -> None:
    assert said(made(output)) == text


@pytest.mark.parametrize("output", REFUSED)
def test_what_kubectl_refuses_is_a_usage_error(output: str) -> None:
    with pytest.raises(UsageError):
        made(output)


def test_documents_and_names() -> None:
    assert json.loads(said(made("json"))) == json.loads(said(made("JSON"))) == DOCUMENT
    assert said(made("yaml")).startswith("items:\n- metadata:\n    name: web\n")
    assert said(made("name")) == "thing/web\nthing/a-longer-name\nthing/c\n"


class State(StrEnum):
    ON = "on"


@pytest.mark.parametrize("output", ["json", "yaml", "jsonpath={.items}", "custom-columns=S:.state"])
def test_members_of_an_enumeration_are_strings(output: str) -> None:
    items: list[dict[str, Any]] = [{"state": State.ON}]
    text = made(output).text({"items": items}, items, ["a"])
    assert "on" in text
    assert "State" not in text


# The path, and the names in kubectl's order.
SORTED = (
    (".spec.size", ["a-longer-name", "web", "c"]),
    ("{.metadata.name}", ["a-longer-name", "c", "web"]),
    ("spec.room", ["web", "a-longer-name", "c"]),
    (".metadata.labels.app", ["c", "a-longer-name", "web"]),
    (".status.conditions[0].status", ["c", "a-longer-name", "web"]),
)


@pytest.mark.parametrize(("path", "names"), SORTED)
def test_sorting(path: str, names: list[str]) -> None:
    form = made("name", sort_by=path)
    assert [item["metadata"]["name"] for item in form.ordered(ITEMS, lambda item: item)] == names


def test_a_string_that_only_begins_like_a_quantity_is_sorted_as_text() -> None:
    words = ["9e999999", "10", "9", "1e2", "1Ki", "-", "1x"]
    form = made("name", sort_by=".a")
    assert form.ordered(words, lambda word: {"a": word})[:2] == ["-", "9"]
    assert form.ordered(["1e2", "9", "1Ki", "10"], lambda word: {"a": word}) == ["9", "10", "1e2", "1Ki"]


def test_equal_rows_keep_their_order() -> None:
    assert said(made("name", sort_by=".spec.ratio")) == "thing/a-longer-name\nthing/c\nthing/web\n"


@pytest.mark.parametrize("path", [".nowhere", "{.a}{.b}", ".spec.paused", ".metadata.labels"])
def test_an_unsortable_field_is_a_usage_error(path: str) -> None:
    with pytest.raises(UsageError) as caught:
        said(made("name", sort_by=path))
    assert caught.value.next_step


def test_files_are_read_and_headers_left_out() -> None:
    files = {"t": "{.items[0].metadata.name}\n", "c": "NAME SIZE\n.metadata.name {spec.size}\n", "bad": "A B\n.a\n"}
    assert said(printer("jsonpath-file=t", WORDS, read=files.__getitem__)) == "web\n"
    columns = printer("custom-columns-file=c", WORDS, read=files.__getitem__, headers=False)
    assert said(columns) == "web             3\na-longer-name   1\nc               10\n"
    with pytest.raises(UsageError, match="a line of paths, here 2 and 1"):
        printer("custom-columns-file=bad", WORDS, read=files.__getitem__)


def test_templates_of_go_are_refused_in_one_sentence() -> None:
    for form in ("go-template={{.}}", "go-template-file=x", "template=x"):
        with pytest.raises(UsageError, match="is not supported: only programs written in Go") as caught:
            made(form)
        assert "jsonpath" in caught.value.next_step


EVIL = "x\x1b]0;owned\x07\r\u202e\x9b31m\ud83d"


@pytest.mark.parametrize(
    "output",
    [
        "name",
        "json",
        "yaml",
        "jsonpath={.items[*].name}",
        "jsonpath={.items}",
        "jsonpath-as-json={.items}",
        "custom-columns=A:.name,B:.more",
    ],
)
def test_text_of_a_cluster_cannot_control_the_terminal(output: str) -> None:
    items = [{"name": EVIL, "more": {EVIL: [EVIL]}}]
    text = made(output).text({"items": items}, items, [EVIL])
    assert text.replace("\n", "").isprintable()
    if "json" in output and "jsonpath=" not in output:
        json.loads(text)


def test_completion_offers_every_format() -> None:
    output = next(flag for flag in LISTED if flag.long == "output")
    assert output.choices == (*filter(None, WORDS), *(f"{one}=" for one in TEMPLATES))
