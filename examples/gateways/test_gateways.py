"""Runs the gateways before Stripe's mock server and a real writ.

WRIT, STRIPE_MOCK and GATEWAY_GO are programs, and NODE_PATH_OF_WRIT is a directory with the package writ in its
node_modules. Without them the tests are skipped by name.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from serving import POLICY, Server

import writ

HERE = Path(__file__).parent
NEEDED = ("WRIT", "STRIPE_MOCK", "GATEWAY_GO", "NODE_PATH_OF_WRIT")
LACKING = [name for name in NEEDED if not os.environ.get(name)]
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"not set: {', '.join(LACKING)}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as s:
        port: int = s.getsockname()[1]
        return port


def await_port(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"nothing listens on {port} after a minute")


def post(url: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


class Payments(ThreadingHTTPServer):
    """Passes requests on to Stripe's mock server and counts them by their idempotency key."""

    def __init__(self, stripe: int) -> None:
        super().__init__(("127.0.0.1", 0), _Pass)
        self.stripe, self.calls = stripe, Counter[str]()
        self.crash_before_answer = False


class _Pass(BaseHTTPRequestHandler):
    server: Payments

    def log_message(self, format: str, *args: Any) -> None:
        """Writes nothing."""

    def do_POST(self) -> None:
        self.server.calls[self.headers["Idempotency-Key"]] += 1
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kept = {k: v for k, v in self.headers.items() if k in ("Authorization", "Content-Type", "Idempotency-Key")}
        status, answer = post(f"http://127.0.0.1:{self.server.stripe}{self.path}", body, kept)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class World:
    """Is a server of writ, Stripe's mock and the payments in front of it."""

    def __init__(self, data: Path) -> None:
        stripe = free_port()
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.mock = subprocess.Popen([os.environ["STRIPE_MOCK"], "-http-addr", f"127.0.0.1:{stripe}"], **quiet)
        self.writ = Server(data)
        await_port(stripe)
        self.payments = Payments(stripe)
        threading.Thread(target=self.payments.serve_forever, daemon=True).start()

    def token(self, sub: str) -> str:
        return self.writ.token_of("--sub", sub)

    def gateway(self, command: list[str], cwd: Path) -> tuple[subprocess.Popen[bytes], str]:
        port = free_port()
        env = {
            **os.environ,
            "WRIT_URL": self.writ.url,
            "WRIT_API_KEY": self.token("gateway"),
            "WRIT_POLICY_ID": POLICY,
            "WRIT_AGENT_ID": "billing-agent",
            "PAYMENTS_URL": f"http://127.0.0.1:{self.payments.server_address[1]}",
            "PAYMENTS_KEY": "sk_test_123",
            "PORT": str(port),
        }
        child = subprocess.Popen(command, env=env, cwd=cwd, stderr=subprocess.DEVNULL)
        await_port(port)
        return child, f"http://127.0.0.1:{port}/refunds"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("writ") / "data")
    yield world
    world.payments.shutdown()
    world.mock.kill()
    world.writ.kill()


@pytest.mark.parametrize("language", ["python", "typescript", "go"])
def test_gateway(language: str, world: World, tmp_path: Path) -> None:
    command = {"python": [sys.executable, str(HERE / "python/gateway.py")], "go": [os.environ["GATEWAY_GO"]]}
    cwd = tmp_path
    if language == "typescript":  # Node looks for packages beside the program
        cwd = Path(os.environ["NODE_PATH_OF_WRIT"])
        shutil.copy(HERE / "typescript/gateway.mjs", cwd)
        command["typescript"] = ["node", "gateway.mjs"]
    child, url = world.gateway(command[language], cwd)
    calls = world.payments.calls

    def refund(order: str, amount: int) -> tuple[int, str]:
        body = json.dumps({"order": f"{language}-{order}", "charge": "ch_123", "amount": amount}).encode()
        status, answer = post(url, body, {"Content-Type": "application/json"})
        return status, answer.decode()

    try:
        status, answer = refund("allowed", 1250)
        assert status == 200 and json.loads(answer)["object"] == "refund", answer
        assert calls[f"{language}-allowed"] == 1

        status, answer = refund("denied", 50_001)
        assert status == 403 and "cost.exceeded" in answer

        status, answer = refund("held", 30_000)
        assert status == 202 and "pending" in answer
        assert refund("held", 30_000)[0] == 202
        with writ.Client(world.writ.url, world.token("finance"), timeout=20) as finance:
            rows = finance.history(decision="approval_required")
            held = next(r for r in rows if r["decision_id"] in answer)
            finance.decide_approval(held["decision_id"], "approved")
        assert refund("held", 30_000)[0] == 200
        assert refund("held", 30_000)[0] == 409, "an approval runs one call"

        child.kill()  # after a crash the caller sends its order again
        child.wait()
        child, url = world.gateway(command[language], cwd)
        assert refund("allowed", 1250)[0] == 200, "the payment API sees the same idempotency key"
        assert refund("allowed", 1251)[0] == 503, "an order is one refund of one amount"

        assert post(url, b"{}", {})[0] == 400
        assert calls[f"{language}-denied"] == 0 and calls[f"{language}-held"] == 1 and calls[f"{language}-allowed"] == 2
    finally:
        child.kill()
