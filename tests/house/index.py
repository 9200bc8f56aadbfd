"""A package index on loopback with one package, which can delay its responses."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO

WHEEL = "house_probe-1.0-py3-none-any.whl"
PARTS = ("METADATA", "WHEEL", "RECORD")
PATIENCE = 60.0


def wheel() -> bytes:
    """The package's file, the same bytes each time."""
    files = {
        "house_probe.py": "ANSWER = 42\n",
        "house_probe-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: house-probe\nVersion: 1.0\n",
        "house_probe-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "house_probe-1.0.dist-info/RECORD": "".join(
            f"{name},,\n" for name in ("house_probe.py", *(f"house_probe-1.0.dist-info/{part}" for part in PARTS))
        ),
    }
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return content.getvalue()


@dataclass(slots=True)
class Index:
    """The running index: `asked` is set by the first request, and no response is sent before `open`."""

    url: str
    asked: threading.Event = field(default_factory=threading.Event)
    open: threading.Event = field(default_factory=threading.Event)

    @property
    def lock(self) -> str:
        """The lines of a lock file for the package."""
        return f"house-probe==1.0 \\\n    --hash=sha256:{hashlib.sha256(wheel()).hexdigest()}\n"


@contextmanager
def running_index() -> Iterator[Index]:
    page = f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(self.do_HEAD())

        def do_HEAD(self) -> bytes:
            index.asked.set()
            index.open.wait(PATIENCE)
            body = wheel() if self.path.endswith(".whl") else page
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if body is page else "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return body

        def handle(self) -> None:
            try:
                super().handle()
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client was killed

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - name of the base class
            """No log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index = Index(f"http://127.0.0.1:{server.server_port}/simple")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield index
        finally:
            index.open.set()
            server.shutdown()
            thread.join()
