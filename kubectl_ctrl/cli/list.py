"""`kubectl ctrl list`: the bundled controllers."""

from __future__ import annotations

import json
from typing import Any

import yaml

from kubectl_ctrl.cli import bundled
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.command import Given, Verb
from kubectl_ctrl.cli.grammar import Flag
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.render.text import table
from kubectl_ctrl.runtime.builder import Via


def _rows() -> list[dict[str, Any]]:
    return [_row(name) for name in BUNDLED]


def _row(name: str) -> dict[str, Any]:
    spec = bundled.load(name)
    owned = list(dict.fromkeys(str(source.resource) for source in spec.sources if source.via is Via.OWNER))
    return {
        "name": name,
        "for": str(spec.primary),
        "owns": owned,
        "watches": [str(one) for one in spec.resources if one != spec.primary and str(one) not in owned],
        "summary": bundled.summary(name),
    }


def _list(app: App, given: Given) -> int:
    if given.arguments:
        raise UsageError("list takes no arguments.", next_step=VERB.hint)
    rows = _rows()
    match given["output"]:
        case "" | "wide" as form:
            wide = form == "wide"
            header = ["NAME", "FOR", "OWNS", "WATCHES", *(["SUMMARY"] if wide else [])]
            cells = [
                [row["name"], row["for"], ",".join(row["owns"]) or "-", ",".join(row["watches"]) or "-"]
                + ([row["summary"]] if wide else [])
                for row in rows
            ]
            app.answer(table(cells, header=header))
        case "name":
            app.answer("\n".join(row["name"] for row in rows))
        case "json":
            app.answer(json.dumps({"controllers": rows}, indent=2))
        case "yaml":
            app.answer(yaml.safe_dump({"controllers": rows}, sort_keys=False).rstrip("\n"))
        case other:
            raise UsageError(f"Invalid value for --output: {other!r}.", next_step="use wide, name, json or yaml")
    return 0


VERB = Verb(
    name="list",
    usage="list [-o wide|name|json|yaml]",
    summary="List the bundled controllers and what each watches and owns.",
    examples=(
        ("List the controllers", "list"),
        ("With a line on what each is for", "list -o wide"),
        ("Their names alone, for a script", "list -o name"),
    ),
    flags=(
        Flag("-o", "--output", value="FORMAT", default="", help="wide, name, json or yaml; a table when not given."),
    ),
    body=_list,
    cluster=False,
)
