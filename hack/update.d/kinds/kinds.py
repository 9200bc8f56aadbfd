"""Writes the data of the built-in types, kubectl_ctrl/sandbox/kinds/data/, from Kubernetes' Go module.

Run by hand with `python3 hack/update.d/kinds/kinds.py`, after `hack/realkube build` has fetched the modules. It
reads the module's recorded discovery and OpenAPI v3 documents, and runs structs.go for the JSON form of Go's structs.
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DATA = ROOT / "kubectl_ctrl" / "sandbox" / "kinds" / "data"
GRAPH = ROOT / "hack" / "realkube.d" / "k8s"
STABLE = re.compile(r"v\d+")  # beta and alpha versions are off by default
PREFIX = "#/components/schemas/"
LISTED = 4  # a component of more kinds belongs to every group, such as DeleteOptions

Json = dict[str, Any]


def go(*arguments: str) -> str:
    command = ["go", *arguments]
    result = subprocess.run(command, cwd=GRAPH, check=True, capture_output=True, text=True)
    return result.stdout


def groups(api: Path) -> list[Json]:
    """The groups in the order of discovery, with their stable versions and the resources of each."""
    recorded = json.loads((api / "discovery" / "apis.json").read_text())["groups"]
    found = [{"name": "", "versions": [version(api, "api__v1")]}]
    for group in recorded:
        stable = [one["version"] for one in group["versions"] if STABLE.fullmatch(one["version"])]
        if stable:
            versions = [version(api, f"apis__{group['name']}__{name}") for name in stable]
            found.append({"name": group["name"], "versions": versions})
    return found


def version(api: Path, name: str) -> Json:
    listed = json.loads((api / "discovery" / f"{name}.json").read_text())
    return {"version": listed["groupVersion"].rpartition("/")[2], "resources": listed["resources"]}


def components(api: Path, served: list[Json]) -> Json:
    found: Json = {}
    for group in served:
        for one in group["versions"]:
            root = f"apis__{group['name']}__{one['version']}" if group["name"] else f"api__{one['version']}"
            document = json.loads((api / "openapi-spec" / "v3" / f"{root}_openapi.json").read_text())
            found |= document["components"]["schemas"]
    return found


def slim(schema: Json, shape: Json) -> Json:
    """One component without descriptions, and with the JSON form of its struct."""
    result: Json = slim_part(schema)
    kinds = result.pop("x-kubernetes-group-version-kind", [])
    if 0 < len(kinds) <= LISTED:
        result["kinds"] = ["/".join((kind["group"], kind["version"], kind["kind"])) for kind in kinds]
    always = {name: {} if isinstance(zero, dict) else zero for name, zero in (shape.get("always") or {}).items()}
    properties = result.get("properties") or {}
    for name, part in properties.items():
        if name in always and part.get("default", 0) == always[name]:
            part.pop("default", None)
    if always:
        result["always"] = always
    scalar = ("string", "integer", "boolean", "number")
    pointers = [name for name in shape.get("pointers") or () if properties[name].get("type") in scalar]
    if pointers:
        result["pointers"] = pointers
    if shape.get("types"):
        result["types"] = shape["types"]
    return result


def slim_part(schema: Any) -> Any:
    if isinstance(schema, list):
        return [slim_part(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: slim_part(value) for key, value in schema.items() if key not in ("description", "properties")}
    if "properties" in schema:
        kept["properties"] = {name: slim_part(part) for name, part in schema["properties"].items()}
    for reference in (*kept.pop("allOf", ()), *((kept,) if "$ref" in kept else ())):
        kept["$ref"] = reference["$ref"].removeprefix(PREFIX)
    return kept


def described(schema: Json) -> list[Any]:
    texts = {
        name: part["description"] for name, part in (schema.get("properties") or {}).items() if "description" in part
    }
    return [schema.get("description", ""), texts]


def write(name: str, value: Any) -> None:
    DATA.mkdir(exist_ok=True)
    raw = json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=name != "resources").encode()
    (DATA / f"{name}.json.xz").write_bytes(lzma.compress(raw, preset=9 | lzma.PRESET_EXTREME))


def main() -> None:
    module = go("list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").strip()
    api = Path(module) / "api"
    shapes = json.loads(go("run", str(HERE / "structs.go")))
    served = groups(api)
    schemas = components(api, served)
    write("resources", served)
    write("schemas", {name: slim(schema, shapes.get(name, {})) for name, schema in schemas.items()})
    write("descriptions", {name: described(schema) for name, schema in schemas.items()})


if __name__ == "__main__":
    main()
