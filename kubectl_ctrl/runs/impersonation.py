"""`run --as-installed`: each controller acts as the ServiceAccount that install created for it.

It impersonates the account with the user's own credentials, so no token is created. Only the calls of controllers are
made so; the run itself identifies the cluster and finds other runners as the user.
"""

from __future__ import annotations

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.errors import Forbidden, NotFound, NotInstalled
from kubectl_ctrl.install.kinds import SERVICEACCOUNTS
from kubectl_ctrl.install.requirements import account, system_namespace
from kubectl_ctrl.kubeconfig.resolution import acting_as
from kubectl_ctrl.model.resources import ObjectRef
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.runs.settings import RunPlan
from kubectl_ctrl.target.connection import Connect


def account_ref(name: str) -> ObjectRef:
    return SERVICEACCOUNTS.ref(account(name), system_namespace(name))


def user_of(name: str) -> str:
    """The user name of an installed controller."""
    ref = account_ref(name)
    return f"system:serviceaccount:{ref.namespace}:{ref.name}"


async def installed(connect: Connect, plan: RunPlan, client: Client, name: str) -> Client:
    """A client that acts as that controller's ServiceAccount; the caller closes it."""
    ref = account_ref(name)
    try:
        await client.get(ref)
    except NotFound:
        raise NotInstalled(
            f"{name} is not installed: there is no {ref}.",
            next_step=str(ctrl("install", plan.options.words.get(name, name))),
        ) from None
    except Forbidden:
        pass  # the call below fails if it does not exist
    own = await connect(acting_as(plan.resolved, user_of(name)))
    try:
        await own.raw("GET", "/version")
    except Forbidden as error:
        if "impersonate" in error.message:
            await own.close()
            error.next_step = (
                f"ask for the missing right: verb impersonate, resource serviceaccounts, name {ref.name}, "
                f"in namespace {ref.namespace}"
            )
            raise
    except BaseException:
        await own.close()
        raise
    return own
