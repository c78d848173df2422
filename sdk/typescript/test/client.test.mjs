// Tests guards, held actions, settings and the calls beside evaluate.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import test from "node:test";
import { Webhook } from "standardwebhooks";
import * as writ from "writ";
import { conformance, scripted } from "./scripted.mjs";

const answerOf = (outcome) => conformance.cases.find((c) => c.want.outcome === outcome && c.answers.length === 1).answers[0];
const [allow, deny, held] = [answerOf("allow"), answerOf("denied"), answerOf("held")];
const recorded = { status: 200, body: '{"ok":true}' };
const broken = { status: 500, body: "{}" };
const clientOf = (url, more = {}) => new writ.Client({ url, apiKey: "sk_1", policyId: "p", agentId: "a", timeout: 50_000, ...more });
const intent = { actionType: "t", resource: "r" };

test("guard runs what is allowed and records it", () => scripted([allow, recorded], async (url, seen) => {
  const refund = clientOf(url).guard((order, total) => `refunded ${total} of ${order}`, {
    actionType: "payment.refund",
    resource: (order) => `https://api.example/${order}`,
    cost: (_, total) => ({ amountMinor: total, currency: "EUR" }),
    metadata: (order) => ({ "fact.arg.order": order }),
  });
  assert.equal(await refund("o1", 1250), "refunded 1250 of o1");
  const sent = JSON.parse(seen[0].body).intent;
  assert.equal(sent.resource, "https://api.example/o1");
  assert.deepEqual(sent.cost, { amount_minor: 1250, currency: "EUR" });
  assert.deepEqual(sent.metadata, { "fact.arg.order": "o1" });
  assert.deepEqual(JSON.parse(seen[1].body), {
    decision_id: JSON.parse(allow.body).decision_id, outcome: "executed", amount_minor: 1250, currency: "EUR",
  });
}));

test("guard with a key repeats the intent", () => scripted([allow, recorded, allow, recorded], async (url, seen) => {
  for (let i = 0; i < 2; i++) { // a program that crashed and began again
    await clientOf(url).guard((order) => order, { ...intent, key: (order) => order })("o1");
  }
  assert.equal(seen[0].body, seen[2].body);
}));

test("guard without a key is a new intent", () => scripted([allow, recorded, allow, recorded], async (url, seen) => {
  const guarded = clientOf(url).guard(() => 1, intent);
  await guarded();
  await guarded();
  assert.notEqual(JSON.parse(seen[0].body).intent.intent_id, JSON.parse(seen[2].body).intent.intent_id);
}));

test("an intent of a key has the same id in all clients", () => scripted([allow], async (url, seen) => {
  const { policy_id: policyId, agent_id: agentId, key, intent_id: want } = conformance.keyed;
  await clientOf(url, { policyId, agentId }).evaluate({ ...intent, key });
  const { intent_id: got, issued_at: at } = JSON.parse(seen[0].body).intent;
  assert.deepEqual([got, at], [want, "1970-01-01T00:00:00Z"]);
}));

for (const [name, answer] of Object.entries({ deny, held, broken })) {
  test(`guard does not run after ${name}`, () => scripted([answer], async (url, seen) => {
    let ran = 0;
    await assert.rejects(clientOf(url).guard(() => ran++, intent), writ.WritError);
    assert.deepEqual([ran, seen.length], [0, 1]);
  }));
}

test("a record that fails hides nothing", () => scripted([allow, broken, allow, broken], async (url, seen) => {
  const client = clientOf(url);
  assert.equal(await client.run(intent, () => 7), 7);
  await assert.rejects(client.run(intent, () => { throw new RangeError("the action's own"); }), RangeError);
  assert.equal(JSON.parse(seen[3].body).outcome, "failed");
}));

test("a held action is redeemed in another process", async () => {
  let carried, first;
  const id = JSON.parse(held.body).decision_id;
  await scripted([held], async (url, seen) => {
    const e = await clientOf(url).require({ ...intent, cost: { amountMinor: 5, currency: "EUR" }, sessionId: "s" }).catch((e) => e);
    assert.ok(e instanceof writ.Held);
    [carried, first] = [JSON.stringify(e), JSON.parse(seen[0].body)];
  });
  const approval = (status) => ({ status: 200, body: JSON.stringify({ approval_id: id, status }) });
  await scripted([approval("pending"), approval("approved"), allow], async (url, seen) => {
    const e = await clientOf(url).resume(carried).wait(5000).catch((e) => e);
    assert.ok(e.allowed || e instanceof writ.Pending, e);
    assert.deepEqual(JSON.parse(seen[2].body), { ...first, approval_id: id });
  });
  await scripted([approval("pending")], async (url) => {
    await assert.rejects(clientOf(url).resume(carried).wait(0), writ.Pending);
  });
});

for (const text of ["", "{}", "[]", '{"approval_id":"","intent":{},"reasons":[]}']) {
  test(`no held action: ${text}`, () => assert.throws(() => clientOf("http://h.example").resume(text), writ.ConfigError));
}

for (const head of ["HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n", "HTTP/1.1 200 OK\r\nX: "]) {
  test(`a server that drips does not extend the deadline: ${JSON.stringify(head)}`, async () => {
    const timers = [];
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => {
        socket.write(head);
        timers.push(setInterval(() => socket.write(" "), 50));
      });
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    await assert.rejects(clientOf(`http://127.0.0.1:${server.address().port}`, { timeout: 500 }).evaluate(intent), writ.NoDecision);
    timers.forEach(clearInterval);
    server.close();
  });
}

for (const [settings, words] of [
  [{ url: "" }, /WRIT_URL/], [{ url: "ftp://h" }, /http/], [{ url: "http://" }, /URL/], [{ url: "https://u@h" }, /user/],
  [{ url: "https://h?q=1" }, /query/], [{ apiKey: "" }, /WRIT_API_KEY/], [{ apiKey: "a b" }, /character/],
]) {
  test(`settings are refused: ${JSON.stringify(settings)}`, () => {
    assert.throws(() => new writ.Client({ url: "https://h", apiKey: "k", ...settings }), (e) => e instanceof writ.ConfigError && words.test(e.message));
  });
}

test("settings come from the environment", () => scripted([allow], async (url, seen) => {
  Object.assign(process.env, { WRIT_URL: `${url}/`, WRIT_API_KEY: "sk_env", WRIT_POLICY_ID: "p1", WRIT_AGENT_ID: "a1" });
  const client = new writ.Client();
  for (const name of ["URL", "API_KEY", "POLICY_ID", "AGENT_ID"]) delete process.env[`WRIT_${name}`];
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  assert.ok((await client.evaluate(intent, { traceparent })).allowed);
  const body = JSON.parse(seen[0].body);
  assert.deepEqual([seen[0].headers.authorization, seen[0].headers.traceparent, body.policy_id, body.intent.agent_id],
    ["Bearer sk_env", traceparent, "p1", "a1"]);
}));

test("an environment that may not be read is empty", () => {
  const { process } = globalThis;
  const env = new Proxy({}, { get() { throw new Error("no permission"); } }); // as Deno has it without --allow-env
  Object.defineProperty(globalThis, "process", { value: { env }, configurable: true });
  try {
    new writ.Client({ url: "https://h", apiKey: "k" });
    assert.throws(() => new writ.Client(), writ.ConfigError);
  } finally {
    Object.defineProperty(globalThis, "process", { value: process, configurable: true });
  }
});

test("history is an iterator over pages", () => scripted(
  [{ data: [{ n: 1 }, { n: 2 }], next_cursor: "c 2" }, { data: [{ n: 3 }], next_cursor: null }].map((p) => ({ status: 200, body: JSON.stringify(p) })),
  async (url, seen) => {
    const got = [];
    for await (const row of clientOf(url).history({ agent_id: "a/b" })) got.push(row.n);
    assert.deepEqual(got, [1, 2, 3]);
    assert.deepEqual(seen.map((s) => s.path), ["/v1/authorizations?agent_id=a%2Fb", "/v1/authorizations?agent_id=a%2Fb&cursor=c+2"]);
  },
));

test("a batch has a result for each intent", () => {
  const results = [JSON.parse(allow.body), JSON.parse(deny.body), { status: 400, code: "invalid_intent", detail: "x" }];
  const answer = { status: 200, body: JSON.stringify({ results }) };
  return scripted([answer, answer], async (url) => {
    const [a, d, p] = await clientOf(url).evaluateAll([intent, intent, intent]);
    assert.deepEqual([a.allowed, d.allowed, p.code], [true, false, "invalid_intent"]);
    await assert.rejects(clientOf(url).evaluateAll([intent, intent]), writ.AnswerError);
  });
});

test("what changes something is sent once", () => {
  const down = { status: 503, body: '{"status":503,"code":"unavailable","detail":"x","retryable":true}' };
  return scripted([down, down, down], async (url, seen) => {
    await assert.rejects(clientOf(url).setAgentStatus("a/b", "disabled"), writ.Problem);
    assert.deepEqual(seen.map((s) => s.path), ["/v1/agents/a%2Fb/status"]);
  });
});

test("trusted keys refuse another signature", () => scripted([allow], async (url) => {
  const keys = await writ.Keys.parse('{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w"}]}');
  await assert.rejects(clientOf(url, { keys }).evaluate(intent), /does not verify/);
}));

test("webhooks are verified", () => {
  const secret = `whsec_${Buffer.from("0123456789abcdef0123456789abcdef").toString("base64")}`;
  const [now, body] = [new Date(), '{"type":"approval.pending"}'];
  const headers = {
    "webhook-id": "m1", "webhook-timestamp": String(Math.floor(now / 1000)), "webhook-signature": new Webhook(secret).sign("m1", now, body),
  };
  assert.deepEqual(writ.verifyWebhook(secret, headers, body), { type: "approval.pending" });
  assert.throws(() => writ.verifyWebhook(secret, headers, `${body} `), writ.BadWebhook);
});
