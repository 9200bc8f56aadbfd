from __future__ import annotations

import json

import pytest
import yaml

from kubectl_ctrl.model.record import Story
from kubectl_ctrl.render.trace.formats import export
from kubectl_ctrl.value import replace
from tests.render.stories import hostile, story


@pytest.mark.parametrize(
    "shown", [story(60), story(60, objects=3), hostile(), replace(story(3), attempts=(), tree=None)]
)
def test_it_is_the_json_document(shown: Story) -> None:
    text = "".join(export("yaml", shown))
    assert yaml.safe_load(text) == json.loads("".join(export("json", shown)))
    assert text.isascii()


def test_half_a_character_becomes_the_sign_for_one() -> None:
    shown = story(1)
    attempt = replace(shown.attempts[0], skipped=("a\ud800b",))
    document = yaml.safe_load("".join(export("yaml", replace(shown, attempts=(attempt,)))))
    assert document["attempts"][0]["skipped"] == ["a\ufffdb"]
