"""Runs the receiver between a real writ, a chat and a stand-in of an organization's provider. WRIT is the program."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from serving import POLICY, WRIT, Server

import writ

pytestmark = pytest.mark.skipif(not WRIT, reason="WRIT does not name the program writ")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as s:
        port: int = s.getsockname()[1]
        return port


def until(true: Callable[[], Any], what: str) -> Any:
    for _ in range(1200):
        if got := true():
            return got
        time.sleep(0.05)
    raise AssertionError(f"not after a minute: {what}")


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


class Site(ThreadingHTTPServer):
    """Is a server of the test. Its answers are those of a function: status, headers, body."""

    def __init__(self, answer: Callable[[str, str, bytes], tuple[int, dict[str, str], bytes]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                """Writes nothing."""

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, headers, answered = answer(self.path, self.headers.get("Authorization", ""), body)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(answered))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answered)

            do_POST = do_GET

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Provider:
    """Is a provider of OpenID Connect at which a browser is signed in already, as person."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {}
        self.key = RSAKey.generate_key(2048, {"kid": "k", "use": "sig", "alg": "RS256"})
        self.asked: dict[str, dict[str, str]] = {}
        self.site = Site(self.answer)

    def answer(self, path: str, authorization: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        at = urlsplit(path)
        url = self.site.url
        if at.path == "/.well-known/openid-configuration":
            doc: Any = {
                "issuer": url, "authorization_endpoint": f"{url}/authorize", "token_endpoint": f"{url}/token",
                "jwks_uri": f"{url}/keys", "id_token_signing_alg_values_supported": ["RS256"],
            }
        elif at.path == "/keys":
            doc = {"keys": [self.key.as_dict(private=False)]}
        elif at.path == "/authorize":
            asked = {k: v[0] for k, v in parse_qs(at.query).items()}
            code = secrets.token_hex(8)
            self.asked[code] = {**asked, **{"person": json.dumps(self.person)}}
            return 302, {"Location": f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"}, b""
        else:
            form = {k: v[0] for k, v in parse_qs(body.decode()).items()}
            asked = self.asked.pop(form["code"])
            hashed = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
            assert hashed.decode() == asked["code_challenge"]
            assert base64.b64decode(authorization.removeprefix("Basic ")) == b"approvals:hush"
            claims = {"iss": url, "aud": "approvals", "iat": int(time.time()), "exp": int(time.time()) + 60, "nonce": asked["nonce"]}
            token = jwt.encode({"alg": "RS256", "kid": "k"}, {**claims, **json.loads(asked["person"])}, self.key)
            doc = {"access_token": "t", "token_type": "Bearer", "expires_in": 60, "id_token": token}
        return 200, {"Content-Type": "application/json"}, json.dumps(doc).encode()


class World:
    """Is a server of writ with the demo's policies, a chat, a provider and the receiver."""

    def __init__(self, data: Path) -> None:
        own = free_port()
        self.site = f"http://127.0.0.1:{own}"
        self.said: list[str] = []
        self.provider = Provider()
        self.chat = Site(lambda path, authorization, body: (self.said.append(json.loads(body)["text"]), (200, {}, b"ok"))[1])
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.writ = Server(data, "--webhook-allow", "127.0.0.0/8")
        self.url, self.operator = self.writ.url, self.writ.token
        key = self.post("/v1/tokens", {"name": "chat", "scopes": ["approvals:read", "approvals:decide"]})
        hook = self.post("/v1/webhooks", {"url": f"{self.site}/webhook", "events": ["approval.pending"]})
        self.agent = self.post("/v1/tokens", {"name": "agent", "scopes": ["policy:evaluate"]})["token"]
        settings = {
            "PATH": os.environ["PATH"], "PUBLIC_URL": self.site, "APPROVERS_GROUP": "finance",
            "WRIT_URL": self.url, "WRIT_API_KEY": key["token"], "WRIT_WEBHOOK_SECRET": hook["secret"],
            "OIDC_ISSUER": self.provider.site.url, "OIDC_CLIENT_ID": "approvals", "OIDC_CLIENT_SECRET": "hush",
            "CHAT_WEBHOOK_URL": self.chat.url,
        }
        command = [sys.executable, "-m", "flask", "--app", "receiver", "run", "--port", str(own)]
        self.receiver = subprocess.Popen(command, cwd=Path(__file__).parent, env=settings, **quiet)
        until(lambda: listens(own), "the receiver listens")

    def post(self, path: str, body: dict[str, Any]) -> Any:
        answer = httpx.post(self.url + path, json=body, headers={"Authorization": f"Bearer {self.operator}"}, timeout=20)
        return answer.raise_for_status().json()

    def held(self, **metadata: str) -> tuple[writ.Held, str]:
        """Asks for an action that is held, and returns it with the link that the chat gets."""
        with writ.Client(self.url, self.agent, POLICY, "billing-agent", timeout=20) as client:
            with pytest.raises(writ.Held) as held:
                client.require(writ.Intent("payment.refund", "https://api.payments.example/v1/refunds", writ.Cost(30_000, "EUR"), metadata))
        text = until(lambda: next((s for s in self.said if held.value.approval_id in s), ""), "the chat gets a message")
        assert text == f"30000 minor units of EUR waits for approval: {self.site}/approvals/{held.value.approval_id}"
        return held.value, text.rpartition(" ")[2]

    def approval(self, held: writ.Held) -> dict[str, Any]:
        with writ.Client(self.url, self.operator, timeout=20) as client:
            return client.approval(held.approval_id)

    def browser(self, **person: Any) -> httpx.Client:
        """Is the browser of a person whom the provider knows."""
        self.provider.person = person
        return httpx.Client(timeout=20, follow_redirects=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("writ") / "data")
    yield world
    world.receiver.kill()
    world.writ.kill()


ANA = {"sub": "u-1", "email": "ana@ours.example", "groups": ["staff", "finance"]}


def test_an_approver_decides(world: World) -> None:
    held, link = world.held(order='A-1 <b onclick="x">\u202e')
    with world.browser(**ANA) as ana:
        page = ana.get(link).text
        for text in ("payment.refund", "https://api.payments.example/v1/refunds", "30000 minor units of EUR", "ana@ours.example"):
            assert text in page
        assert r"A-1 &lt;b onclick=&#34;x&#34;&gt;\u202e" in page, "a value is text, and nothing hides in it"
        assert 'method="post"' in page and world.approval(held)["status"] == "pending", "a look decides nothing"
        page = ana.post(link, data={"verdict": "approved", "comment": "invoice seen"}, headers={"Origin": world.site}).text
        assert "approved" in page and "<form" not in page
        again = ana.post(link, data={"verdict": "rejected"}, headers={"Origin": world.site})
        assert again.status_code == 409 and "approval_decided" in again.text
    approval = world.approval(held)
    assert (approval["status"], approval["comment"]) == ("approved", "u-1: invoice seen")
    with writ.Client(world.url, world.agent, POLICY, "billing-agent", timeout=20) as client:
        assert client.redeem(client.resume(held.to_json())).allowed


def test_an_approver_rejects(world: World) -> None:
    held, link = world.held()
    with world.browser(**ANA) as ana:
        ana.get(link)
        ana.post(link, data={"verdict": "rejected", "comment": ""}, headers={"Origin": world.site})
    assert world.approval(held)["status"] == "rejected"


def test_nobody_else_decides(world: World) -> None:
    held, link = world.held()
    ours, verdict = {"Origin": world.site}, {"verdict": "approved"}
    with httpx.Client(timeout=20) as anybody:  # the chat's preview, or who has the link alone
        answer = anybody.get(link)
        assert answer.status_code == 302 and answer.headers["Location"].startswith(world.provider.site.url)
        assert anybody.post(link, data=verdict, headers=ours).status_code == 401
        assert anybody.get(f"{world.site}/signed-in?code=made&state=up").status_code == 401
    for groups in (["staff"], [], "finance", None):
        with world.browser(sub="u-2", email="bob@ours.example", groups=groups) as bob:
            assert bob.get(link).status_code == 403
            assert bob.post(link, data=verdict, headers=ours).status_code == 403
    with world.browser(**ANA) as ana:
        ana.get(link)
        for origin in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {}):
            assert ana.post(link, data=verdict, headers=origin).status_code == 403, "another site sent the form"
        assert ana.post(link, data={"verdict": "revoked"}, headers=ours).status_code == 400
        assert ana.get(f"{link}?verdict=approved").status_code == 200
        assert "frame-ancestors 'none'" in ana.get(link).headers["Content-Security-Policy"]
        cookie = ana.cookies["session"]
    with httpx.Client(timeout=20, cookies={"session": cookie[:-2] + ("AA" if cookie[-2:] != "AA" else "BB")}) as forged:
        assert forged.post(link, data=verdict, headers=ours).status_code == 401
    assert world.approval(held)["status"] == "pending"


def test_only_writ_posts(world: World) -> None:
    body = json.dumps({"type": "approval.pending", "data": {"approval_id": "0c0ffee0-0000-4000-8000-000000000009"}}).encode()
    headers = {"webhook-id": "m", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}
    before = len(world.said)
    assert httpx.post(f"{world.site}/webhook", content=body, headers=headers, timeout=20).status_code == 401
    assert httpx.post(f"{world.site}/webhook", content=body, timeout=20).status_code == 401
    assert len(world.said) == before and not re.search("secret|whsec", "".join(world.said))
