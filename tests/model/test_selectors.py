"""Label selectors: what matches, how they read, and where they are wrong."""

from __future__ import annotations

from contextlib import suppress

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.selectors import Requirement, Selector, from_label_selector

WEB = {"app": "web", "tier": "front", "replicas": "3", "empty": "", "example.com/owner": "me"}

keys = st.from_regex(r"([a-z0-9]{1,8}\.[a-z]{1,3}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,5}[A-Za-z0-9])?", fullmatch=True)
values = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,5}[A-Za-z0-9])?)?", fullmatch=True)
several = st.lists(values, min_size=1, max_size=4).map(lambda found: tuple(sorted(set(found))))
requirements = st.one_of(
    st.builds(Requirement, key=keys, operator=st.sampled_from(["in", "notin"]), values=several),
    st.builds(Requirement, key=keys, operator=st.sampled_from(["exists", "!"])),
    st.builds(
        Requirement, key=keys, operator=st.sampled_from([">", "<"]), values=st.integers(0, 99).map(lambda n: (str(n),))
    ),
)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier=front", True),
        ("app=web,tier=back", False),
        ("app!=web", False),
        ("missing!=web", True),
        ("missing", False),
        ("!missing", True),
        ("! app", False),
        ("app in (api, web)", True),
        ("app in(api)", False),
        ("app notin (api,db)", True),
        ("app notin (web)", False),
        ("missing notin (web)", True),
        ("missing in (web)", False),
        ("empty=", True),
        ("app=", False),
        ("empty in (,x)", True),
        ("replicas>2", True),
        ("replicas > 3", False),
        ("replicas<4", True),
        ("app>2", False),
        ("missing<2", False),
        ("example.com/owner=me", True),
    ],
)
def test_what_matches(text: str, matches: bool) -> None:
    assert Selector.parse(text).matches(WEB) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("app web", r"wrong at character 5: an operator \(=, !=, in, notin, <, >\) is expected after 'app'"),
        ("app in x", r"at character 8: '\(' is expected"),
        ("app in (x", r"at character 10: '\)' is expected"),
        ("app in (x y)", r"at character 11: '\)' is expected"),
        ("=web", "at character 1: a label key is expected"),
        ("app=web=x", "at character 8: ',' is expected"),
        ("a,app in ()", "at character 3: 'in' needs at least one value"),
        ("a,,b", "at character 3: a label key is expected"),
        ("a,", "at character 3: a label key is expected"),
        ("!", "at character 2: a label key is expected"),
        ("app=-x", "at character 1: '-x' is not a label value"),
        ("appé=x", "'appé' is not a label key"),
        ("a/b/c=x", "'a/b/c' is not a label key"),
        ("/c=x", "'/c' is not a label key"),
        ("A.com/c=x", "'A.com/c' is not a label key"),
        ("app>two", "'two' is not a whole number"),
        ("app=" + "x" * 64, "is not a label value"),
        ("x" * 64, "is not a label key"),
        ("x" * 254 + "/a", "is not a label key"),
    ],
)
def test_a_mistake_is_placed(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Selector.parse(text)


@given(st.lists(requirements, max_size=4))
def test_text_and_selector_say_the_same(found: list[Requirement]) -> None:
    text = ",".join(map(str, found))
    selector = Selector.parse(text)
    assert frozenset(selector.requirements) == frozenset(found)
    assert Selector.parse(str(selector)) == selector


@given(st.text(max_size=20))
def test_any_text_is_a_selector_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        assert Selector.parse(str(Selector.parse(text))) == Selector.parse(text)


def test_selectors_that_say_the_same_are_equal() -> None:
    assert Selector.parse("b=1, a in (y,x,y)") == Selector.parse("a in (x,y),b==1")
    assert repr(Selector.parse("b,a")) == "Selector.parse('a,b')"


EXPRESSIONS: Obj = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["front", "back"]},
        {"key": "env", "operator": "NotIn", "values": ["prod"]},
        {"key": "replicas", "operator": "Exists"},
        {"key": "legacy", "operator": "DoesNotExist", "values": []},
    ],
}


def test_label_selector_objects_mean_what_the_api_says() -> None:
    selector = from_label_selector(EXPRESSIONS)
    assert str(selector) == "app=web,env!=prod,!legacy,replicas,tier in (back,front)"
    assert selector.matches(WEB)
    assert not selector.matches(WEB | {"legacy": ""})


def test_a_missing_label_selector_is_nothing_and_an_empty_one_everything() -> None:
    assert from_label_selector({}).matches({})
    nothing = from_label_selector(None)
    assert not nothing.matches({})
    assert repr(nothing) == "Selector(nothing=True)"
    with pytest.raises(UsageError, match="cannot be written"):
        str(nothing)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["x"]}]},
        {"matchExpressions": [{"key": "a"}]},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
        {"matchExpressions": [{"operator": "Exists"}]},
        {"matchLabels": {"a b": "x"}},
    ],
)
def test_label_selector_objects_that_mean_nothing_are_refused(selector: Obj) -> None:
    with pytest.raises(UsageError):
        from_label_selector(selector)
