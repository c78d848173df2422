"""A server that gives scripted answers."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

CONFORMANCE = json.loads((Path(__file__).parents[2] / "conformance.json").read_text())


class Scripted(ThreadingHTTPServer):
    """Gives its answers in order, and keeps the bodies and headers of the requests."""

    daemon_threads = True

    def __init__(self, answers: Sequence[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.sent: list[dict[str, str]] = []
        self.lock = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of connections that a test cuts."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Scripted:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler, socketserver.StreamRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Scripted

    def log_message(self, format: str, *args: Any) -> None:
        """Writes nothing."""

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            n = len(self.server.bodies)
            self.server.bodies.append(body)
            self.server.paths.append(self.path)
            self.server.sent.append({k.lower(): v for k, v in self.headers.items()})
        script = self.server.answers[n]
        time.sleep(script.get("delay_ms", 0) / 1000)
        if script.get("cut"):
            self.connection.close()
            raise ConnectionAbortedError
        text = script.get("body", "").encode()
        self.send_response(script["status"])
        for name, value in (script.get("headers") or {}).items():
            self.send_header(name, value)
        if script["status"] != 204:
            self.send_header("Content-Length", "100000" if script.get("cut_body") else str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        if script.get("cut_body"):
            self.wfile.flush()
            self.connection.close()
            raise ConnectionAbortedError

    do_GET = do_POST = do_PATCH = answer


class ScriptedStreams:
    """Opens scripted streams of intents in order, and keeps the lines that come on each."""

    def __init__(self, streams: Sequence[dict[str, Any]]) -> None:
        self.streams = streams
        self.lines: list[str] = []
        self.opened = 0
        self._rest = CONFORMANCE["cases"][0]["answers"][0]["body"][1:]
        self._server = serve(
            self._handle, "127.0.0.1", 0, subprotocols=[Subprotocol("writ.v1")], process_request=self._refuse
        )
        self.url = f"http://127.0.0.1:{self._server.socket.getsockname()[1]}"

    def __enter__(self) -> ScriptedStreams:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()

    def _refuse(self, connection: ServerConnection, request: Request) -> Response | None:
        self.opened += 1
        if request.path != "/v1/policy/evaluate/stream" or self.opened > len(self.streams):
            return connection.respond(404, f"{request.path} for the stream {self.opened}")
        refused = self.streams[self.opened - 1].get("refused")
        if refused is None:
            return None
        body = refused["body"].encode()
        headers = Headers({**refused.get("headers", {}), "Content-Length": str(len(body))})
        return Response(refused["status"], "Refused", headers, body)

    def _handle(self, connection: ServerConnection) -> None:
        stream = self.streams[self.opened - 1]
        with contextlib.suppress(ConnectionClosed):
            for text in stream.get("hello", ['{"window":64,"window_bytes":4194304}']):
                connection.send(text)
            for answers in stream["answers"]:
                for text in answers if (ref := self._line(connection)) else []:
                    connection.send(text.replace("$REF", ref).replace("$ALLOW", self._rest))
            while not stream.get("cut"):
                self._line(connection)
        with contextlib.suppress(OSError):
            connection.socket.shutdown(socket.SHUT_RDWR)

    def _line(self, connection: ServerConnection) -> str:
        body = json.loads(connection.recv())
        ref = body.pop("ref")
        assert isinstance(ref, str)
        self.lines.append(json.dumps(body, sort_keys=True))
        return ref
