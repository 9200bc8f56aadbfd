"""The proxy for a server, by the rules of Go's HTTP library, which kubectl uses."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from kubectl_ctrl.errors import ConfigError


def checked(url: str, what: str) -> str:
    """The URL of a supported proxy; ConfigError otherwise, without the password that the URL may contain."""
    try:
        parts = urlsplit(url)
        valid = bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, valid = urlsplit(""), False
    if parts.scheme.startswith("socks"):
        raise ConfigError(
            f"The {what} is a {parts.scheme} proxy, and only http and https proxies are supported.",
            next_step="use an HTTP proxy, or a tunnel and --server with --tls-server-name",
        )
    if not valid or parts.scheme not in ("http", "https"):
        raise ConfigError(f"The {what} is not a proxy's URL.", next_step="write it like http://proxy.example:3128")
    return url


def from_environ(server: str, environ: Mapping[str, str]) -> str | None:
    """HTTPS_PROXY or HTTP_PROXY by the server's scheme, upper case first; never for localhost."""
    name = f"{urlsplit(server).scheme.upper()}_PROXY"
    url = environ.get(name) or environ.get(name.lower()) or ""
    if not url or _direct(server, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    return checked(url if "://" in url else f"http://{url}", name)


def _direct(server: str, no_proxy: str) -> bool:
    parts = urlsplit(server)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address and address.is_loopback):
        return True
    rules = [rule.strip().lower() for rule in no_proxy.split(",")]
    return any(rule and _matches(rule, host, port) for rule in rules)


def _matches(rule: str, host: str, port: int) -> bool:
    """Match one entry of NO_PROXY: `*`, a network, an address or a domain; the last two with or without a port."""
    if rule == "*":
        return True
    if "/" in rule:
        return _in_network(rule, host)
    name, at = _split_port(rule)
    if at and at != str(port):
        return False
    if name.startswith("*."):
        name = name[1:]
    return bool(name) and (host == name or host.endswith(name if name.startswith(".") else f".{name}"))


def _in_network(rule: str, host: str) -> bool:
    try:
        return ip_address(host) in ip_network(rule, strict=False)
    except ValueError:
        return False


def _split_port(rule: str) -> tuple[str, str]:
    if rule.startswith("["):
        name, _, rest = rule[1:].partition("]")
        return name, rest.removeprefix(":")
    name, colon, port = rule.rpartition(":")
    return (name, port) if colon and ":" not in name else (rule, "")
