"""Runs the cases that all clients of writ share, with both clients."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from scripted import CONFORMANCE, Scripted, ScriptedStreams

import writ

POLICY = "0198f3c2-7a10-7c3e-9d41-000000000001"


def outcome_of(error: Exception) -> str:
    for kind, name in (
        (writ.Denied, "denied"),
        (writ.Held, "held"),
        (writ.Problem, "problem"),
        (writ.AnswerError, "answer"),
        (writ.ExpiredReceipt, "expired"),
        (writ.AlreadyRedeemed, "redeemed"),
        (writ.Pending, "pending"),
    ):
        if isinstance(error, kind):
            return name
    return "failed"


def call(case: dict[str, Any], url: str, kind: str) -> writ.Decision:
    intent = writ.Intent("payment.refund", "https://api.example/refunds")
    # Only a case with a late answer waits for the timeout. A busy machine may need longer for the others.
    late = any(a.get("delay_ms") for a in case["answers"])
    timeout = CONFORMANCE["timeout_ms"] / 1000 if late else 50
    held_intent = writ.Intent(
        "payment.refund",
        "https://api.example/refunds",
        intent_id="7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11",
        policy_id=POLICY,
        agent_id="a",
        issued_at="2026-11-21T10:00:00Z",
    )

    if kind == "sync":
        with writ.Client(url, CONFORMANCE["api_key"], POLICY, "a", timeout=timeout) as client:
            if case["call"] == "require":
                return client.require(intent)
            return client.redeem(writ.Held(CONFORMANCE["approval_id"], held_intent, (), client))

    async def run() -> writ.Decision:
        async with writ.AsyncClient(url, CONFORMANCE["api_key"], POLICY, "a", timeout=timeout) as client:
            if case["call"] == "require":
                return await client.require(intent)
            return await client.redeem(writ.Held(CONFORMANCE["approval_id"], held_intent, (), client))

    return anyio.run(run)


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("case", CONFORMANCE["cases"], ids=lambda c: c["name"])
def test_conformance(case: dict[str, Any], kind: str) -> None:
    assert case["call"] in ("require", "redeem")
    want = case["want"]
    with Scripted(case["answers"]) as server:
        error: Exception | None = None
        decision: writ.Decision | None = None
        try:
            decision = call(case, server.url, kind)
        except writ.WritError as e:
            error = e
        outcome = "allow" if error is None else outcome_of(error)
        assert outcome == want["outcome"], error
        assert bool(decision) == (want["outcome"] == "allow")
        assert len(server.bodies) == want["requests"]
        assert len(set(server.bodies)) <= 1, "a repetition differs from the first request"
    if decision is not None and want.get("replayed") is not None:
        assert decision.replayed == want["replayed"]
    if isinstance(error, writ.Problem):
        assert error.status == (want.get("status") or error.status)
        assert error.code == (want.get("code") or error.code)
    cause: BaseException | None = error
    while cause is not None:
        assert CONFORMANCE["api_key"] not in f"{cause} {cause!r}"
        cause = cause.__cause__


def test_there_are_enough_cases() -> None:
    assert len(CONFORMANCE["cases"]) >= 120
    assert len(CONFORMANCE["bound"]) >= 31
    assert len(CONFORMANCE["intents"]) >= 29


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("case", CONFORMANCE["intents"], ids=lambda c: c["name"])
def test_intents(case: dict[str, Any], kind: str) -> None:
    intent, want = writ.Intent("payment.refund", "https://api.example/refunds"), case["want"]
    settings: Any = {"timeout": 50, "stream": True}
    got: list[writ.Decision | writ.WritError] = []
    with ScriptedStreams(case["streams"]) as server:

        async def run() -> None:
            async with writ.AsyncClient(server.url, CONFORMANCE["api_key"], POLICY, "a", **settings) as client:
                for _ in range(case["calls"]):
                    try:
                        got.append(await client.require(intent))
                    except writ.WritError as e:
                        got.append(e)

        if kind == "async":
            anyio.run(run)
        else:
            with writ.Client(server.url, CONFORMANCE["api_key"], POLICY, "a", **settings) as client:
                for _ in range(case["calls"]):
                    try:
                        got.append(client.require(intent))
                    except writ.WritError as e:
                        got.append(e)
        assert [outcome_of(r) if isinstance(r, writ.WritError) else "allow" for r in got] == want["outcomes"], got
        assert server.opened == len(case["streams"])
        assert len(server.lines) == want.get("lines", len(server.lines))
        assert len(set(server.lines)) <= case["calls"], "a line that is sent again differs"
    if "replayed" in want:
        assert [isinstance(r, writ.Decision) and r.replayed for r in got] == want["replayed"]
    if "codes" in want:
        assert [r.code if isinstance(r, writ.Problem) else "" for r in got] == want["codes"]
    assert CONFORMANCE["api_key"] not in repr(got)


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("case", CONFORMANCE["bound"], ids=lambda c: c["name"])
def test_bound(case: dict[str, Any], kind: str) -> None:
    intents = [
        writ.Intent(**{**i, "cost": writ.Cost(**i["cost"]) if "cost" in i else None}) for i in case["intents"]
    ]
    with Scripted(case["answers"]) as server:
        settings: Any = {"timeout": 50, "keys": CONFORMANCE["trusted"]}

        async def run() -> list[writ.Decision | writ.WritError]:
            async with writ.AsyncClient(server.url, CONFORMANCE["api_key"], **settings) as client:
                if case["call"] == "evaluate_all":
                    return await client.evaluate_all(intents, together=True)
                if case["call"] == "redeem":
                    return [await client.redeem(writ.Held(CONFORMANCE["approval_id"], intents[0], (), client))]
                return [await client.require(intents[0])]

        def run_sync() -> list[writ.Decision | writ.WritError]:
            with writ.Client(server.url, CONFORMANCE["api_key"], **settings) as client:
                if case["call"] == "evaluate_all":
                    return client.evaluate_all(intents, together=True)
                if case["call"] == "redeem":
                    return [client.redeem(writ.Held(CONFORMANCE["approval_id"], intents[0], (), client))]
                return [client.require(intents[0])]

        assert case["call"] in ("require", "redeem", "evaluate_all")
        try:
            results = run_sync() if kind == "sync" else anyio.run(run)
        except writ.WritError as e:
            results = [e]
        outcomes = [outcome_of(r) if isinstance(r, writ.WritError) else "allow" for r in results]
        assert outcomes == case["want"]["outcomes"], results
        assert [r.allowed for r in results if isinstance(r, writ.Decision)] == [True] * outcomes.count("allow")
        assert len(server.paths) == case["want"]["requests"], server.paths
    assert CONFORMANCE["api_key"] not in repr(results)


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("case", CONFORMANCE["statuses"], ids=lambda c: c["name"])
def test_statuses(case: dict[str, Any], kind: str) -> None:
    assert case["call"] == "set_organization_status"
    error: Exception | None = None
    with Scripted(case["answers"]) as server:

        async def run() -> None:
            async with writ.AsyncClient(server.url, CONFORMANCE["api_key"]) as client:
                await client.set_organization_status(case["status"])

        try:
            if kind == "async":
                anyio.run(run)
            else:
                with writ.Client(server.url, CONFORMANCE["api_key"]) as client:
                    client.set_organization_status(case["status"])
        except writ.WritError as e:
            error = e
        assert server.paths == ["/v1/organization/status"]
        assert [json.loads(body) for body in server.bodies] == [{"status": case["status"]}]
    assert ("done" if error is None else outcome_of(error)) == case["want"]["outcome"], error
    if isinstance(error, writ.Problem):
        assert error.code == case["want"]["code"]
    assert CONFORMANCE["api_key"] not in f"{error} {error!r}"


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("case", CONFORMANCE["streams"], ids=lambda c: c["name"])
def test_streams(case: dict[str, Any], kind: str) -> None:
    want = case["want"]
    got: list[writ.Event] = []
    with Scripted(case["answers"]) as server:

        async def run() -> None:
            async with writ.AsyncClient(server.url, CONFORMANCE["api_key"]) as client:
                async for event in client.stream():
                    got.append(event)

        with pytest.raises(writ.WritError) as raised:
            if kind == "async":
                anyio.run(run)
            else:
                with writ.Client(server.url, CONFORMANCE["api_key"]) as client:
                    for event in client.stream():
                        got.append(event)
        assert [s.get("last-event-id", "") for s in server.sent] == want["last_event_ids"]
    assert [(e.id, e.row, e.skipped) for e in got] == [
        (e["id"], e.get("row"), e.get("skipped")) for e in want["events"]
    ]
    assert outcome_of(raised.value) == want["outcome"]
    if isinstance(raised.value, writ.Problem):
        assert raised.value.code == want.get("code", "")
    assert CONFORMANCE["api_key"] not in f"{raised.value} {raised.value!r}"


def test_a_stream_that_is_left_closes_its_connection() -> None:
    body = 'id: a1\ndata: {"intent_id":"i1"}\n\n'
    answer = {"status": 200, "headers": {"Content-Type": "text/event-stream"}, "body": body, "cut_body": True}
    with Scripted([answer]) as server, writ.Client(server.url, CONFORMANCE["api_key"]) as client:
        for event in client.stream(last_event_id="a0", decision="deny"):
            assert event.row and (event.id, event.row["intent_id"]) == ("a1", "i1")
            break
        assert server.paths == ["/v1/authorizations/stream?decision=deny"]
        assert server.sent[0]["last-event-id"] == "a0"
