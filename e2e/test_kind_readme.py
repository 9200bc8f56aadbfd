"""The README's first tour on kind, where pods really run; test_readme.py types the whole README on kwok."""

from __future__ import annotations

from pathlib import Path

from e2e import tour
from e2e.user import USER_KUBECONFIG, KindUser


def test_the_first_tour(kind_user: KindUser, tmp_path: Path) -> None:
    """For a user without a current context.

    The environment supplies what the commands omit: there is no registry, and the name `ctrl` may be in use.
    """
    env = {**kind_user.env, "KUBECTL_CTRL_NAME": kind_user.name, "KUBECTL_CTRL_LOAD": kind_user.memcached}
    del env["KUBECTL_CTRL_PROVIDER"]
    with tour.tourist(tmp_path, env, USER_KUBECONFIG.replace("current-context: prod-eu\n", "")) as reader:
        tour.take(reader, kind_user, "kind")
    kind_user.assert_nothing_is_in_docker()
