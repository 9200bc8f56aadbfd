"""From kubeconfig files, flags and environment to one cluster and user, as in kubectl.

Nothing here contacts a cluster, starts a program or reads a key. The import is cheap, because completion needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kubectl_ctrl.errors import ConfigError, UsageError
from kubectl_ctrl.kubeconfig import files as kubefiles
from kubectl_ctrl.kubeconfig import incluster, proxies
from kubectl_ctrl.kubeconfig.files import KubeconfigEntry, Merged
from kubectl_ctrl.kubeconfig.secret import Secret
from kubectl_ctrl.model.durations import parse_duration
from kubectl_ctrl.value import Unshown, Value, field, replace

# The cluster extension that credential plugins receive.
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MOST_NAMES = 12
_INTERACTIVE = ("Never", "IfAvailable", "Always")

# The contexts of managed clusters, each with its own file; called only if the user's files lack the requested context.
ManagedContexts = Callable[[], Mapping[str, Path]]


class ConfigFlags(Value, kw_only=True):
    """kubectl's 21 connection flags; "" and () mean absent, as in kubectl."""

    kubeconfig: str = ""
    cache_dir: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    namespace: str = ""
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    client_certificate: str = ""
    client_key: str = ""
    token: Unshown[str] = ""
    username: str = ""
    password: Unshown[str] = ""
    as_user: str = ""
    as_uid: str = ""
    as_group: tuple[str, ...] = ()
    as_user_extra: tuple[str, ...] = ()
    request_timeout: str = "0"
    disable_compression: bool = False


class TlsSettings(Value, kw_only=True):
    """How the server is authenticated. Data precedes a file; without both, the system's certificate authorities."""

    ca_data: Unshown[bytes] = b""
    ca_file: str = ""
    insecure: bool = False
    server_name: str = ""


class ExecSettings(Value, kw_only=True):
    """A credential plugin. Arguments and environment may contain secrets."""

    command: str
    args: Unshown[tuple[str, ...]] = ()
    env: Unshown[tuple[tuple[str, str], ...]] = ()
    api_version: str
    interactive_mode: str
    provide_cluster_info: bool = False
    cluster_config: Unshown[Any] = None
    install_hint: str = ""


class AuthSettings(Value, kw_only=True):
    """The user's credentials from the user entry and the flags. Empty for an http server."""

    token: Secret | None = None
    token_file: str = ""
    username: str = ""
    password: Secret | None = None
    certificate_data: Unshown[bytes] = b""
    certificate_file: str = ""
    key_data: Secret | None = None
    key_file: str = ""
    exec: ExecSettings | None = None
    provider: str = ""
    provider_config: Unshown[Mapping[str, str]] = field(default_factory=dict)

    @property
    def has_certificate(self) -> bool:
        return bool(self.certificate_data or self.certificate_file)


class Impersonation(Value, kw_only=True):
    """The user to act as; none if `user` is empty."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Origin(Value, kw_only=True):
    """The input of `load`, kept to load again. Flags and environment may contain secrets."""

    flags: Unshown[ConfigFlags]
    environ: Unshown[Mapping[str, str]]
    home: Path


class Resolved(Value, kw_only=True):
    """One cluster and one user, validated. The certificate and token files that it names have not been read."""

    context: str | None
    cluster: str
    user: str
    server: str  # scheme://host[:port][/path], lower-case up to the path, nothing after it
    namespace: str
    tls: TlsSettings
    auth: AuthSettings
    impersonate: Impersonation
    proxy_url: Unshown[str | None]  # may contain a password
    cluster_proxy: Unshown[str]  # the kubeconfig's proxy-url, for plugins
    request_timeout: float | None
    disable_compression: bool
    cache_dir: Path
    files: tuple[Path, ...]
    in_cluster: bool
    server_overridden: bool  # by --server, --cluster or the environment
    origin: Unshown[Origin]


def load(flags: ConfigFlags, environ: Mapping[str, str], home: Path, *, managed: ManagedContexts = dict) -> Resolved:
    """The cluster and user that kubectl would use; ConfigError if kubectl would fail, prompt, or use localhost:8080.

    If the files lack the context, it may be one of the managed contexts.
    """
    merged = kubefiles.read(flags.kubeconfig, environ, home)
    if (other := _managed_context(flags, environ, merged, managed)) is not None:
        return load(replace(flags, context=other[0], kubeconfig=str(other[1])), environ, home)
    context = _context(flags, merged, managed)
    name = flags.cluster or (context.text("cluster") if context else "")
    cluster = _named("cluster", name, merged.clusters, context, needed=not flags.server or bool(flags.cluster))
    user_name = flags.user or (context.text("user") if context else "")
    # kubectl's order: an https KUBERNETES_MASTER goes before the pod's own cluster, which goes before any other.
    elsewhere = flags.server or name or context or environ.get("KUBERNETES_MASTER", "").startswith("https://")
    inside = None if elsewhere else incluster.find(environ)
    cluster = inside.cluster if inside else cluster
    server, login = _server(flags, cluster, environ, merged, managed)
    https = server.startswith("https://")
    flags_suffice = flags.token or flags.username or flags.password or flags.client_certificate
    needs_user = https and not login and not flags_suffice
    user = _named("user", user_name, merged.users, context, needed=needs_user or bool(flags.user))
    user = inside.user if inside and not flags.user else user
    auth = _auth(flags, user, cluster, in_cluster=inside is not None)
    if cluster_proxy := cluster.text("proxy-url"):
        proxies.checked(cluster_proxy, f"proxy-url of {cluster}")
    return Resolved(
        context=context.name if context else None,
        cluster=cluster.name,
        user=user.name,
        server=server,
        namespace=flags.namespace or (context.text("namespace") if context else "") or incluster.namespace(environ),
        tls=_tls(flags, cluster) if https else TlsSettings(),
        auth=login or (auth if https else AuthSettings()),
        impersonate=_impersonation(flags, user),
        proxy_url=cluster_proxy or proxies.from_environ(server, environ),
        cluster_proxy=cluster_proxy,
        request_timeout=_request_timeout(flags.request_timeout),
        disable_compression=flags.disable_compression or cluster.flag("disable-compression"),
        cache_dir=Path(flags.cache_dir or environ.get("KUBECACHEDIR") or home / ".kube" / "cache"),
        files=merged.read,
        in_cluster=inside is not None,
        server_overridden=_overridden(flags, cluster, context),
        origin=Origin(flags=flags, environ=environ, home=home),
    )


def load_again(resolved: Resolved) -> Resolved:
    """Read the files again. The context stays the same, even if current-context has changed."""
    origin = resolved.origin
    flags = replace(origin.flags, context=resolved.context) if resolved.context else origin.flags
    return load(flags, origin.environ, origin.home)


def acting_as(resolved: Resolved, user: str) -> Resolved:
    """The same cluster and credentials with another impersonated user, also after `load_again`."""
    origin = replace(resolved.origin, flags=replace(resolved.origin.flags, as_user=user))
    return replace(resolved, impersonate=Impersonation(user=user), origin=origin)


def ca_fingerprint(resolved: Resolved) -> str:
    """SHA-256 of the certificate authority in hex, "" for the system's; with the server it identifies a cluster."""
    content = read_ca(resolved)
    from hashlib import sha256

    return sha256(b"".join(content.split())).hexdigest() if content else ""


def read_ca(resolved: Resolved) -> bytes:
    """The PEM text of the certificate authority, b"" for the system's."""
    tls = resolved.tls
    if tls.ca_data or not tls.ca_file:
        return tls.ca_data
    return read_file(tls.ca_file, f"certificate-authority of cluster {resolved.cluster!r}")


def read_file(name: str, what: str) -> bytes:
    """A file that the kubeconfig names."""
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"The {what}, {name!r}, cannot be read: {error.strerror}.") from None


def _managed_context(
    flags: ConfigFlags, environ: Mapping[str, str], merged: Merged, managed: ManagedContexts
) -> tuple[str, Path] | None:
    """The managed context and its file: the requested one, or the only one if nothing else selects a cluster.

    With --kubeconfig, only that file counts.
    """
    if flags.kubeconfig or flags.context in merged.contexts:
        return None
    if flags.context:
        file = managed().get(flags.context)
        return (flags.context, file) if file else None
    selected = (merged.current_context, flags.cluster, flags.user, flags.server, environ.get("KUBERNETES_MASTER"))
    if any(selected) or incluster.find(environ):
        return None
    found = list(managed().items())
    return found[0] if len(found) == 1 else None


def _context(flags: ConfigFlags, merged: Merged, managed: ManagedContexts) -> KubeconfigEntry | None:
    name = flags.context or merged.current_context
    if not name or name in merged.contexts:
        return merged.contexts.get(name)
    what = "The context" if flags.context else "The current-context"
    raise ConfigError(
        f"{what} {name!r} does not exist.", tried=merged.order, next_step=_choice("context", _contexts(merged, managed))
    )


def _named(
    kind: str, name: str, entries: Mapping[str, KubeconfigEntry], context: KubeconfigEntry | None, *, needed: bool
) -> KubeconfigEntry:
    """The entry of that name; an empty one if it does not exist and the flags replace its content."""
    if name in entries:
        return entries[name]
    if not needed or not (name or context):
        return KubeconfigEntry(kind=kind, name=name)
    if context is None or context.text(kind) != name:
        raise ConfigError(f"The {kind} {name!r} does not exist.", next_step=_choice(kind, entries))
    why = f"names the {kind} {name!r}, which does not exist" if name else f"names no {kind}"
    raise ConfigError(f"The {context} {why}.", next_step=_choice(kind, entries))


def _contexts(merged: Merged, managed: ManagedContexts) -> dict[str, object]:
    """All values of --context, those of the user's files first."""
    return {**merged.contexts, **managed()}


def _choice(kind: str, entries: Mapping[str, object]) -> str:
    names = ", ".join(map(repr, list(entries)[:_MOST_NAMES]))
    names += f" and {len(entries) - _MOST_NAMES} more" if len(entries) > _MOST_NAMES else ""
    return f"choose with --{kind} one of {names}" if entries else f"add one: no {kind} is configured"


def _server(
    flags: ConfigFlags, cluster: KubeconfigEntry, environ: Mapping[str, str], merged: Merged, managed: ManagedContexts
) -> tuple[str, AuthSettings | None]:
    text = flags.server or cluster.text("server") or environ.get("KUBERNETES_MASTER", "")
    if text:
        origin = f"server of {cluster}" if cluster.text("server") else "KUBERNETES_MASTER"
        return _parse_server(text, "--server" if flags.server else origin)
    if cluster.name:
        raise cluster.wrong("server", "is missing")
    contexts = _contexts(merged, managed)
    none = "create a local cluster with kubectl ctrl up, or set KUBECONFIG"
    raise ConfigError(
        "No cluster is configured: there is no current-context, and no --server was given.",
        tried=f"{merged.order}, the service account of a pod, KUBERNETES_MASTER",
        next_step=_choice("context", contexts) if contexts else none,
    )


def _parse_server(text: str, what: str) -> tuple[str, AuthSettings | None]:
    """The URL without a login, and the login. host:port without a scheme is http, as in kubectl."""
    try:
        parts = urlsplit(text)
        bare = not parts.scheme or not parts.netloc
        parts = urlsplit(f"http://{text}") if bare else parts
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, bare, host, port = urlsplit(""), True, "", None
    if not host or (bare and parts.path not in ("", "/")) or not text.isprintable() or " " in text:
        raise ConfigError(f"The {what} is not a URL or host:port.", next_step="write it like https://10.0.0.1:6443")
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"The {what} has the scheme {parts.scheme!r}; it must be http or https.")
    host = f"[{host}]" if ":" in host else host
    address = f"{parts.scheme}://{host}" + (f":{port}" if port is not None else "") + parts.path.rstrip("/")
    login = AuthSettings(username=unquote(parts.username or ""), password=Secret(unquote(parts.password or "")))
    return address, login if "@" in parts.netloc else None


def _overridden(flags: ConfigFlags, cluster: KubeconfigEntry, context: KubeconfigEntry | None) -> bool:
    other_cluster = bool(flags.cluster) and (context is None or flags.cluster != context.text("cluster"))
    return bool(flags.server) or other_cluster or not cluster.text("server")


def _tls(flags: ConfigFlags, cluster: KubeconfigEntry) -> TlsSettings:
    """--certificate-authority and --insecure-skip-tls-verify replace both settings; --server drops the server name."""
    insecure, ca_file = cluster.flag("insecure-skip-tls-verify"), cluster.path("certificate-authority")
    ca_data = cluster.data("certificate-authority-data")
    if flags.insecure_skip_tls_verify or flags.certificate_authority:
        insecure, ca_file, ca_data = flags.insecure_skip_tls_verify, flags.certificate_authority, b""
    if ca_file and ca_data:
        raise ConfigError(f"Both certificate-authority and certificate-authority-data are given for {cluster}.")
    if insecure and (ca_file or ca_data):
        raise ConfigError(f"Both a certificate authority and insecure-skip-tls-verify are given for {cluster}.")
    own_name = "" if flags.server else cluster.text("tls-server-name")
    return TlsSettings(
        ca_data=ca_data, ca_file=ca_file, insecure=insecure, server_name=flags.tls_server_name or own_name
    )


def _auth(flags: ConfigFlags, user: KubeconfigEntry, cluster: KubeconfigEntry, *, in_cluster: bool) -> AuthSettings:
    username, password = flags.username or user.text("username"), flags.password or user.text("password")
    token = flags.token or user.text("token")
    # A tokenFile precedes a token, even one from --token: so in kubectl, except for a pod's service account.
    token_file = "" if in_cluster and flags.token else user.path("tokenFile")
    if (token or token_file) and (username or password):
        raise ConfigError(f"Both a token and a username with password are given for {user}; only one can be used.")
    plugin, provider = user.part("exec"), user.part("auth-provider")
    if plugin and provider:
        raise ConfigError(f"Both exec and auth-provider are given for {user}; only one can be used.")
    config = provider.part("config") if provider else None
    return AuthSettings(
        token=Secret(token) if token else None,
        token_file=token_file,
        username=username,
        password=Secret(password) if username or password else None,
        **_certificate(flags, user),
        exec=_exec(plugin, cluster) if plugin else None,
        provider=provider.text("name") if provider else "",
        provider_config={key: config.text(key) for key in config.fields} if config else {},
    )


def _certificate(flags: ConfigFlags, user: KubeconfigEntry) -> dict[str, Any]:
    given, key_given = bool(flags.client_certificate), bool(flags.client_key)
    certificate_file = flags.client_certificate or user.path("client-certificate")
    certificate_data = b"" if given else user.data("client-certificate-data")
    key_file = flags.client_key or user.path("client-key")
    key_data = b"" if key_given else user.data("client-key-data")
    if not certificate_file and not certificate_data:
        return {}
    for name, file, data in (("certificate", certificate_file, certificate_data), ("key", key_file, key_data)):
        if file and data:
            raise ConfigError(f"Both client-{name} and client-{name}-data are given for {user}.")
    if not key_file and not key_data:
        raise ConfigError(f"A client certificate without its key is given for {user}.", next_step="add client-key")
    return {
        "certificate_data": certificate_data,
        "certificate_file": certificate_file,
        "key_data": Secret(key_data.decode("latin-1")) if key_data else None,
        "key_file": key_file,
    }


def _exec(plugin: KubeconfigEntry, cluster: KubeconfigEntry) -> ExecSettings:
    command, version = plugin.text("command"), plugin.text("apiVersion")
    if not command:
        raise ConfigError(f"The exec section of {plugin} has no command.")
    if version not in _EXEC_VERSIONS:
        raise ConfigError(
            f"The exec section of {plugin} has the apiVersion {version!r}.",
            next_step=f"update the plugin's configuration to {' or '.join(_EXEC_VERSIONS)}",
        )
    mode = plugin.text("interactiveMode") or ("IfAvailable" if version == _EXEC_VERSIONS[1] else "")
    if mode not in _INTERACTIVE:
        raise ConfigError(f"interactiveMode of {plugin} is {mode!r}; it must be one of {', '.join(_INTERACTIVE)}.")
    env = tuple((item.text("name"), item.text("value")) for item in plugin.parts("env"))
    if not all(name for name, _ in env):
        raise ConfigError(f"The exec section of {plugin} has an environment variable without a name.")
    extensions = (item for item in cluster.parts("extensions") if item.text("name") == _EXEC_EXTENSION)
    return ExecSettings(
        command=plugin.beside(command) if "/" in command else command,
        args=plugin.texts("args"),
        env=env,
        api_version=version,
        interactive_mode=mode,
        provide_cluster_info=plugin.flag("provideClusterInfo"),
        cluster_config=next((item.fields.get("extension") for item in extensions), None),
        install_hint=plugin.text("installHint"),
    )


def _impersonation(flags: ConfigFlags, user: KubeconfigEntry) -> Impersonation:
    name, uid = flags.as_user or user.text("as"), flags.as_uid or user.text("as-uid")
    groups = flags.as_group or user.texts("as-groups")
    given = user.part("as-user-extra")
    extra = {key: given.texts(key) for key in given.fields} if given else {}
    extra |= _extra(flags.as_user_extra)
    if not name and (uid or groups or extra):
        raise ConfigError(
            f"A group, uid or extra to impersonate is given for {user} without a user.", next_step="add --as USER"
        )
    return Impersonation(user=name, uid=uid, groups=groups, extra=tuple(sorted(extra.items())))


def _extra(items: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals:
            # kubectl ignores it, and impersonates with less than requested.
            raise UsageError(f"--as-user-extra {item!r} is not KEY=VALUE.")
        extra[key] = (*extra.get(key, ()), value)
    return extra


def _request_timeout(text: str) -> float | None:
    """Seconds, None for no limit; a number without a unit is seconds, as in kubectl."""
    try:
        seconds = float(text) if text.isdecimal() else parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--request-timeout: {error}") from None
    if seconds < 0:
        raise UsageError(f"--request-timeout {text!r} is negative.", next_step="use 0 for the default")
    return seconds or None
