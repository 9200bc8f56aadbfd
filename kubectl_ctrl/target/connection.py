"""The cluster that a command line means: resolved, passed by the guard, connected, and told from all others."""

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


# Connects to a cluster as one command does it, with its clock, and asking questions only where somebody can answer.
Connect = Callable[[Resolved], Awaitable[Client]]


async def connected(user: User, resolved: Resolved, *, clock: Clock, rng: Random, interactive: bool) -> Client:
    """A client of it, under our name."""
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
    """The command that starts it again, of a cluster that we made; "" of any other."""
    made = guard.ours(resolved, Registry.of(user))
    return str(ctrl("up", "--name", made.name)) if made else ""


def credentials_from(resolved: Resolved) -> str:
    """Who is asked before the server is: without credentials there is no client."""
    plugin = resolved.auth.exec
    what = f"the credential plugin {plugin.command!r}" if plugin else "the identity provider"
    return f"{what} of user {resolved.user!r}"


async def check_namespace(client: Client, name: str) -> None:
    """Raise NotFound where the namespace is not there: waiting in one that was mistyped would look like success."""
    try:
        namespace = await client.get(NAMESPACES.ref(name))
    except NotFound as error:
        raise NotFound(
            f"Namespace {name!r} does not exist.",
            site=error.site,
            code=error.code,
            reason=error.reason,
            next_step=f"{command('kubectl', 'create', 'namespace', name)}, or name another one with -n",
        ) from error
    except Forbidden as error:
        _log.debug("It is not known whether the namespace is there: %s", error.message)
        return
    if is_deleting(namespace):
        _log.warning("Namespace %r is being deleted: nothing new can be made in it.", name, extra={"action": "ending"})


async def cluster_id(client: Client, resolved: Resolved, known: Sequence[str] = ()) -> str:
    """The same for every way to the same cluster where we may look; else what the kubeconfig says of it.

    `known` are keys that others, who were allowed to look, went by at the same server with the same CA, newest first.
    """
    try:
        return uid_of(await client.get(NAMESPACES.ref("kube-system")))
    except (Forbidden, NotFound) as error:
        _log.debug("The cluster's UID cannot be read: %s", error.message)
        said = unread_key(resolved.server, ca_fingerprint(resolved))
        return next((key for key in known if key != said), said)
