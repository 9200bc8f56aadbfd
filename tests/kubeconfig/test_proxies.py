from __future__ import annotations

import pytest

from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.kubeconfig.proxies import checked, from_environ

PROXY = "http://proxy:3128"
FAR = "https://api.far.example:6443"


@pytest.mark.parametrize(
    ("environ", "server", "proxy"),
    [
        ({}, FAR, None),
        ({"HTTPS_PROXY": PROXY}, FAR, PROXY),
        ({"https_proxy": PROXY}, FAR, PROXY),
        ({"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, FAR, PROXY),
        ({"HTTPS_PROXY": "", "https_proxy": PROXY}, FAR, PROXY),
        ({"HTTP_PROXY": PROXY}, FAR, None),
        ({"HTTP_PROXY": PROXY}, "http://api.far.example", PROXY),
        ({"HTTPS_PROXY": "proxy:3128"}, FAR, PROXY),
        ({"HTTPS_PROXY": "https://proxy"}, FAR, "https://proxy"),
        ({"HTTPS_PROXY": PROXY}, "https://localhost:1", None),
        ({"HTTPS_PROXY": PROXY}, "https://127.9.9.9", None),
        ({"HTTPS_PROXY": PROXY}, "https://[::1]:6443", None),
        ({"HTTPS_PROXY": PROXY}, "https://10.0.0.1", PROXY),
    ],
)
def test_the_environment(environ: dict[str, str], server: str, proxy: str | None) -> None:
    assert from_environ(server, environ) == proxy


@pytest.mark.parametrize(
    ("rule", "server", "direct"),
    [
        ("*", FAR, True),
        ("far.example", FAR, True),
        ("FAR.example", FAR, True),
        ("api.far.example", FAR, True),
        (".far.example", FAR, True),
        (".far.example", "https://far.example", False),
        ("far.example", "https://far.example", True),
        ("*.far.example", FAR, True),
        ("*.far.example", "https://far.example", False),
        ("r.example", FAR, False),
        ("far.example:6443", FAR, True),
        ("far.example:443", FAR, False),
        ("far.example:443", "https://far.example", True),
        ("a, ,far.example ,b", FAR, True),
        ("10.0.0.0/8", "https://10.1.2.3:6443", True),
        ("10.0.0.0/8", "https://11.1.2.3:6443", False),
        ("10.0.0.0/8", FAR, False),
        ("10.1.2.3", "https://10.1.2.3", True),
        ("10.1.2.3:80", "http://10.1.2.3", True),
        ("10.1.2.3:80", "https://10.1.2.3", False),
        ("fd00::/8", "https://[fd00::1]", True),
        ("[fd00::1]:443", "https://[fd00::1]", True),
        ("fd00::1", "https://[fd00::1]:6443", True),
        ("", FAR, False),
        (":443", FAR, False),
        ("a/b", FAR, False),
    ],
)
def test_no_proxy(rule: str, server: str, direct: bool) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        found = from_environ(server, {"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY, name: rule})
        assert found == (None if direct else PROXY)


@pytest.mark.parametrize(
    "url", ["socks5://h:1", "socks5h://h", "ftp://h", "http://", "http://h:x", "http://h:0", "h:1"]
)
def test_proxies_that_cannot_be_used_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(url.replace("//h", "//me:c4nary@h"), "proxy-url of cluster 'dev'")
    assert "proxy-url of cluster 'dev'" in str(caught.value)
    assert "c4nary" not in str(caught.value)
