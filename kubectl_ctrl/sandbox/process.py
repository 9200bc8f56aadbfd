"""One served sandbox: a folder with its credentials and data, the API server, and its port.

The folder contains the certificates (ca.crt, ca.key, tls.crt, tls.key), the administrator's token, the kubeconfig, the
last port and, if the data are kept, the journal. All files are private to the user.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from kubectl_ctrl import files, locks
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.transport import Transport
from kubectl_ctrl.sandbox import certificates, journal
from kubectl_ctrl.sandbox.audit import AuditLog
from kubectl_ctrl.sandbox.auth.tokens import Authenticator
from kubectl_ctrl.sandbox.cluster import Cluster, ClusterSettings
from kubectl_ctrl.sandbox.endpoint import Endpoint
from kubectl_ctrl.sandbox.http.server import HOST, HttpServer
from kubectl_ctrl.sandbox.journal import DurableTransport, Journal
from kubectl_ctrl.value import Value

# Not below 10,000, where servers are found, nor among the ephemeral ports and those of NodePort services.
PORTS = range(20_000, 30_000)
COMPACTED_EVERY = 300.0  # seconds, as a kube-apiserver lets etcd do
_TRIES = 100
_KUBECONFIG, TOKEN, _PORT, _JOURNAL, _LOCK = "kubeconfig", "token", "port", "journal", ".lock"


class ServeError(Exception):
    """The server cannot start; the message is a sentence for the user."""


class Settings(Value, kw_only=True):
    folder: Path
    name: str = "sandbox"  # of the cluster, user and context in the kubeconfig
    port: int | None = None  # None: the last one of the folder if it is free, else a random one
    data: bool = False  # keep the objects in the folder
    nodes: int = 1  # of a new cluster
    audit_log: Path | None = None


class Serving(Value, kw_only=True):
    """A server that is ready."""

    server: str
    kubeconfig: str
    pid: int


async def serve(
    settings: Settings,
    clock: Clock,
    rng: Random,
    ready: Callable[[Serving], None],
    stop: asyncio.Event,
    *,
    endpoint: Callable[..., Endpoint] = Endpoint,
) -> None:
    """Serve until `stop` is set. Raises ServeError, JournalError and OSError."""
    with _own(settings.folder):
        token = _token(settings.folder, rng)
        tls = certificates.server_context(settings.folder, clock.now())
        authority = (settings.folder / certificates.AUTHORITY).read_bytes()
        key = hashlib.sha256(b"service accounts" + token.encode()).digest()
        api = endpoint(clock, Authenticator(key=key, admin_token=token, ca=authority), rng, full=True)
        saved = journal.read(settings.folder / _JOURNAL) if settings.data else None
        if saved is not None:
            api.resume(saved.tables, saved.version)
        cluster = Cluster(api, ClusterSettings(nodes=settings.nodes, pace=0.0))
        audit = AuditLog(settings.audit_log, clock) if settings.audit_log else None
        api.guard.listeners += [audit] if audit else []
        # Its first content is the whole new cluster, or nothing.
        book = Journal(settings.folder / _JOURNAL, api.storage) if settings.data else None
        served: Transport = DurableTransport(api, book) if book else api
        http = HttpServer(served, clock, tls=tls)
        port = await _listen(http, settings, rng)
        tasks = [asyncio.create_task(task) for task in (stop.wait(), cluster.run(), _bound_memory(api, clock))]
        try:
            ready(_write_kubeconfig(settings, port, token))
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            done.pop().result()
        finally:
            for task in tasks:
                task.cancel()
            await http.stop()
            await api.close()
            if book is not None:
                await book.close()
            if audit is not None:
                audit.close()


@contextmanager
def _own(folder: Path) -> Iterator[None]:
    """Make the folder, and keep other processes from serving it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    handle = locks.acquire(folder / _LOCK)
    if handle is None:
        raise ServeError(f"Another process serves {str(folder)!r}; stop it first, or use another folder.")
    try:
        yield
    finally:
        locks.release(folder / _LOCK, handle)


def _token(folder: Path, rng: Random) -> str:
    path = folder / TOKEN
    with suppress(FileNotFoundError):
        if token := path.read_text().strip():
            return token
    token = f"{rng.getrandbits(256):064x}"
    files.replace(path, token.encode())
    return token


async def _listen(http: HttpServer, settings: Settings, rng: Random) -> int:
    """kubectl keeps what it discovered of a server by its port, so the folder keeps its port, and no two share one."""
    if settings.port is not None:
        if not await _start(http, settings.port):
            raise ServeError(f"Another program uses port {settings.port}; stop it, or choose another port.")
        return _keep_port(settings.folder, http.port)
    for port in (_last_port(settings.folder), *(rng.choice(PORTS) for _ in range(_TRIES))):
        if port is not None and await _start(http, port):
            return _keep_port(settings.folder, port)
    raise ServeError(f"{_TRIES} ports were tried and all are in use; choose one.")


async def _start(http: HttpServer, port: int) -> bool:
    try:
        await http.start(port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _last_port(folder: Path) -> int | None:
    try:
        return int((folder / _PORT).read_text())
    except (FileNotFoundError, ValueError):
        return None


def _keep_port(folder: Path, port: int) -> int:
    files.replace(folder / _PORT, str(port).encode(), sync=False)
    return port


def _write_kubeconfig(settings: Settings, port: int, token: str) -> Serving:
    url, path = f"https://{HOST}:{port}", settings.folder / _KUBECONFIG
    authority = base64.b64encode((settings.folder / certificates.AUTHORITY).read_bytes()).decode()
    name = json.dumps(settings.name)
    lines = [
        "apiVersion: v1",
        "kind: Config",
        "clusters:",
        f"- name: {name}",
        f"  cluster: {{server: {json.dumps(url)}, certificate-authority-data: {authority}}}",
        "users:",
        f"- name: {name}",
        f"  user: {{token: {json.dumps(token)}}}",
        "contexts:",
        f"- name: {name}",
        f"  context: {{cluster: {name}, user: {name}}}",
        f"current-context: {name}",
        "",
    ]
    files.replace(path, "\n".join(lines).encode(), sync=False)
    return Serving(server=url, kubeconfig=str(path), pid=os.getpid())


async def _bound_memory(api: Endpoint, clock: Clock) -> None:
    """Forget changes that are older than the last time."""
    while True:
        version = api.version
        await clock.sleep(COMPACTED_EVERY)
        api.compact(version)
        api.writes.clear()
