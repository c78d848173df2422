"""Runs both clients against a real server, which is killed and started again under them.

WRIT is the path of the program. Without it the tests are skipped by name.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import anyio
import httpx
import pytest

import writ
from serving import POLICY, WRIT, Server

pytestmark = pytest.mark.skipif(not WRIT, reason="WRIT does not name the program writ")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("writ") / "data")
    yield server
    server.kill()


def refund(amount: int) -> writ.Intent:
    return writ.Intent("payment.refund", "https://api.payments.example/v1/refunds", writ.Cost(amount, "EUR"))


def test_a_decision_and_its_receipt(server: Server) -> None:
    with writ.Client(server.url, server.token, POLICY, "billing-agent", timeout=20) as client:
        decision = client.evaluate(refund(50_001))
        assert not decision and "cost.exceeded" in decision.explain()
        client.verify(decision.receipt)
        assert client.credential()["organization_id"] == "demo"
        row = next(client.history(intent_id=decision.intent.intent_id))
        assert row["decision_id"] == decision.id


def test_a_stream_has_what_is_decided(server: Server) -> None:
    with writ.Client(server.url, server.token, POLICY, "billing-agent", timeout=20) as client:
        decided: list[str] = []
        done = threading.Event()

        def decide() -> None:  # the stream begins at some time
            while not done.wait(0.1):
                decided.append(client.evaluate(refund(50_002)).id)

        def own(last_event_id: str = "") -> tuple[str, str]:  # what was decided just before may be sent, too
            for event in client.stream(last_event_id, decision="deny"):
                if event.row and event.row.get("cost") == {"amount_minor": 50_002, "currency": "EUR"}:
                    return event.id, event.row["decision_id"]
            raise AssertionError("the stream ends")

        thread = threading.Thread(target=decide)
        thread.start()
        try:
            at, first = own()
            _, following = own(at)
        finally:
            done.set()
            thread.join()
        assert first in decided and following in decided[decided.index(first) + 1 :]


def test_no_call_runs_that_was_not_allowed_and_none_twice(server: Server) -> None:
    ran: Counter[str] = Counter()
    asked: set[str] = set()
    failed: Counter[str] = Counter()
    stop = threading.Event()
    lock = threading.Lock()

    def run(worker: int) -> None:
        with writ.Client(server.url, server.token, POLICY, "billing-agent") as client:

            @client.guard(
                action_type="payment.refund",
                resource="https://api.payments.example/v1/refunds",
                cost=lambda key, amount: writ.Cost(amount, "EUR"),
                key=lambda key, amount: key,
            )
            def act(key: str, amount: int) -> None:
                with lock:
                    ran[key] += 1

            n = 0
            while not stop.is_set():
                n += 1
                key, amount = f"{worker}-{n}", 100 if n % 2 else 50_001
                with lock:
                    asked.add(key)
                try:
                    act(key, amount)
                except writ.WritError as e:
                    with lock:
                        failed[type(e).__name__] += 1

    workers = [threading.Thread(target=run, args=(w,)) for w in range(4)]
    for w in workers:
        w.start()
    for _ in range(3):
        time.sleep(0.5)
        server.kill()
        time.sleep(0.2)
        server.start()
    time.sleep(0.5)
    stop.set()
    for w in workers:
        w.join()
    assert ran and failed["Denied"] and failed["NoDecision"], (len(ran), failed)
    assert max(ran.values()) == 1
    assert all(int(key.split("-")[1]) % 2 for key in ran), "a denied action ran"
    with writ.Client(server.url, server.token, POLICY, "billing-agent", timeout=60) as client:
        allowed = sum(row["decision"] == "allow" for row in client.history(decision="allow", agent_id="billing-agent"))
    assert len(ran) <= allowed


def test_a_key_repeats_the_decision(server: Server) -> None:
    replayed: list[bool] = []
    for _ in range(2):
        with writ.Client(server.url, server.token, POLICY, "billing-agent", timeout=20) as client:

            @client.guard(action_type="payment.refund", resource="https://api.payments.example/v1/refunds",
                          cost=writ.Cost(100, "EUR"), key="order-7")
            def act() -> None:
                decision = writ.current.get()
                assert decision is not None
                replayed.append(decision.replayed)

            act()
    assert replayed == [False, True]


def test_a_guard_waits_for_a_verdict(server: Server) -> None:
    approver = server.token_of("--sub", "finance")
    ran: list[int] = []
    with writ.Client(server.url, server.token, POLICY, "billing-agent", timeout=20) as client:
        guarded = client.guard(
            action_type="payment.refund",
            resource="https://api.payments.example/v1/refunds",
            cost=writ.Cost(30_000, "EUR"),
            key="order-8",
            wait=0,
        )(lambda: ran.append(1))
        with pytest.raises(writ.Held) as raised:
            guarded()
        with writ.Client(server.url, approver, timeout=20) as finance:
            finance.decide_approval(raised.value.approval_id, "approved")
        guarded()
        with pytest.raises(writ.AlreadyRedeemed):
            guarded()
    assert ran == [1]


def test_one_approval_runs_one_call(server: Server) -> None:
    approver = server.token_of("--sub", "finance")

    async def run() -> None:
        async with (
            writ.AsyncClient(server.url, server.token, POLICY, "billing-agent", timeout=20) as client,
            writ.AsyncClient(server.url, approver, timeout=20) as finance,
        ):
            with pytest.raises(writ.Held) as raised:
                await client.require(refund(30_000))
            held = raised.value
            other = client.resume(held.to_json())
            with pytest.raises(writ.Pending):
                await held.wait_async(0)
            await finance.decide_approval(held.approval_id, "approved", "fine")
            got: list[str] = []

            async def redeem(one: writ.Held) -> None:
                try:
                    got.append("ran" if await one.wait_async(10) else "not")
                except writ.WritError as e:
                    got.append(type(e).__name__)

            async with anyio.create_task_group() as group:
                group.start_soon(redeem, held)
                group.start_soon(redeem, other)
            assert sorted(got) == ["AlreadyRedeemed", "ran"]

    anyio.run(run)


def refunds(n: int) -> list[writ.Intent]:
    at = "2026-11-21T10:00:00Z"
    return [replace(refund(100), intent_id=str(uuid.uuid4()), issued_at=at) for _ in range(n)]


def open_streams(server: Server) -> int:
    found = re.search(r"^writ_intent_streams (\d+)$", httpx.get(server.admin + "/metrics").text, re.MULTILINE)
    assert found
    return int(found[1])


def decided_once(server: Server, decisions: Sequence[writ.Decision]) -> None:
    """Holds that each decision is the one that a client without a stream gets."""
    with writ.Client(server.url, server.token, POLICY, "billing-agent", timeout=60) as client:
        for at in range(0, len(decisions), 100):
            some = decisions[at : at + 100]
            again = client.evaluate_all([d.intent for d in some])
            assert [d.id for d in again if isinstance(d, writ.Decision)] == [d.id for d in some]


def test_a_stream_of_intents(server: Server) -> None:
    before = open_streams(server)

    def require(intent: writ.Intent) -> writ.Decision:
        while True:
            try:
                return client.require(intent)
            except writ.NoDecision:
                time.sleep(0.01)  # the server is being started

    with (
        writ.Client(server.url, server.token, POLICY, "billing-agent", timeout=60, stream=True) as client,
        ThreadPoolExecutor(100) as threads,
    ):
        first = list(threads.map(require, refunds(200)))
        assert open_streams(server) == before + 1
        with pytest.raises(writ.Denied):
            client.require(refund(50_001))
        with pytest.raises(writ.Problem) as raised:  # a request of its own, which ends no stream
            client.require(writ.Intent("payment.refund", "x" * 70_000))
        assert raised.value.status == 400
        assert open_streams(server) == before + 1
        rest = [threads.submit(require, intent) for intent in refunds(200)]
        server.kill()
        server.start()
        decided_once(server, [*first, *(future.result() for future in rest)])
    with writ.Client(server.url, "writ_none", POLICY, "billing-agent", timeout=60, stream=True) as stranger:
        with pytest.raises(writ.Problem) as refused:
            stranger.require(refund(100))
        assert refused.value.status == 401


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_stream_of_intents_async(server: Server, backend: str) -> None:
    async def run() -> list[writ.Decision]:
        before = open_streams(server)
        got: list[writ.Decision] = []

        async def require(intent: writ.Intent) -> None:
            while True:
                try:
                    got.append(await client.require(intent))
                    return
                except writ.NoDecision:
                    await anyio.sleep(0.01)  # the server is being started

        async with writ.AsyncClient(server.url, server.token, POLICY, "billing-agent", timeout=60, stream=True) as client:
            async with anyio.create_task_group() as group:
                for intent in refunds(200):
                    group.start_soon(require, intent)
            assert open_streams(server) == before + 1
            async with anyio.create_task_group() as group:
                with anyio.CancelScope() as given_up:  # a call that is given up ends no stream
                    async with anyio.create_task_group() as calls:
                        for intent in refunds(50):
                            calls.start_soon(client.require, intent)
                        await anyio.sleep(0.001)
                        given_up.cancel()
                for intent in refunds(100):
                    group.start_soon(require, intent)
            assert open_streams(server) == before + 1
            async with anyio.create_task_group() as group:
                for intent in refunds(200):
                    group.start_soon(require, intent)
                await anyio.sleep(0.001)
                server.kill()
                server.start()
        return got

    decided_once(server, anyio.run(run, backend=backend))
