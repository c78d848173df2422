// Runs the cases that all clients of writ share.
import assert from "node:assert/strict";
import { inspect } from "node:util";
import test from "node:test";
import * as writ from "writ";
import { conformance, scripted } from "./scripted.mjs";

const policyId = "0198f3c2-7a10-7c3e-9d41-000000000001";

function outcomeOf(e) {
  const kinds = [
    [writ.Denied, "denied"], [writ.Held, "held"], [writ.Problem, "problem"], [writ.AnswerError, "answer"],
    [writ.ExpiredReceipt, "expired"], [writ.AlreadyRedeemed, "redeemed"], [writ.Pending, "pending"],
  ];
  return kinds.find(([kind]) => e instanceof kind)?.[1] ?? "failed";
}

test("there are enough cases", () => assert.ok(conformance.cases.length >= 120));

test("conformance", { concurrency: 8 }, async (t) => {
  await Promise.all(conformance.cases.map((c) => t.test(c.name, () => scripted(c.answers, async (url, seen) => {
    // Only a case with a late answer waits for the timeout. A busy machine may need longer for the others.
    const timeout = c.answers.some((a) => a.delay_ms) ? conformance.timeout_ms : 50_000;
    const client = new writ.Client({ url, apiKey: conformance.api_key, policyId, agentId: "a", timeout });
    let error, decision;
    try {
      if (c.call === "require") {
        decision = await client.require({ actionType: "payment.refund", resource: "https://api.example/refunds" });
      } else {
        assert.equal(c.call, "redeem");
        const intent = { intent_id: "7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11", policy_id: policyId, agent_id: "a",
          action_type: "payment.refund", resource: "https://api.example/refunds", issued_at: "2026-11-21T10:00:00Z" };
        decision = await client.redeem(client.resume(JSON.stringify({ approval_id: conformance.approval_id, intent, reasons: [] })));
      }
    } catch (e) {
      assert.ok(e instanceof writ.WritError, inspect(e));
      error = e;
    }
    assert.equal(error ? outcomeOf(error) : "allow", c.want.outcome, inspect(error));
    assert.equal(decision?.allowed ?? false, c.want.outcome === "allow");
    assert.equal(seen.length, c.want.requests);
    assert.ok(new Set(seen.map((s) => s.body)).size <= 1, "a repetition differs from the first request");
    if (decision && c.want.replayed !== undefined) assert.equal(decision.replayed, c.want.replayed);
    if (error instanceof writ.Problem) {
      if (c.want.status) assert.equal(error.status, c.want.status);
      if (c.want.code) assert.equal(error.code, c.want.code);
    }
    assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes(conformance.api_key), "the API key is in the error");
    assert.ok(!inspect(client, { depth: 9, showHidden: true }).includes(conformance.api_key), "the API key is in the client");
  }))));
});

test("streams", { concurrency: 8 }, async (t) => {
  await Promise.all(conformance.streams.map((c) => t.test(c.name, () => scripted(c.answers, async (url, seen) => {
    const client = new writ.Client({ url, apiKey: conformance.api_key });
    const got = [];
    await assert.rejects(async () => {
      for await (const event of client.stream()) got.push(event);
    }, (e) => {
      assert.equal(outcomeOf(e), c.want.outcome, inspect(e));
      if (e instanceof writ.Problem) assert.equal(e.code, c.want.code ?? "");
      return !inspect(e, { depth: 9, showHidden: true }).includes(conformance.api_key);
    });
    assert.deepEqual(got, c.want.events);
    assert.deepEqual(seen.map((s) => s.headers["last-event-id"] ?? ""), c.want.last_event_ids);
  }))));
});

test("a stream that is left closes its connection", () => {
  const body = 'id: a1\ndata: {"intent_id":"i1"}\n\n';
  return scripted([{ status: 200, headers: { "Content-Type": "text/event-stream" }, body, cut_body: true }], async (url, seen) => {
    const client = new writ.Client({ url, apiKey: conformance.api_key });
    for await (const event of client.stream({ decision: "deny" }, { lastEventId: "a0" })) {
      assert.deepEqual(event, { id: "a1", row: { intent_id: "i1" } });
      break;
    }
    assert.deepEqual(seen.map((s) => [s.path, s.headers["last-event-id"]]), [["/v1/authorizations/stream?decision=deny", "a0"]]);
  });
});
