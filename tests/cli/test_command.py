from __future__ import annotations

import pytest

from kubectl_ctrl.cli import table
from kubectl_ctrl.cli.command import Given


def given(*words: str) -> Given:
    made = table.load(table.find("uninstall")).parse(words, {})
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("words", "again"),
    [
        (("foo",), "kubectl ctrl uninstall foo --yes"),
        (("foo", "--yes=false"), "kubectl ctrl uninstall foo --yes"),
        (("--context", "a b", "foo", "-n", "x"), "kubectl ctrl uninstall foo '--context=a b' --namespace=x --yes"),
        (("foo", "--clean"), "kubectl ctrl uninstall foo --clean --yes"),
        (
            ("foo", "--token", "s3cret", "--password=s3cret"),
            "kubectl ctrl uninstall foo --token=... --password=... --yes",
        ),
        (("--", "-foo"), "kubectl ctrl uninstall --yes -- -foo"),
    ],
)
def test_the_command_to_repeat_is_the_one_that_was_typed(words: tuple[str, ...], again: str) -> None:
    assert given(*words).again("uninstall", "--yes") == again
