// Runs the cases that all clients of writ share.
import assert from "node:assert/strict";
import { inspect } from "node:util";
import test from "node:test";
import * as writ from "writ";
import { attempt, follow, outcomeOf } from "./cases.mjs";
import { conformance, scripted, scriptedStreams } from "./scripted.mjs";

test("there are enough cases", () => assert.ok(conformance.cases.length >= 120));

test("conformance", { concurrency: 8 }, async (t) => {
  await Promise.all(conformance.cases.map((c) => t.test(c.name, () => scripted(c.answers, async (url, seen) => {
    const { client, decision, error } = await attempt(conformance, c, url);
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

test("bound", { concurrency: 8 }, async (t) => {
  assert.ok(conformance.bound.length >= 31);
  const keys = await writ.Keys.parse(conformance.trusted);
  const intentOf = (i) => ({
    intentId: i.intent_id, policyId: i.policy_id, agentId: i.agent_id, actionType: i.action_type, resource: i.resource,
    cost: i.cost && { amountMinor: i.cost.amount_minor, currency: i.cost.currency },
    metadata: i.metadata, issuedAt: i.issued_at, sessionId: i.session_id,
  });
  await Promise.all(conformance.bound.map((c) => t.test(c.name, () => scripted(c.answers, async (url, seen) => {
    const client = new writ.Client({ url, apiKey: conformance.api_key, keys, timeout: 50_000 });
    const held = { approval_id: conformance.approval_id, intent: c.intents[0], reasons: [] };
    const calls = {
      require: async () => [await client.require(intentOf(c.intents[0]))],
      redeem: async () => [await client.redeem(client.resume(JSON.stringify(held)))],
      evaluate_all: () => client.evaluateAll(c.intents.map(intentOf), { together: true }),
    };
    const results = await calls[c.call]().catch((e) => [e]);
    const outcomes = results.map((r) => (r instanceof writ.Decision ? "allow" : outcomeOf(r)));
    assert.deepEqual(outcomes, c.want.outcomes, inspect(results));
    assert.ok(results.every((r) => !(r instanceof writ.Decision) || r.allowed));
    assert.equal(seen.length, c.want.requests, inspect(seen));
    assert.ok(!inspect(results, { depth: 9, showHidden: true }).includes(conformance.api_key), "the API key is in the error");
  }))));
});

test("intents", { concurrency: 8 }, async (t) => {
  assert.ok(conformance.intents.length >= 29);
  await Promise.all(conformance.intents.map((c) => t.test(c.name, () => scriptedStreams(c.streams, async (url, seen) => {
    const client = new writ.Client({ url, apiKey: conformance.api_key, policyId: "0198f3c2-7a10-7c3e-9d41-000000000001", agentId: "a", timeout: 50_000, stream: true });
    const got = [];
    for (let n = 0; n < c.calls; n++) got.push(await client.require({ actionType: "payment.refund", resource: "https://api.example/refunds" }).catch((e) => e));
    assert.deepEqual(got.map((r) => (r instanceof writ.Decision ? "allow" : outcomeOf(r))), c.want.outcomes, inspect(got));
    assert.equal(seen.opened, c.streams.length);
    if (c.want.lines !== undefined) assert.equal(seen.lines.length, c.want.lines);
    assert.ok(new Set(seen.lines).size <= c.calls, "a line that is sent again differs");
    if (c.want.replayed) assert.deepEqual(got.map((r) => r.replayed), c.want.replayed);
    if (c.want.codes) assert.deepEqual(got.map((r) => r.code ?? ""), c.want.codes);
    assert.ok(!inspect(got, { depth: 9, showHidden: true }).includes(conformance.api_key), "the API key is in the error");
  }))));
});

test("statuses", async (t) => {
  await Promise.all(conformance.statuses.map((c) => t.test(c.name, () => scripted(c.answers, async (url, seen) => {
    assert.equal(c.call, "set_organization_status");
    const client = new writ.Client({ url, apiKey: conformance.api_key });
    let error;
    try {
      await client.setOrganizationStatus(c.status);
    } catch (e) {
      assert.ok(e instanceof writ.WritError, inspect(e));
      error = e;
    }
    assert.equal(error ? outcomeOf(error) : "done", c.want.outcome, inspect(error));
    if (error instanceof writ.Problem) assert.equal(error.code, c.want.code);
    assert.deepEqual(seen.map((s) => [s.path, JSON.parse(s.body)]), [["/v1/organization/status", { status: c.status }]]);
    assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes(conformance.api_key), "the API key is in the error");
  }))));
});

test("streams", { concurrency: 8 }, async (t) => {
  await Promise.all(conformance.streams.map((c) => t.test(c.name, () => scripted(c.answers, async (url, seen) => {
    const { events, error } = await follow(conformance, url);
    assert.equal(outcomeOf(error), c.want.outcome, inspect(error));
    if (error instanceof writ.Problem) assert.equal(error.code, c.want.code ?? "");
    assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes(conformance.api_key), "the API key is in the error");
    assert.deepEqual(events, c.want.events);
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
