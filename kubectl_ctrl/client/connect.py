"""A client for a resolved kubeconfig."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from kubectl_ctrl.client.auth.credentials import Credentials
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.network import NetworkTransport
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.kubeconfig.resolution import Resolved


async def connect(
    resolved: Resolved,
    *,
    clock: Clock,
    rng: Random,
    environ: Mapping[str, str],
    user_agent: str,
    interactive: bool = False,
    remedy: Callable[[], str] = str,
) -> Client:
    """A client of the cluster; if `interactive`, a credential plugin may prompt the user.

    If the server does not answer, `remedy` returns the command that starts it, or "".
    Credentials are fetched here, so that a failing plugin is an error now and not at the first call.
    """
    credentials = Credentials(resolved, clock=clock, environ=environ, interactive=interactive)
    try:
        await credentials.current()
        transport = NetworkTransport(resolved, credentials, clock=clock, remedy=remedy)
    except BaseException:
        await credentials.close()
        raise
    return Client(transport, clock=clock, rng=rng, user_agent=user_agent)
