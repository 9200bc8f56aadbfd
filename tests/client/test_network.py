from __future__ import annotations

import asyncio
import base64
import gzip
import logging
import socket
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.client.network import NetworkTransport
from kubectl_ctrl.model.transport import HttpRequest, NoAnswer, NotTrusted, TooSlow
from tests.client.hands import HandClock, until
from tests.client.loopback import Request, plain, proxying, server_tls, serving
from tests.client.wired import CANARY, GET, connected, dev, hang, of
from tests.kubeconfig.kubeconfigs import certificate, kubeconfig, resolved

pytestmark = pytest.mark.real_loop


class TestRequests:
    async def test_what_is_sent(self, tmp_path: Path) -> None:
        async with serving(tls=server_tls()) as box, connected(tmp_path, box) as transport:
            request = HttpRequest(
                method="PATCH",
                path="/apis/a%2Fb/v1",
                query=(("labelSelector", "a=b,c in (d)"), ("x", "1"), ("x", "ü&")),
                headers={"User-Agent": "kubectl-ctrl/0.1 (foo)", "Content-Type": "application/json"},
                body=b'{"a":1}',
            )
            await transport.send(request)
            got = box.last
            assert (got.method, got.body) == ("PATCH", b'{"a":1}')
            assert got.target == "/apis/a%2Fb/v1?labelSelector=a%3Db%2Cc+in+%28d%29&x=1&x=%C3%BC%26"
            assert got.all("user-agent") == ["kubectl-ctrl/0.1 (foo)"]
            assert got.all("content-type") == ["application/json"]
            assert got.all("authorization") == ["Bearer t0ken"]
            assert got.all("accept-encoding") == ["gzip"]
            assert got.all("host") == [f"127.0.0.1:{box.port}"]
            assert got.all("cookie") == []

    async def test_a_path_in_the_server_url_stays(self, tmp_path: Path) -> None:
        async with serving() as box:
            transport = of(resolved(tmp_path, kubeconfig(cluster={"server": f"{box.url}/k8s/clusters/c-1/"})))
            await transport.send(GET)
            await transport.close()
            assert box.last.target == "/k8s/clusters/c-1/version"

    async def test_impersonation(self, tmp_path: Path) -> None:
        extra = ("k/l=1", "k/l=2", "Z%=3")
        async with (
            serving() as box,
            connected(tmp_path, box, as_user="me", as_uid="7", as_group=("a", "b"), as_user_extra=extra) as transport,
        ):
            await transport.send(GET)
            sent = [(name, value) for name, value in box.last.headers if name.startswith("Impersonate")]
            assert sent == [
                ("Impersonate-User", "me"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Extra-Z%25", "3"),
                ("Impersonate-Extra-k%2Fl", "1"),
                ("Impersonate-Extra-k%2Fl", "2"),
            ]
            assert box.last.all("authorization") == []  # never over plain http

    async def test_compression(self, tmp_path: Path) -> None:
        async def packed(request: Request, writer: asyncio.StreamWriter) -> None:
            wanted = request.one("accept-encoding") == "gzip"
            writer.write(plain(gzip.compress(b"hello"), Content_Encoding="gzip") if wanted else plain(b"plain"))

        async with serving(packed) as box:
            async with connected(tmp_path, box) as transport:
                assert (await transport.send(GET)).body == b"hello"
            async with connected(tmp_path, box, disable_compression=True) as transport:
                assert (await transport.send(GET)).body == b"plain"
                assert box.last.all("accept-encoding") == []

    async def test_answers(self, tmp_path: Path) -> None:
        async def moved(_request: Request, writer: asyncio.StreamWriter) -> None:
            writer.write(
                b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nWarning: 299 - a\r\nWarning: 299 - b\r\n"
                b"Set-Cookie: a=b\r\nContent-Length: 2\r\n\r\nhi"
            )

        async with serving(moved) as box, connected(tmp_path, box) as transport:
            for _ in range(2):
                answer = await transport.send(GET)
                assert (answer.status, answer.body) == (302, b"hi")
                assert answer.headers["location"] == "/elsewhere"
                assert answer.headers["warning"] == "299 - a, 299 - b"
            assert [request.target for request in box.requests] == ["/version", "/version"]
            assert box.last.all("cookie") == []
            assert box.connections == 1


class TestTls:
    async def test_the_server_name_and_the_client_certificate(self, tmp_path: Path) -> None:
        user = {
            "client-certificate-data": base64.b64encode(certificate("client")).decode(),
            "client-key-data": base64.b64encode(certificate("client.key")).decode(),
        }
        async with (
            serving(tls=server_tls("named")) as box,
            connected(tmp_path, box, user=user, tls_server_name="api.example") as transport,
        ):
            await transport.send(GET)
            assert (box.last.server_name, box.last.peer) == ("api.example", "alice")
            assert box.last.all("authorization") == []

    @pytest.mark.parametrize(
        ("server", "ca", "words"),
        [
            ("named", "ca", ["IP address mismatch", "--tls-server-name"]),
            ("server", "bare", ["not signed by the certificate authority of the kubeconfig"]),
            ("alone", "ca", ["self-signed certificate", "not signed by the certificate authority"]),
        ],
    )
    async def test_a_server_that_is_not_trusted(self, tmp_path: Path, server: str, ca: str, words: list[str]) -> None:
        async with serving(tls=server_tls(server)) as box:
            content = dev(box, ca=base64.b64encode(certificate(ca)).decode())
            transport = of(resolved(tmp_path, content))
            with pytest.raises(NotTrusted) as caught:
                await transport.send(GET)
            await transport.close()
            assert not caught.value.sent
            assert str(caught.value).startswith(f"The certificate of 127.0.0.1:{box.port} is not accepted: ")
            assert not [word for word in words if word not in str(caught.value)]
            assert "insecure" not in str(caught.value)

    async def test_a_server_without_tls(self, tmp_path: Path) -> None:
        async def complain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(plain(status="400 Bad Request"))
            writer.close()

        server = await asyncio.start_server(complain, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport = of(resolved(tmp_path, kubeconfig(cluster={"server": f"https://127.0.0.1:{port}"})))
        with pytest.raises(NoAnswer) as caught:
            await transport.send(GET)
        await transport.close()
        server.close()
        assert str(caught.value) == f"No TLS connection to 127.0.0.1:{port}: the server does not speak TLS there."
        assert not caught.value.sent


class TestProxies:
    async def test_a_tunnel(self, tmp_path: Path) -> None:
        async with proxying() as proxy, serving(tls=server_tls("named")) as box:
            url = proxy.url.replace("//", f"//me:{CANARY}%2F@")
            settings: dict[str, Any] = {"proxy-url": url, "tls-server-name": "api.example"}
            content = dev(box, **settings)
            transport = of(resolved(tmp_path, content))
            await transport.send(GET)
            await transport.send(GET)
            await transport.close()
            assert [(seen.method, seen.target) for seen in proxy.requests] == [("CONNECT", f"127.0.0.1:{box.port}")]
            login = base64.b64encode(f"me:{CANARY}/".encode()).decode()
            assert proxy.last.all("proxy-authorization") == [f"Basic {login}"]
            assert proxy.last.all("authorization") == []
            assert box.last.all("proxy-authorization") == []
            assert box.last.all("authorization") == ["Bearer t0ken"]
            assert box.last.server_name == "api.example"

    async def test_a_plain_server(self, tmp_path: Path) -> None:
        async with proxying() as proxy, serving() as box:
            settings: dict[str, Any] = {"proxy-url": proxy.url.replace("//", "//me:pw@")}
            transport = of(resolved(tmp_path, dev(box, **settings)))
            await transport.send(GET)
            await transport.close()
            assert proxy.last.target == f"{box.url}/version"
            assert proxy.last.all("proxy-authorization") == ["Basic bWU6cHc="]

    async def test_errors_name_the_proxy_without_its_login(self, tmp_path: Path) -> None:
        async def refuse(_request: Request, writer: asyncio.StreamWriter) -> None:
            writer.write(plain(status="407 Proxy Authentication Required"))

        async with serving(refuse) as box:
            url = box.url.replace("//", f"//me:{CANARY}@")
            content = kubeconfig(cluster={"server": "https://127.0.0.1:1", "proxy-url": url})
            transport = of(resolved(tmp_path, content))
            with pytest.raises(NoAnswer) as caught:
                await transport.send(GET)
            await transport.close()
            assert str(caught.value) == f"The proxy {box.url} refused to connect to 127.0.0.1:1 (HTTP 407)."
            assert not caught.value.sent
        transport = of(resolved(tmp_path, content))
        with pytest.raises(NoAnswer) as caught:
            await transport.send(GET)
        await transport.close()
        assert str(caught.value) == f"No connection to the proxy {box.url}: Connection refused."
        assert not caught.value.sent


class TestWhatIsKnownAboutARequestWithoutAnAnswer:
    async def test_refused(self, tmp_path: Path) -> None:
        async with serving() as box:
            pass
        async with connected(tmp_path, box) as transport:
            with pytest.raises(NoAnswer) as caught:
                await transport.send(GET)
            assert str(caught.value) == f"No connection to 127.0.0.1:{box.port}: Connection refused."
            assert not caught.value.sent

    async def test_connected_but_never_greeted(self, tmp_path: Path) -> None:
        clock = HandClock()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"https://127.0.0.1:{listener.getsockname()[1]}"
            transport = of(resolved(tmp_path, kubeconfig(cluster={"server": url})), clock=clock)
            call = asyncio.create_task(transport.send(HttpRequest(method="POST", path="/", deadline=30)))
            await until(lambda: clock.waits == [30])
            accepted, _ = await asyncio.to_thread(listener.accept)
            with accepted:
                await asyncio.to_thread(accepted.recv, 1)
                clock.advance(30)
                with pytest.raises(TooSlow, match=r"did not answer within 30 s\.") as caught:
                    await call
            assert not caught.value.sent
            await transport.close()

    async def test_sent_and_never_answered(self, tmp_path: Path) -> None:
        clock, reached = HandClock(), asyncio.Event()
        async with serving(hang(reached)) as box, connected(tmp_path, box, clock=clock) as transport:
            call = asyncio.create_task(transport.send(HttpRequest(method="POST", path="/", deadline=30)))
            await reached.wait()
            clock.advance(29.9)
            await asyncio.sleep(0)
            assert not call.done()
            clock.advance(0.2)
            with pytest.raises(TooSlow) as caught:
                await call
            assert caught.value.sent
            assert repr(transport) == f"NetworkTransport({box.url}, calls=0, streams=0, closed=False)"

    async def test_the_request_timeout_of_the_user_is_a_limit_too(self, tmp_path: Path) -> None:
        clock, reached = HandClock(), asyncio.Event()
        async with (
            serving(hang(reached)) as box,
            connected(tmp_path, box, clock=clock, request_timeout="5s") as transport,
        ):
            call = asyncio.create_task(transport.send(HttpRequest(method="GET", path="/", deadline=30)))
            await reached.wait()
            assert clock.waits == [5]
            clock.advance(5)
            with pytest.raises(TooSlow, match="within 5 s"):
                await call

    @pytest.mark.parametrize(
        ("answer", "sentence"),
        [
            (b"", "closed the connection without an answer."),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "was truncated."),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "was truncated."),
            (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "answered with something that is not HTTP."),
            (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope", "was truncated."),
        ],
    )
    async def test_broken_answers(self, tmp_path: Path, answer: bytes, sentence: str) -> None:
        async def broken(_request: Request, writer: asyncio.StreamWriter) -> None:
            writer.write(answer)
            writer.close()

        async with serving(broken) as box, connected(tmp_path, box) as transport:
            with pytest.raises(NoAnswer) as caught:
                await transport.send(GET)
            assert str(caught.value).endswith(sentence)
            assert caught.value.sent

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
    async def test_an_idle_connection_that_breaks_is_not_tried_again(self, tmp_path: Path, method: str) -> None:
        async def once(request: Request, writer: asyncio.StreamWriter) -> None:
            if len(box_requests) == 1:
                writer.write(plain())
            else:
                writer.close()

        box_requests: list[Request] = []
        async with serving(once) as box, connected(tmp_path, box) as transport:
            box.requests = box_requests
            await transport.send(GET)
            with pytest.raises(NoAnswer) as caught:
                await transport.send(HttpRequest(method=method, path="/"))
            assert caught.value.sent
            assert (len(box.requests), box.connections) == (2, 1)

    async def test_a_closed_transport(self, tmp_path: Path) -> None:
        async with serving() as box, connected(tmp_path, box) as transport:
            await transport.close()
            for use in (transport.send, transport.open):
                with pytest.raises(NoAnswer, match="is closed") as caught:
                    await use(GET)
                assert not caught.value.sent

    async def test_closing_ends_calls_that_wait(self, tmp_path: Path) -> None:
        reached = asyncio.Event()
        async with serving(hang(reached)) as box, connected(tmp_path, box) as transport:
            calls = [asyncio.create_task(transport.send(GET)) for _ in range(70)]  # more than there are connections
            await until(lambda: len(box.requests) == 64)
            await transport.close()
            ends = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(end) for end in ends} == {NoAnswer}
            assert sorted(end.sent for end in ends if isinstance(end, NoAnswer)) == [False] * 6 + [True] * 64


@pytest.mark.parametrize("status", ["200 OK", "401 Unauthorized", "500 Internal Server Error"])
async def test_secrets_reach_no_log_and_no_repr(tmp_path: Path, caplog: pytest.LogCaptureFixture, status: str) -> None:
    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(status=status))

    async def box_is_gone(transport: NetworkTransport) -> None:
        await transport.send(GET)

    caplog.set_level(logging.DEBUG)
    user = {"token": CANARY}
    async with serving(answer, tls=server_tls()) as box, connected(tmp_path, box, user=user) as transport:
        result = await transport.send(GET)
        assert box.last.one("authorization") == f"Bearer {CANARY}"
        assert CANARY not in f"{transport!r} {result!r} {transport.__dict__!r}"
    with pytest.raises(NoAnswer) as caught:
        async with connected(tmp_path, box, user=user) as transport:
            await box_is_gone(transport)
    assert CANARY not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert CANARY not in caplog.text
