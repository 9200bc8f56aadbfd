"""Credential plugins: programs that print an ExecCredential (client.authentication.k8s.io/v1 and v1beta1).

A plugin's arguments, environment and output may contain secrets. Errors have only its name, its exit code and the
end of its stderr, with the values of its configured environment hidden.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Mapping
from math import inf
from typing import Any

from kubectl_ctrl import exec as programs
from kubectl_ctrl.client.auth.grants import Grant, bearer
from kubectl_ctrl.client.tls import Certificate
from kubectl_ctrl.client.words import plain
from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.errors import ConfigError, CredentialsError, PrerequisiteMissing, ProgramFailed
from kubectl_ctrl.kubeconfig.files import parse
from kubectl_ctrl.kubeconfig.resolution import ExecSettings, Resolved, read_ca
from kubectl_ctrl.kubeconfig.secret import Secret

# The user may have to type a password, or to log in with a browser.
_LONGEST_INTERACTIVE = 600.0
_LONGEST = 120.0
_TAIL = 400


class ExecPlugin:
    """Runs the plugin for each grant. The caller keeps the grant until it expires."""

    shared = False
    costly = True

    def __init__(self, resolved: Resolved, *, environ: Mapping[str, str], interactive: bool) -> None:
        assert resolved.auth.exec is not None
        self._resolved = resolved
        self._settings = resolved.auth.exec
        self._environ = environ
        self._terminal = interactive
        self._origin = f"The credential plugin {self._settings.command!r} of user {resolved.user!r}"

    async def obtain(self) -> Grant:
        output = await self._run()
        try:
            answer = parse(output, "The output")
            status = _status(answer, self._settings.api_version)
            return self._grant(status)
        except (ConfigError, ValueError) as error:
            why = error.message if isinstance(error, ConfigError) else str(error)
            raise CredentialsError(f"{self._origin} gave an invalid answer.", tried=why) from None

    async def _run(self) -> bytes:
        settings, interactive = self._settings, self._interactive()
        program = shutil.which(settings.command, path=self._environ.get("PATH"))
        if program is None:
            hint = plain(settings.install_hint)
            raise CredentialsError(
                f"{self._origin} is not installed.", next_step=hint or "install it, or put it on PATH"
            )
        info = json.dumps(exec_info(self._resolved, interactive=interactive), separators=(",", ":"))
        try:
            output = await programs.run(
                [program, *settings.args],
                env={**self._environ, **dict(settings.env), "KUBERNETES_EXEC_INFO": info},
                timeout=_LONGEST_INTERACTIVE if interactive else _LONGEST,
                interactive=interactive,
            )
        except ProgramFailed as error:
            raise CredentialsError(f"{self._origin} {error.outcome}.", tried=self._tail(error.stderr)) from None
        except PrerequisiteMissing as error:
            raise CredentialsError(f"{self._origin} cannot be run.", tried=error.message) from None
        return output.stdout.encode()

    def _interactive(self) -> bool:
        mode = self._settings.interactive_mode
        if mode == "Always" and not self._terminal:
            raise CredentialsError(
                f"{self._origin} needs a terminal (interactiveMode Always), but stdin is not a terminal.",
                next_step="run it from a terminal",
            )
        return mode != "Never" and self._terminal

    def _tail(self, text: str) -> str:
        for _, value in self._settings.env:
            text = text.replace(value, "(hidden)") if len(value) > 3 else text
        return plain(text.strip()[-_TAIL:])

    def _grant(self, status: Mapping[str, Any]) -> Grant:
        token, chain, key = (_text(status, name) for name in ("token", "clientCertificateData", "clientKeyData"))
        if bool(chain) != bool(key):
            raise ValueError("it returned a certificate without its key, or a key without its certificate")
        if not token and not chain:
            raise ValueError("it returned neither a token nor a certificate")
        certificate = Certificate(chain=chain.encode(), key=Secret(key), origin=self._origin) if chain else None
        return Grant(authorization=bearer(token) if token else None, certificate=certificate, expires=_expiry(status))

    def __repr__(self) -> str:
        return f"ExecPlugin({self._settings.command!r})"


def exec_info(resolved: Resolved, *, interactive: bool) -> dict[str, Any]:
    """The ExecCredential in a plugin's KUBERNETES_EXEC_INFO."""
    settings = resolved.auth.exec
    assert settings is not None
    spec: dict[str, Any] = {"interactive": interactive}
    if settings.provide_cluster_info:
        spec["cluster"] = _cluster_info(resolved, settings)
    return {"kind": "ExecCredential", "apiVersion": settings.api_version, "spec": spec}


def _cluster_info(resolved: Resolved, settings: ExecSettings) -> dict[str, Any]:
    optional = {
        "tls-server-name": resolved.tls.server_name,
        "insecure-skip-tls-verify": resolved.tls.insecure,
        "certificate-authority-data": base64.b64encode(read_ca(resolved)).decode(),
        "proxy-url": resolved.cluster_proxy,
        "disable-compression": resolved.disable_compression,
    }
    given = {key: value for key, value in optional.items() if value}
    return {"server": resolved.server, **given, "config": settings.cluster_config}


def _status(answer: Any, version: str) -> Mapping[str, Any]:
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise ValueError("it did not print an ExecCredential")
    if answer.get("apiVersion") != version:
        raise ValueError(f"the apiVersion of its answer is not the {version!r} of the kubeconfig")
    status = answer.get("status")
    if not isinstance(status, dict):
        raise ValueError("its ExecCredential has no status")
    return status


def _expiry(status: Mapping[str, Any]) -> float:
    text = _text(status, "expirationTimestamp")
    try:
        return parse_rfc3339(text) if text else inf
    except ValueError:
        raise ValueError("status.expirationTimestamp is not an RFC 3339 time") from None


def _text(status: Mapping[str, Any], name: str) -> str:
    value = status.get(name) or ""
    if not isinstance(value, str):
        raise ValueError(f"status.{name} is not a string")
    return value
