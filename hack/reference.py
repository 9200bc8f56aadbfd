"""The reference of the command line, generated from the verbs, flags, errors and controllers."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_ctrl.errors import CtrlError

# Exit codes without an error.
PLAIN_CODES = (
    (0, "Done, nothing to do, or a clean stop after the first Ctrl-C or SIGTERM."),
    (130, "A second Ctrl-C ended the program before its work was done."),
    (143, "A second SIGTERM ended the program before its work was done."),
)

HEAD = """\
# Reference

<!-- Written by hack/update from the program itself: change that, not this. -->
"""


def reference() -> str:
    return "\n".join([HEAD, *verbs(), *flags(), *controllers(), *exit_codes()])


def block(text: str) -> str:
    return f"```text\n{text.strip()}\n```\n"


def verbs() -> Iterator[str]:
    from kubectl_ctrl.cli.verbs import table

    yield "## Verbs\n"
    for entry in table.VERBS:
        yield f"### kubectl ctrl {entry.name}\n"
        yield block(table.load(entry).help())


def flags() -> Iterator[str]:
    from kubectl_ctrl.cli.parsing.flags import COMMON_FLAGS, KUBECTL_FLAGS
    from kubectl_ctrl.cli.parsing.verb import describe
    from kubectl_ctrl.cli.verbs.options import BY_VARIABLE

    yield "## Flags of every verb\n"
    yield block(describe(COMMON_FLAGS))
    yield "Verbs that talk to a cluster also take kubectl's own:\n"
    yield block(describe(KUBECTL_FLAGS))
    yield block(BY_VARIABLE)


def controllers() -> Iterator[str]:
    from kubectl_ctrl.loader import bundled

    yield "## Controllers\n"
    for name, _ in bundled.candidates():
        yield f"### {name}\n"
        yield f"{bundled.description(name)}\n"


def exit_codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield "[errors.md](errors.md) says of each error what causes it and what to do.\n"
    yield "| code | error | meaning |\n|---|---|---|"
    rows = [(code, "", meaning) for code, meaning in PLAIN_CODES]
    for error in tree(CtrlError):
        if "id" in vars(error):
            meaning = (error.__doc__ or "").partition("\n")[0]
            rows.append((error.exit_code, f"[`{error.id}`](errors.md#{error.id.lower()})", meaning))
    yield from (f"| {code} | {name} | {meaning} |" for code, name, meaning in sorted(rows))
    yield ""


def tree(error: type[CtrlError]) -> Iterator[type[CtrlError]]:
    """The class and its subclasses, recursively."""
    yield error
    for child in error.__subclasses__():
        yield from tree(child)
