"""kwokctl's configuration: the user's file, if there is one, combined with the options that managed clusters need."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.value import Value

_KIND = "KwokctlConfiguration"
_GROUP = "kwok.x-k8s.io"
_VERSION = f"config.{_GROUP}/v1alpha1"
LOOPBACK = "127.0.0.1"

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Program -> kwokctl's option for its path.
OPTIONS = {
    "etcd": "etcdBinary",
    "kube-apiserver": "kubeApiserverBinary",
    "kube-controller-manager": "kubeControllerManagerBinary",
    "kube-scheduler": "kubeSchedulerBinary",
    "kwok": "kwokControllerBinary",
    "kubectl": "kubectlBinary",
}

# kwokctl would choose free ports without a lock, so two clusters created at the same time would get the same ones.
PORTS = (
    "etcdPeerPort",
    "etcdPort",
    "kubeApiserverPort",
    "kwokControllerPort",
    "kubeControllerManagerPort",
    "kubeSchedulerPort",
)

_EXTRA_ARGS = {
    # By default it is the address of the default route, which a machine without a network lacks. Nobody connects to it.
    "kube-apiserver": {"advertise-address": "192.0.2.1"},
    # With leader election they exit when the API server does not answer, and nothing restarts them.
    "kube-controller-manager": {"leader-elect": "false"},
    "kube-scheduler": {"leader-elect": "false"},
}

# Option -> the only value that the user's file may set, and why.
_FIXED: Mapping[str, tuple[Any, str]] = {
    "runtime": ("binary", "clusters are created without a container runtime"),
    "bindAddress": (LOOPBACK, "they must only be reachable from this machine"),
    "securePort": (True, "they are identified by their certificate authority"),
    "kubeApiserverInsecurePort": (0, "they are identified by their certificate authority"),
}


class Configuration(Value):
    """The documents of the user's file."""

    documents: tuple[Mapping[str, Any], ...] = ()

    @property
    def own(self) -> Mapping[str, Any]:
        return next((document for document in self.documents if document.get("kind") == _KIND), {})

    @property
    def options(self) -> Mapping[str, Any]:
        return self.own.get("options") or {}

    def completed(self, options: Mapping[str, Any]) -> str:
        """The contents of the file for kwokctl; the user's options override `options`."""
        patches = [
            {"name": part, "extraArgs": [{"key": key, "value": value} for key, value in arguments.items()]}
            for part, arguments in _EXTRA_ARGS.items()
        ]
        fixed = {"runtime": "binary", "bindAddress": LOOPBACK, "quietPull": True}
        own = {
            "apiVersion": _VERSION,
            "kind": _KIND,
            **self.own,
            "options": {**options, **self.options, **fixed},
            # If an argument occurs twice, the later one wins.
            "componentsPatches": [*patches, *(self.own.get("componentsPatches") or [])],
        }
        others = [document for document in self.documents if document is not self.own]
        return "---\n".join(f"{json.dumps(document, indent=1)}\n" for document in (own, *others))


def read(path: Path | None) -> Configuration:
    """The user's file; UsageError if kwokctl would reject it, or if it contradicts the fixed options."""
    if path is None:
        return Configuration()
    try:
        documents = tuple(yaml.safe_load_all(path.read_bytes()))
    except OSError as error:
        raise UsageError(
            f"The --config file {str(path)!r} cannot be read: {error.strerror}.", next_step="use a readable file"
        ) from error
    except yaml.YAMLError as error:
        raise UsageError(
            f"The --config file {str(path)!r} is not valid YAML: {_problem(error)}.",
            next_step="correct it and repeat the command",
        ) from error
    found = tuple(document for document in documents if document is not None)
    if any(_group(document).startswith("kind.") for document in found):
        raise UsageError(f"The --config file {str(path)!r} is for kind.", next_step="leave it out")
    if not found or not all(_is_of_kwok(document) for document in found):
        raise UsageError(
            f"The --config file {str(path)!r} is not a configuration of kwokctl.",
            next_step=f"use documents of {_GROUP}, as `kwokctl config view` prints them",
        )
    configuration = Configuration(found)
    for option, (value, why) in _FIXED.items():
        given = configuration.options.get(option, value)
        if given not in (value, ""):
            raise UsageError(
                f"The --config file {str(path)!r} sets {option}: {given}, but only {value} is possible: {why}.",
                next_step="leave it out",
            )
    return configuration


def _problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} in line {mark.line + 1}, column {mark.column + 1}"
    return str(error).partition("\n")[0]


def _is_of_kwok(document: object) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("options") or {}, dict):
        return False
    return _group(document).endswith(_GROUP)


def _group(document: object) -> str:
    return str(document.get("apiVersion", "")).partition("/")[0] if isinstance(document, dict) else ""


def components(file: Path) -> tuple[Mapping[str, Any], ...]:
    """The components in kwokctl's own file about a cluster; () if it cannot be read."""
    try:
        documents = list(yaml.load_all(file.read_bytes(), Loader=_LOADER))
    except (OSError, yaml.YAMLError):
        return ()
    own = next((each for each in documents if isinstance(each, dict) and each.get("kind") == _KIND), {})
    return tuple(each for each in own.get("components") or () if isinstance(each, dict) and each.get("binary"))


def ports_of(parts: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Port -> the component that listens on it."""
    found: dict[int, str] = {}
    for part in parts:
        for port in part.get("ports") or ():
            found[port.get("hostPort") or port["port"]] = str(part.get("name", ""))
    return found


def self_contained(file: Path) -> str:
    """kwokctl's kubeconfig, with the contents of the files that it refers to."""
    content = yaml.safe_load(file.read_bytes())
    for section, inner in (("clusters", "cluster"), ("users", "user")):
        for item in content.get(section) or ():
            fields = item.get(inner) or {}
            for key in ("certificate-authority", "client-certificate", "client-key"):
                if key in fields:
                    data = Path(fields.pop(key)).read_bytes()
                    fields[f"{key}-data"] = base64.b64encode(data).decode()
    text: str = yaml.safe_dump(content, sort_keys=False)
    return text
