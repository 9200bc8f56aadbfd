"""Records a real server's answers to the objects in tests/sandbox/goldens/problems.json, and writes them there.

Run it from the root of the repository with the kubeconfig of a new cluster:

    python hack/update.d/defaults/problems.py "$(hack/realkube up problems)"; hack/realkube down problems

Each case has a `given` object, the `plural` of its resource, and perhaps a `change`: a merge patch after the creation.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
import time
from pathlib import Path
from typing import Any

_FILE = Path("tests/sandbox/goldens/problems.json")
_CLUSTER_WIDE = ("priorityclasses", "storageclasses")


class Server:
    """One connection with the administrator's certificate."""

    def __init__(self, kubeconfig: Path) -> None:
        text = kubeconfig.read_text()
        path = {name: re.findall(rf"{name}: (.*)", text)[0] for name in ("certificate-authority", "client-certificate")}
        context = ssl.create_default_context(cafile=path["certificate-authority"])
        context.load_cert_chain(path["client-certificate"], re.findall(r"client-key: (.*)", text)[0])
        port = int(re.findall(r"127.0.0.1:(\d+)", text)[0])
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)

    def call(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        self._connection.request(method, path, json.dumps(body), {"Content-Type": media})
        return json.loads(self._connection.getresponse().read())


def _path(case: dict[str, Any]) -> str:
    version, plural = case["given"]["apiVersion"], case["plural"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/{plural}" if plural in _CLUSTER_WIDE else f"{root}/namespaces/goldens/{plural}"


def _answer(server: Server, case: dict[str, Any]) -> Any:
    path, given = _path(case), case["given"]
    if "change" not in case:
        return server.call("POST", f"{path}?dryRun=All", given)
    while server.call("POST", path, given).get("code") == 409:  # the last case's object is still there
        time.sleep(0.2)
    one = f"{path}/{given['metadata']['name']}"
    answer = server.call("PATCH", one, case["change"], "application/merge-patch+json")
    server.call("DELETE", f"{one}?gracePeriodSeconds=0")
    return answer


def main(kubeconfig: Path) -> None:
    server = Server(kubeconfig)
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "goldens"}})
    while "uid" not in server.call("GET", "/api/v1/namespaces/goldens/serviceaccounts/default").get("metadata", {}):
        time.sleep(0.2)
    lines = []
    for case in json.loads(_FILE.read_text()):
        causes = (_answer(server, case).get("details") or {}).get("causes") or []
        case["causes"] = [[one["reason"].removeprefix("FieldValue"), one["field"], one["message"]] for one in causes]
        lines.append(json.dumps(case, separators=(",", ":")))
    _FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


main(Path(sys.argv[1]))
