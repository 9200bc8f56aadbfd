"""Connects to the selected cluster, and identifies it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.connect import connect
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.registry import Registry, unread_key
from kubectl_ctrl.errors import Forbidden, NotFound
from kubectl_ctrl.kubeconfig.resolution import Resolved, ca_fingerprint
from kubectl_ctrl.model.objects import is_deleting, uid_of
from kubectl_ctrl.model.resources import NAMESPACES
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.target import guard
from kubectl_ctrl.user import User
from kubectl_ctrl.version import VERSION

_log = logging.getLogger(__name__)


# Connects to a cluster with the clock of a command; credential plugins ask questions only on a terminal.
Connect = Callable[[Resolved], Awaitable[Client]]


async def connected(user: User, resolved: Resolved, *, clock: Clock, rng: Random, interactive: bool) -> Client:
    """A client with the user agent of kubectl-ctrl."""
    return await connect(
        resolved,
        clock=clock,
        rng=rng,
        environ=user.environ,
        user_agent=f"kubectl-ctrl/{VERSION}",
        interactive=interactive,
        remedy=lambda: started_by(user, resolved),
    )


def started_by(user: User, resolved: Resolved) -> str:
    """The command that starts a managed cluster; "" for any other."""
    made = guard.managed(resolved, Registry.of(user))
    return str(ctrl("up", "--name", made.name)) if made else ""


def credentials_from(resolved: Resolved) -> str:
    """The program or service that gives the credentials, which is called before the server."""
    plugin = resolved.auth.exec
    what = f"the credential plugin {plugin.command!r}" if plugin else "the identity provider"
    return f"{what} of user {resolved.user!r}"


async def check_namespace(client: Client, name: str) -> None:
    """NotFound if the namespace does not exist: a run in a mistyped one would look like success."""
    try:
        namespace = await client.get(NAMESPACES.ref(name))
    except NotFound as error:
        raise NotFound(
            f"Namespace {name!r} does not exist.",
            site=error.site,
            code=error.code,
            reason=error.reason,
            next_step=f"{command('kubectl', 'create', 'namespace', name)}, or select another one with -n",
        ) from error
    except Forbidden as error:
        _log.debug("Cannot read the namespace: %s", error.message)
        return
    if is_deleting(namespace):
        _log.warning(
            "Namespace %r is being deleted: no objects can be created in it.", name, extra={"action": "ending"}
        )


async def cluster_id(client: Client, resolved: Resolved, known: Sequence[str] = ()) -> str:
    """The key of a cluster: the UID of kube-system, which is the same through every context.

    Without the right to read it, a recorded key of the same server and CA (`known`, newest first), or else a key made
    from the kubeconfig.
    """
    try:
        return uid_of(await client.get(NAMESPACES.ref("kube-system")))
    except (Forbidden, NotFound) as error:
        _log.debug("Cannot read the UID of the cluster: %s", error.message)
        fallback = unread_key(resolved.server, ca_fingerprint(resolved))
        return next((key for key in known if key != fallback), fallback)
