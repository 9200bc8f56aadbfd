from __future__ import annotations

from kubectl_ctrl.errors import CallSite, CtrlError, PrerequisiteMissing, Refused, Unreachable
from kubectl_ctrl.render.errors import error_lines


def test_an_error_is_what_failed_what_was_tried_and_what_to_do() -> None:
    error = Refused("This is not a local cluster.", tried="context 'prod-eu'", next_step="name it")
    assert error_lines(error) == (
        "error[CTRL-REFUSED]: This is not a local cluster.\ntried: context 'prod-eu'\nnext: name it"
    )


def test_of_several_things_that_were_tried_each_has_a_line() -> None:
    error = PrerequisiteMissing("None works.", tried="one; two\nmore", next_step="get one")
    error.each = ("one", "two\nmore")
    assert error_lines(error).splitlines() == [
        "error[CTRL-PREREQUISITE]: None works.",
        "tried: one",
        "       two\\x0amore",
        "next: get one",
    ]


def test_lines_with_nothing_to_say_are_left_out() -> None:
    assert error_lines(CtrlError("It failed.")) == "error[CTRL-ERROR]: It failed."
    site = CallSite("get", "namespaces kube-system")
    assert error_lines(Unreachable("No answer.", site=site, next_step="look")) == (
        "error[CTRL-UNREACHABLE]: No answer.\nnext: look"
    )


def test_a_server_cannot_add_lines_of_its_own() -> None:
    error = CtrlError("It said\nnext: run this\x1b[31m.", tried="a\rb", next_step="c\nd")
    assert error_lines(error).splitlines() == [
        "error[CTRL-ERROR]: It said\\x0anext: run this\\x1b[31m.",
        "tried: a\\x0db",
        "next: c\\x0ad",
    ]
