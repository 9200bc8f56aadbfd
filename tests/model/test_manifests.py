from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.manifests import parse, text

_HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n"


def _objects(text: str) -> list[Any]:
    return [manifest.obj for manifest in parse(text.encode(), "all.yaml")]


def _refused(raw: bytes) -> str:
    with pytest.raises(ControllerError) as caught:
        parse(raw, "all.yaml")
    return caught.value.message


def test_documents_and_the_items_of_lists_are_objects_and_know_their_lines() -> None:
    one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"
    listed = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: two}}\n"
    found = parse(f"# nothing\n---\n{one}---\n---\n{listed}".encode(), "all.yaml")
    assert [(manifest.obj["metadata"]["name"], manifest.where) for manifest in found] == [
        ("one", "all.yaml:3"),
        ("two", "all.yaml:8"),
    ]


def test_json_is_taken_with_its_tabs() -> None:
    assert _objects('{\n\t"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}')[0]["kind"] == "Pod"


def test_values_mean_what_they_mean_to_kubectl() -> None:
    (obj,) = _objects(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
        "data: {day: 2026-01-01, time: 12:30, octal: 0o7, yes: no, 1: 2, scale: 1e3}\n"
    )
    assert obj["data"] == {
        "day": "2026-01-01",
        "time": "12:30",
        "octal": "0o7",
        "yes": False,
        "1": 2,
        "scale": "1e3",
    }


def test_a_merge_key_and_a_small_alias_are_taken() -> None:
    (obj,) = _objects("apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: a}\ndata: {<<: *m, other: b}\nagain: *m\n")
    assert obj["data"] == {"name": "a", "other": "b"}
    assert obj["again"] == {"name": "a"}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("{<<: *m, name: b}", {"name": "b"}),
        ("{name: b, <<: *m}", {"name": "a"}),
        ("{name: b, other: c, <<: [*m, {name: d, other: e}]}", {"name": "a", "other": "e"}),
    ],
)
def test_the_later_counts_of_a_key_and_what_a_merge_brings(data: str, expected: dict[str, str]) -> None:
    """As for kubectl, with which e2e/test_kubeconfig_parity.py compares it."""
    (obj,) = _objects(f"apiVersion: v1\nkind: ConfigMap\nmetadata: &m {{name: a}}\ndata: {data}\n")
    assert obj["data"] == expected


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"a: [\n", "all.yaml:2:1: Document 1 is not YAML: "),
        (b"a:\n\tb: 1\n", "all.yaml:2:1: Document 1 is not YAML: found character"),
        (_HEAD + b"---\na: b: c\n", "all.yaml:6:5: Document 2 is not YAML: mapping values are not allowed"),
        (_HEAD + b"kind: Other\n", "all.yaml:5: Document 1 has the key 'kind' twice; first in line 2."),
        (b'{"a": 1,\n "a": 2}', "all.yaml:2: Document 1 has the key 'a' twice; first in line 1."),
        (b"[a]: 1\n", "all.yaml:1: Document 1 has a key that is not text."),
        (_HEAD + b"x: \xff\n", "all.yaml:5: The text is not UTF-8."),
        (_HEAD + b"x: \0\n", "all.yaml:5: There is a NUL character."),
        (b"x: &x [*x]\n", "all.yaml:1: Document 1 holds itself through an alias."),
    ],
)
def test_m08_text_that_is_no_manifest_is_refused_with_its_place(raw: bytes, told: str) -> None:
    assert _refused(raw).startswith(told)


def test_m08_a_byte_order_mark_is_passed_over() -> None:
    assert len(parse(b"\xef\xbb\xbf" + _HEAD, "all.yaml")) == 1


def test_m08_an_alias_bomb_is_refused_before_it_grows() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert "grows beyond 1,000,000 values through aliases" in _refused(_HEAD + b"l0: &l0 [lol]\n" + levels.encode())


def test_m08_a_file_beyond_every_measure_is_refused() -> None:
    assert "too large to be a manifest" in _refused(b"#" * (17 << 20))


def test_m08_deep_nesting_is_refused() -> None:
    assert "nested too deeply" in _refused(_HEAD + b"x: " + b"[" * 5000 + b"]" * 5000)


@pytest.mark.parametrize("raw", [b"", b"\n", b"# a comment\n---\n---\n", b"{}\n---\nnull"])
def test_m09_a_file_without_objects_is_refused(raw: bytes) -> None:
    assert _refused(raw) in (
        "all.yaml: There is no object in this file.",
        "all.yaml:1: The object has no apiVersion.",
    )


def test_m09_a_list_at_the_top_and_a_bad_part_among_good_ones_are_named_by_their_line() -> None:
    assert _refused(b"- a\n") == "all.yaml:1: There is a list where an object must be."
    assert _refused(_HEAD + b"---\njust text\n") == ("all.yaml:6: There is str 'just text' where an object must be.")


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"kind: Pod\nmetadata: {name: a}\n", "The object has no apiVersion."),
        (b"apiVersion: v1\nmetadata: {name: a}\n", "The object has no kind."),
        (b"apiVersion: v1\nkind: Pod\n", "The Pod has no metadata.name."),
        (b"apiVersion: v1\nkind: Pod\nmetadata: {generateName: a}\n", "The Pod has no metadata.name."),
        (b"apiVersion: v1\nkind: Pod\nmetadata: {name: 7}\n", "The Pod has no metadata.name."),
    ],
)
def test_m10_an_object_without_what_every_object_has_is_refused(raw: bytes, told: str) -> None:
    assert _refused(b"\n" + raw) == f"all.yaml:2: {told}"


@pytest.mark.parametrize(
    "number", ["1.0e400", "-1.0e400", "9223372036854775808", "-9223372036854775809", '{"deep": [1e400]}', '{"n": NaN}']
)
@pytest.mark.parametrize("head", ['{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": ', "spec: "])
def test_m25_a_number_that_an_api_server_cannot_hold_is_refused(number: str, head: str) -> None:
    if head == "spec: ":
        number = number.replace("1e400", "1.0e400").replace('{"n": NaN}', "1.0e999")  # to YAML the others are text
    raw = head + number + "}" if head.startswith("{") else _HEAD.decode() + head + number
    told = _refused(raw.encode())
    assert told.startswith("all.yaml:1: spec")
    assert "must be finite, and whole numbers within 64 bits" in told


def test_m25_the_largest_numbers_and_a_negative_zero_are_taken() -> None:
    (obj,) = _objects(_HEAD.decode() + "spec: [9223372036854775807, -9223372036854775808, -0.0, 1.5]\n")
    assert repr(obj["spec"]) == "[9223372036854775807, -9223372036854775808, -0.0, 1.5]"


def test_what_is_written_reads_back_as_it_was() -> None:
    shared = {"a": 1}
    values = {
        "text": ["1e3", "0o7", "12:30", "2026-01-01", "y", "no", "", " a ", "ä\n", "1"],
        "one": shared,
        "two": shared,
    }
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": values}
    written = text([obj, obj])
    assert [manifest.obj for manifest in parse(written.encode(), "all.yaml")] == [obj, obj]
    assert "&" not in written
    for quoted in ("'1e3'", "'0o7'", "'y'", "'12:30'"):
        assert quoted in written
