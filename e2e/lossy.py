"""A proxy that loses responses: the API server executes the request, and the client gets no response.

`python -m e2e.lossy KUBECONFIG "PATCH /replicasets/"...` prints its port, and loses the first response to a request of
that method with that text in its path. It uses the credentials of the kubeconfig. It refuses streaming lists, as older
servers do, so that a client has to list.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import yaml

_HOP = {"connection", "transfer-encoding", "content-length", "host", "keep-alive"}


class Losing:
    """The responses that are still to be lost."""

    def __init__(self, wanted: list[str]) -> None:
        self._wanted = [(method, text) for method, _, text in (one.partition(" ") for one in wanted)]
        self._lock = threading.Lock()

    def take(self, method: str, path: str) -> bool:
        with self._lock:
            for one in self._wanted:
                if one[0] == method and one[1] in path:
                    self._wanted.remove(one)
                    return True
        return False


class Proxy(ThreadingHTTPServer):
    """Listens on a free port, with the address and credentials for the server."""

    daemon_threads = True

    def __init__(self, kubeconfig: Path, wanted: list[str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        content = yaml.safe_load(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        self.losing = Losing(wanted)
        self._upstream = urlsplit(cluster["server"])
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        self._tls.load_cert_chain(user["client-certificate"], user["client-key"])

    def connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._upstream.hostname or "", self._upstream.port, context=self._tls)


class Handler(BaseHTTPRequestHandler):
    """One connection of the client."""

    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """No log: nobody reads it."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        if "sendInitialEvents=true" in self.path:
            self._refuse_streaming()
            return
        upstream = self.server.connection()
        try:
            upstream.request(self.command, self.path, body or None, headers)
            answer = upstream.getresponse()
            if self.server.losing.take(self.command, self.path):
                answer.read()
                self.close_connection = True
                return
            self._answer(answer)
        finally:
            upstream.close()

    def _refuse_streaming(self) -> None:
        why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 422}
        body = json.dumps({**status, "reason": "Invalid", "message": why}).encode()
        self.send_response_only(422)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, answer: http.client.HTTPResponse) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while chunk := answer.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass  # noqa: N815 - names of http.server


def serve(kubeconfig: Path, wanted: list[str]) -> None:
    with Proxy(kubeconfig, wanted) as proxy:
        sys.stdout.write(f"{proxy.server_address[1]}\n")
        sys.stdout.flush()
        proxy.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2:])
