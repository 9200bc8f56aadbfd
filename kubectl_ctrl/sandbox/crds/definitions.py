"""The rules for CustomResourceDefinitions themselves, and the status that the API server gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kubectl_ctrl.model.conditions import find, is_true
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox.answers import Problem
from kubectl_ctrl.sandbox.crds import formats, grammar
from kubectl_ctrl.sandbox.crds.grammar import forbidden, invalid, not_supported, required

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_REVIEWS = ("v1", "v1beta1")
_MOST_SELECTABLE = 8


def problems(crd: Obj, old: Obj | None) -> list[Problem]:
    """All violations of the rules for a CRD."""
    spec, status = crd.get("spec") or {}, crd.get("status") or {}
    found = [*(_name(crd, spec) if old is None else ()), *_spec(spec)]
    if old is not None:
        found += _kept(spec, old)
    return [*found, *_stored(status.get("storedVersions") or [], spec.get("versions") or [])]


def warnings(crd: Obj, old: Obj | None) -> list[str]:
    """The parts of new schemas that are stored but ignored."""
    told = [
        f'unrecognized format "{name}"' for name in _unknown_formats(crd) if name not in _unknown_formats(old or {})
    ]
    if any(grammar.has_rules(_schema_of(version)) for version in (crd.get("spec") or {}).get("versions") or ()):
        told.append("x-kubernetes-validations: the CEL rules are stored, but this server does not evaluate them")
    return told


def _unknown_formats(value: Any) -> list[str]:
    """The names of unknown formats in the schemas of a CRD."""
    if isinstance(value, list):
        return sorted({name for item in value for name in _unknown_formats(item)})
    if not isinstance(value, dict):
        return []
    names = {name for item in value.values() for name in _unknown_formats(item)}
    is_schema = isinstance(value.get("format"), str) and isinstance(value.get("type"), str)
    return sorted(names | ({value["format"]} if is_schema and formats.unknown(value) else set()))


def _schema_of(version: Obj) -> Obj | None:
    schema: Obj | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return schema


def _name(crd: Obj, spec: Obj) -> Iterator[Problem]:
    plural, group = (spec.get("names") or {}).get("plural", ""), spec.get("group", "")
    name = crd["metadata"].get("name", "")
    if name != f"{plural}.{group}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _spec(spec: Obj) -> Iterator[Problem]:
    group, versions, path = spec.get("group") or "", spec.get("versions") or [], "spec.versions"
    if not group:
        yield required("spec.group")
    elif not _SUBDOMAIN.fullmatch(group):
        yield invalid("spec.group", group, _SUBDOMAIN_RULE)
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope") or ""
    if scope not in ("Cluster", "Namespaced"):
        supported = ("Cluster", "Namespaced")
        yield not_supported("spec.scope", scope, supported) if scope else required("spec.scope")
    for place, version in enumerate(versions):
        if _schema_of(version) is None:
            yield required(f"{path}[{place}].schema.openAPIV3Schema")
    if spec.get("preserveUnknownFields"):
        words = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield invalid("spec.preserveUnknownFields", True, words)
    shared = _shared(versions)
    for place, version in enumerate(versions):
        own = {key: value for key, value in version.items() if key not in shared}
        yield from _version(own, f"{path}[{place}]")
    listed = [_in_go(version) for version in versions]
    if len(frozenset(one["Name"] for one in listed)) < len(listed):
        yield invalid(path, listed, "must contain unique version names")
    if len([version for version in versions if version.get("storage")]) != 1:
        yield invalid(path, listed, "must have exactly one version marked as storage version")
    if versions and not _is_label(first := versions[0].get("name") or ""):
        yield invalid("spec.version", first, _LABEL_RULE)
    yield from _names(spec.get("names") or {}, "spec.names")
    yield from _parts(shared, "spec", "validation")
    yield from _conversion(spec.get("conversion") or {}, "spec.conversion")


def _shared(versions: list[Obj]) -> Obj:
    """The parts that are equal in all versions. The server checks them once, as parts of the spec."""
    first = versions[0] if versions else {}
    return {
        key: first[key]
        for key in ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
        if key in first and all(same(version.get(key), first[key]) for version in versions)
    }


def _in_go(version: Obj) -> Obj:
    """A version as Go shows it, without parts that all versions share."""
    names = ("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields")
    given = {name: version.get(name.lower()) or False for name in ("Served", "Storage", "Deprecated")}
    warning = {"DeprecationWarning": version.get("deprecationWarning")}
    return {"Name": version.get("name") or "", **given, **warning, **dict.fromkeys(names)}


def _version(version: Obj, path: str) -> Iterator[Problem]:
    if not _is_label(name := version.get("name") or ""):
        yield invalid(f"{path}.name", name, _LABEL_RULE)
    yield from (invalid(f"{path}.deprecationWarning", version["deprecationWarning"], why) for why in _warning(version))
    yield from _parts(version, path, "schema")


def _parts(version: Obj, path: str, name: str) -> Iterator[Problem]:
    schema, sub = _schema_of(version), version.get("subresources") or {}
    if schema is not None:
        yield from grammar.problems(schema, f"{path}.{name}.openAPIV3Schema", status="status" in sub)
    if "scale" in sub:
        yield from _scale(sub["scale"] or {}, f"{path}.subresources.scale")
    for place, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _column(column, f"{path}.additionalPrinterColumns[{place}]")
    yield from _selectable(version.get("selectableFields") or [], schema or {}, f"{path}.selectableFields")


def _warning(version: Obj) -> Iterator[str]:
    text = version.get("deprecationWarning")
    if text is None:
        return
    if not version.get("deprecated"):
        yield "can only be set for deprecated versions"
        return
    if len(text) > 256:
        yield "must be <= 256 characters long"
    if not text:
        yield "must not be an empty string"


def _names(names: Obj, path: str) -> Iterator[Problem]:
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield required(f"{path}.{name}")
    for name in ("plural", "singular", "kind", "listKind"):
        text = names.get(name) or ""
        mixed = "may have mixed case, but should otherwise match: " if name in ("kind", "listKind") else ""
        if text and not _is_label(text.lower() if mixed else text):
            yield invalid(f"{path}.{name}", text, mixed + _LABEL_RULE)
    yield from _labels(names.get("shortNames") or (), f"{path}.shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(f"{path}.listKind", names["kind"], "kind and listKind may not be the same")
    yield from _labels(names.get("categories") or (), f"{path}.categories")


def _labels(names: Iterable[str], path: str) -> Iterator[Problem]:
    for place, name in enumerate(names):
        if not _is_label(name):
            yield invalid(f"{path}[{place}]", name, _LABEL_RULE)


def _is_label(text: str) -> bool:
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None


def _column(column: Obj, path: str) -> Iterator[Problem]:
    kind, form = column.get("type") or "", column.get("format") or ""
    if not column.get("name"):
        yield required(f"{path}.name")
    words = f"must be one of {','.join(_COLUMN_TYPES)}"
    if kind not in _COLUMN_TYPES:
        yield invalid(f"{path}.type", kind, words) if kind else required(f"{path}.type", words)
    if form and form not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    yield from _json_path(column.get("jsonPath") or "", f"{path}.JSONPath", ())


def _scale(scale: Obj, path: str) -> Iterator[Problem]:
    yield from _json_path(scale.get("specReplicasPath") or "", f"{path}.specReplicasPath", (".spec.",))
    yield from _json_path(scale.get("statusReplicasPath") or "", f"{path}.statusReplicasPath", (".status.",))
    if selector := scale.get("labelSelectorPath"):
        yield from _json_path(selector, f"{path}.labelSelectorPath", (".spec.", ".status."))


def _json_path(text: str, path: str, roots: tuple[str, ...]) -> Iterator[Problem]:
    if not text:
        yield required(path)
    elif not text.startswith("."):
        yield invalid(path, text, "must be a simple json path starting with .")
    elif roots and not text.startswith(roots):
        names = " or ".join(root.rstrip(".") for root in roots)
        yield invalid(path, text, f"should be a json path under {'either ' if len(roots) > 1 else ''}{names}")


def _selectable(fields: list[Obj], schema: Obj, path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for place, one in enumerate(fields):
        text, where = one.get("jsonPath") or "", f"{path}[{place}].jsonPath"
        if not text:
            yield required(where)
            continue
        found, why = _at(schema, text)
        if why:
            yield invalid(where, text, f"is an invalid path: {why}")
            continue
        if text.startswith(".metadata"):
            yield invalid(where, text, "must not point to fields in metadata")
        if found.get("type") not in ("string", "boolean", "integer"):
            words = "must point to a field of type string, boolean or integer."
            yield invalid(where, text, f"{words} Enum string fields and strings with formats are allowed.")
        if text in seen:
            message = f'Duplicate value: "{text}"'
            yield Problem(field=where, reason="FieldValueDuplicate", message=message)
        seen.add(text)
    if len(seen) > _MOST_SELECTABLE:
        message = f"Too many: {len(seen)}: must have at most {_MOST_SELECTABLE} items"
        yield Problem(field=path, reason="FieldValueTooMany", message=message)


def _at(schema: Obj, text: str) -> tuple[Obj, str]:
    """The schema at a path, and why there is none."""
    here: Any = schema
    for name in text.lstrip(".").split("."):
        here = (here.get("properties") or {}).get(name)
        if here is None:
            return {}, "does not refer to a valid field"
    return here, ""


def _conversion(conversion: Obj, path: str) -> Iterator[Problem]:
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook") or {}
    config, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy not in ("None", "Webhook"):
        supported = ("None", "Webhook")
        yield not_supported(f"{path}.strategy", strategy, supported) if strategy else required(f"{path}.strategy")
    if strategy != "Webhook":
        for name, given in (("webhookClientConfig", config), ("conversionReviewVersions", reviews)):
            if given:
                yield forbidden(f"{path}.{name}", "should not be set when strategy is not set to Webhook")
        return
    place = f"{path}.webhookClientConfig"
    if config is None:
        yield required(place, "required when strategy is set to Webhook")
    elif ("url" in config) == ("service" in config):
        yield required(place, "exactly one of url or service is required")
    if not reviews:
        yield required(f"{path}.conversionReviewVersions")
    elif not any(one in _REVIEWS for one in reviews):
        yield invalid(
            f"{path}.conversionReviewVersions", reviews, f"must include at least one of {', '.join(_REVIEWS)}"
        )


def _kept(spec: Obj, old: Obj) -> Iterator[Problem]:
    """The fields that cannot change: objects are stored by them."""
    fixed = (("scope", "names.kind") if is_true(old, "Established") else ()) + ("group", "names.plural")
    for path in fixed:
        new, was = (_in(one, path) for one in (spec, old.get("spec") or {}))
        if new != was:
            yield invalid(f"spec.{path}", new, "field is immutable")


def _in(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = (value or {}).get(part)
    return value


def _stored(stored: list[str], versions: list[Obj]) -> Iterator[Problem]:
    path, names = "status.storedVersions", [version.get("name") for version in versions]
    if not stored:
        yield invalid(path, None, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            yield invalid(path, stored, f"must have the storage version {version['name']}")
    for place, name in enumerate(stored):
        if name not in names:
            words = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield invalid(f"{path}[{place}]", name, words)


# -- status


def status(crd: Obj, old: Obj | None, others: Iterable[Obj], now: str) -> Obj:
    """The status that the controllers of the API server write: it is served unless another CRD has its names."""
    spec, before = crd.get("spec") or {}, (old or {}).get("status") or {}
    name, group = crd["metadata"]["name"], spec.get("group")
    same_group = [one for one in others if one["metadata"]["name"] != name and one["spec"].get("group") == group]
    accepted, conflict = _accepted(spec.get("names") or {}, before.get("acceptedNames") or {}, same_group)
    told = [("NamesAccepted", *(conflict or ("True", "NoConflicts", "no conflicts found")))]
    if not is_true({"status": before}, "Established"):
        fine = ("True", "InitialNamesAccepted", "the initial names have been accepted")
        told.append(("Established", *(("False", "NotAccepted", "not all names are accepted") if conflict else fine)))
    conditions = [_condition(before, now, one) for one in told]
    kept = [one for one in before.get("conditions") or () if one["type"] not in [new["type"] for new in conditions]]
    stored = list(before.get("storedVersions") or ())
    storage = next((one["name"] for one in spec.get("versions") or () if one.get("storage")), "")
    stored += [storage] if storage and storage not in stored else []
    return {"conditions": [*conditions, *kept], "acceptedNames": accepted, "storedVersions": stored}


def _condition(before: Obj, now: str, told: tuple[str, ...]) -> Obj:
    kind, state, reason, message = told
    was = find({"status": before}, kind) or {}
    time = was.get("lastTransitionTime", now) if was.get("status") == state else now
    return {"type": kind, "status": state, "lastTransitionTime": time, "reason": reason, "message": message}


def _accepted(names: Obj, before: Obj, others: list[Obj]) -> tuple[Obj, tuple[str, str, str] | None]:
    """The names that no other CRD of the group has, and the conflict about the last other one."""
    taken = [(one.get("status") or {}).get("acceptedNames") or {} for one in others]
    plain = {name for one in taken for name in (one.get("plural"), one.get("singular"), *(one.get("shortNames") or ()))}
    kinds = {name for one in taken for name in (one.get("kind"), one.get("listKind"))}
    accepted, conflict = dict(before), None
    for key in ("plural", "singular", "shortNames", "kind", "listKind", "categories"):
        used = kinds if "ind" in key else plain if key != "categories" else set()
        wanted, mine = _listed(names.get(key)), _listed(before.get(key))
        if clash := [name for name in wanted if name not in mine and name in used]:
            conflict = "False", f"{key[0].upper()}{key[1:]}Conflict", f'"{clash[0]}" is already in use'
        elif key in names:
            accepted[key] = names[key]
        else:
            accepted.pop(key, None)
    return accepted, conflict


def _listed(names: Any) -> list[str]:
    return names if isinstance(names, list) else [names] if names else []
