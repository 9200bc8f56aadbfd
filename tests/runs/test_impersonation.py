"""Acting as an installed ServiceAccount; e2e/test_rbac.py sees it with real rights."""

from __future__ import annotations

from pathlib import Path

from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, acting_as, load, load_again
from kubectl_ctrl.runs.impersonation import user_of

_CONFIG = """\
apiVersion: v1
kind: Config
current-context: kind-ctrl
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
contexts: [{name: kind-ctrl, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
"""


def test_it_stays_so_when_the_kubeconfig_is_read_again(tmp_path: Path) -> None:
    """A token that ran out is replaced by reading the files again: that must not give the user's own rights."""
    path = tmp_path / "kubeconfig"
    path.write_text(_CONFIG)
    mine = load(ConfigFlags(kubeconfig=str(path)), {}, tmp_path)
    acting = acting_as(mine, user_of("foo"))
    assert mine.impersonate.user == ""
    for one in (acting, load_again(acting)):
        assert one.impersonate.user == "system:serviceaccount:foo-system:kubectl-ctrl-foo"
        assert (one.server, one.auth, one.context) == (mine.server, mine.auth, mine.context)
