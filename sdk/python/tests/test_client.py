"""Tests guards, held actions, settings and the calls beside evaluate."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import anyio
import pytest
from scripted import CONFORMANCE, Scripted
from standardwebhooks.webhooks import Webhook

import writ

ALLOW: dict[str, Any] = next(c for c in CONFORMANCE["cases"] if c["name"] == "an allow")["answers"][0]
HELD: dict[str, Any] = next(c for c in CONFORMANCE["cases"] if c["want"]["outcome"] == "held")["answers"][0]
DENY: dict[str, Any] = next(c for c in CONFORMANCE["cases"] if c["want"]["outcome"] == "denied")["answers"][0]
RECORDED: dict[str, Any] = {"status": 200, "body": '{"ok":true}'}
BROKEN: dict[str, Any] = {"status": 500, "body": "{}"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("WRIT_URL", "WRIT_API_KEY", "WRIT_POLICY_ID", "WRIT_AGENT_ID"):
        monkeypatch.delenv(name, raising=False)
    yield


def client_of(server: Scripted, **more: Any) -> writ.Client:
    return writ.Client(server.url, "sk_1", "p", "a", **{"timeout": 50, **more})


def test_guard_runs_what_is_allowed_and_records_it() -> None:
    with Scripted([ALLOW, RECORDED]) as server, client_of(server) as client:

        @client.guard(
            action_type="payment.refund",
            resource=lambda order, total: f"https://api.example/{order}",
            cost=lambda order, total: writ.Cost(total, "EUR"),
            metadata=lambda order, total: {"fact.arg.order": order},
            key=lambda order, total: order,
        )
        def refund(order: str, total: int) -> str:
            decision = writ.current.get()
            assert decision is not None and decision.allowed and not decision.replayed
            return f"refunded {total}"

        assert refund("o1", total=1250) == "refunded 1250"
        assert writ.current.get() is None
        intent = json.loads(server.bodies[0])["intent"]
        assert intent["resource"] == "https://api.example/o1"
        assert intent["cost"] == {"amount_minor": 1250, "currency": "EUR"}
        assert intent["metadata"] == {"fact.arg.order": "o1"}
        assert json.loads(server.bodies[1]) == {
            "decision_id": json.loads(ALLOW["body"])["decision_id"],
            "outcome": "executed",
            "amount_minor": 1250,
            "currency": "EUR",
        }


def test_guard_with_a_key_repeats_the_intent() -> None:
    with Scripted([ALLOW, RECORDED, ALLOW, RECORDED]) as server:
        for _ in range(2):  # a program that crashed and began again
            with client_of(server) as client:
                guarded = client.guard(action_type="t", resource="r", key=lambda order: order)(lambda order: 1)
                assert guarded("o1") == 1
        assert server.bodies[0] == server.bodies[2]


def test_guard_without_a_key_is_a_new_intent() -> None:
    with Scripted([ALLOW, RECORDED, ALLOW, RECORDED]) as server, client_of(server) as client:
        guarded = client.guard(action_type="t", resource="r")(lambda: 1)
        assert (guarded(), guarded()) == (1, 1)
        ids = {json.loads(b)["intent"]["intent_id"] for b in server.bodies[::2]}
        assert len(ids) == 2


@pytest.mark.parametrize("answer", [DENY, HELD, BROKEN])
def test_guard_does_not_run_what_is_not_allowed(answer: dict[str, Any]) -> None:
    with Scripted([answer]) as server, client_of(server) as client:
        ran: list[int] = []
        with pytest.raises(writ.WritError):
            client.guard(action_type="t", resource="r")(lambda: ran.append(1))()
        assert not ran and len(server.bodies) == 1


def test_a_record_that_fails_hides_nothing() -> None:
    def act(fail: bool) -> int:
        if fail:
            raise KeyError("the action's own")
        return 7

    with Scripted([ALLOW, BROKEN, ALLOW, BROKEN]) as server, client_of(server) as client:
        guarded = client.guard(action_type="t", resource="r")(act)
        assert guarded(False) == 7
        with pytest.raises(KeyError):
            guarded(True)
        assert json.loads(server.bodies[3])["outcome"] == "failed"


def test_guard_refuses_the_other_kind_of_function() -> None:
    async def later() -> None:
        pass

    with writ.Client("http://h.example", "k") as client, pytest.raises(writ.ConfigError):
        client.guard(action_type="t", resource="r")(later)
    plain: Any = lambda: None  # noqa: E731
    with pytest.raises(writ.ConfigError):
        writ.AsyncClient("http://h.example", "k").guard(action_type="t", resource="r")(plain)


def test_an_async_guard_records_when_it_is_cancelled() -> None:
    async def run(server: Scripted) -> None:
        async with writ.AsyncClient(server.url, "k", "p", "a") as client:

            @client.guard(action_type="t", resource="r")
            async def act() -> None:
                await anyio.sleep_forever()

            with anyio.move_on_after(0.3):
                await act()

    with Scripted([ALLOW, RECORDED]) as server:
        anyio.run(run, server)
        assert json.loads(server.bodies[1])["outcome"] == "failed"


def approval(status: str, approval_id: str) -> dict[str, Any]:
    return {"status": 200, "body": json.dumps({"approval_id": approval_id, "status": status})}


def test_a_held_action_is_redeemed_in_another_process() -> None:
    with Scripted([HELD]) as server, client_of(server) as client:
        with pytest.raises(writ.Held) as raised:
            client.require(writ.Intent("t", "r", cost=writ.Cost(5, "EUR"), session_id="s"))
        carried, first = raised.value.to_json(), server.bodies[0]
    held_id = json.loads(HELD["body"])["decision_id"]
    with Scripted([approval("pending", held_id), approval("approved", held_id), ALLOW]) as server:
        with client_of(server) as client:
            held = client.resume(carried)
            allowed = json.loads(ALLOW["body"])["decision_id"] != held_id
            if allowed:
                assert held.wait(5).allowed
            else:
                with pytest.raises(writ.Pending):
                    held.wait(5)
        body = json.loads(server.bodies[2])
        assert body.pop("approval_id") == held_id
        assert body == json.loads(first)


def test_a_hold_without_a_verdict_is_pending() -> None:
    held_id = json.loads(HELD["body"])["decision_id"]
    with Scripted([HELD, approval("pending", held_id)]) as server, client_of(server) as client:
        with pytest.raises(writ.Held) as raised:
            client.require(writ.Intent("t", "r"))
        with pytest.raises(writ.Pending):
            raised.value.wait(0)
        with pytest.raises(writ.ConfigError):
            anyio.run(raised.value.wait_async, 0.0)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"approval_id":"","intent":{},"reasons":[]}'])
def test_what_is_no_held_action_is_refused(text: str) -> None:
    with writ.Client("http://h.example", "k") as client, pytest.raises(writ.ConfigError):
        client.resume(text)


@pytest.mark.parametrize("drip", ["headers", "body"])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_server_that_drips_does_not_extend_the_deadline(drip: str, kind: str) -> None:
    import socket
    import threading

    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            try:
                conn.recv(65536)
                if drip == "body":
                    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n")
                else:
                    conn.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not stopped.wait(0.05):
                    conn.sendall(b" ")
            except OSError:
                pass

    threading.Thread(target=serve, daemon=True).start()
    begin = time.monotonic()
    intent = writ.Intent("t", "r")
    with pytest.raises(writ.NoDecision):
        if kind == "sync":
            with writ.Client(url, "k", "p", "a", timeout=0.5) as client:
                client.evaluate(intent)
        else:

            async def run() -> None:
                async with writ.AsyncClient(url, "k", "p", "a", timeout=0.5) as client:
                    await client.evaluate(intent)

            anyio.run(run)
    stopped.set()
    listener.close()
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    ("url", "key", "words"),
    [
        ("", "k", "WRIT_URL"),
        ("ftp://h", "k", "http"),
        ("http://", "k", "host"),
        ("https://u@h", "k", "user"),
        ("https://h?q=1", "k", "query"),
        ("https://h", "", "WRIT_API_KEY"),
        ("https://h", "a b", "character"),
    ],
)
def test_settings_are_refused_by_name(url: str, key: str, words: str) -> None:
    with pytest.raises(writ.ConfigError, match=words):
        writ.Client(url, key)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scripted([ALLOW]) as server:
        monkeypatch.setenv("WRIT_URL", server.url + "/")
        monkeypatch.setenv("WRIT_API_KEY", "sk_env")
        monkeypatch.setenv("WRIT_POLICY_ID", "p1")
        monkeypatch.setenv("WRIT_AGENT_ID", "a1")
        writ.traceparent.set("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        with writ.Client() as client:
            assert client.evaluate(writ.Intent("t", "r"))
            assert "sk_env" not in repr(client)
        sent, body = server.sent[0], json.loads(server.bodies[0])
        assert sent["authorization"] == "Bearer sk_env" and sent["traceparent"].startswith("00-0af7")
        assert (body["policy_id"], body["intent"]["agent_id"]) == ("p1", "a1")
        writ.traceparent.set("")


def test_history_is_an_iterator_over_pages() -> None:
    rows = [{"decision_id": str(n)} for n in range(3)]
    pages: list[Any] = [{"data": rows[:2], "next_cursor": "c 2"}, {"data": rows[2:], "next_cursor": None}]
    with Scripted([{"status": 200, "body": json.dumps(p)} for p in pages]) as server:
        with client_of(server) as client:
            assert [row["decision_id"] for row in client.history(agent_id="a/b")] == ["0", "1", "2"]
        assert server.paths == ["/v1/authorizations?agent_id=a%2Fb", "/v1/authorizations?agent_id=a%2Fb&cursor=c+2"]


def test_a_batch_has_a_result_for_each_intent() -> None:
    results = [json.loads(ALLOW["body"]), json.loads(DENY["body"]), {"status": 400, "code": "invalid_intent", "detail": "x"}]
    with Scripted([{"status": 200, "body": json.dumps({"results": results})}] * 2) as server:
        with client_of(server) as client:
            allow, deny, problem = client.evaluate_all([writ.Intent("t", "r")] * 3)
            assert allow and isinstance(deny, writ.Decision) and not deny
            assert isinstance(problem, writ.Problem) and problem.code == "invalid_intent"
            with pytest.raises(writ.AnswerError):
                client.evaluate_all([writ.Intent("t", "r")] * 2)


def test_what_changes_something_is_sent_once() -> None:
    down = {"status": 503, "body": '{"status":503,"code":"unavailable","detail":"x","retryable":true}'}
    with Scripted([down] * 3) as server, client_of(server) as client:
        with pytest.raises(writ.Problem):
            client.set_agent_status("a/b", "disabled")
        assert server.paths == ["/v1/agents/a%2Fb/status"]


def test_trusted_keys_refuse_another_signature() -> None:
    other = '{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w"}]}'
    with Scripted([ALLOW]) as server, client_of(server, keys=other) as client:
        with pytest.raises(writ.AnswerError, match="does not verify"):
            client.evaluate(writ.Intent("t", "r"))


def test_webhooks_are_verified() -> None:
    secret = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
    now, body = datetime.now(timezone.utc), '{"type":"approval.pending"}'
    headers = {
        "webhook-id": "m1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign("m1", now, body),
    }
    assert writ.verify_webhook(secret, headers, body) == {"type": "approval.pending"}
    with pytest.raises(writ.BadWebhook):
        writ.verify_webhook(secret, headers, body + " ")


def test_each_error_can_be_named() -> None:
    found, kinds = set(), [writ.WritError]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        found.add(kind.__name__)
    assert len(found) > 10 and found <= set(writ.__all__)


def test_an_intent_of_a_key_has_the_same_id_in_all_clients() -> None:
    keyed = CONFORMANCE["keyed"]
    with Scripted([ALLOW, RECORDED]) as server:
        with writ.Client(server.url, "k", keyed["policy_id"], keyed["agent_id"]) as client:
            client.guard(action_type="t", resource="r", key=keyed["key"])(lambda: None)()
        intent = json.loads(server.bodies[0])["intent"]
        assert (intent["intent_id"], intent["issued_at"]) == (keyed["intent_id"], "1970-01-01T00:00:00Z")
