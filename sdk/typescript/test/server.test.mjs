// Runs the client against a real server, which is killed and started again under it. WRIT is the program.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import * as writ from "writ";

const program = process.env.WRIT;
const skip = program ? false : "WRIT does not name the program writ";
const policyId = "0c0ffee0-0000-4000-8000-000000000001";
const resource = "https://api.payments.example/v1/refunds";
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

test("a real server", { skip }, async (t) => {
  const data = mkdtempSync(join(tmpdir(), "writ-"));
  let [url, admin] = ["http://127.0.0.1:0", "http://127.0.0.1:0"]; // free ones, which stay
  let child;
  const start = () => new Promise((done, fail) => {
    const addresses = ["--addr", new URL(url).host, "--admin-addr", new URL(admin).host];
    child = spawn(program, ["serve", "--demo", "--data", data, ...addresses], { stdio: ["ignore", "pipe", "ignore"] });
    let said = "";
    child.stdout.on("data", (part) => {
      said += part;
      const serves = /^writ serves on (\S+); metrics and readiness on (\S+)$/m.exec(said);
      if (serves) {
        [, url, admin] = serves;
        done();
      }
    });
    child.once("exit", (code) => fail(new Error(`the server has ended with ${code}`)));
  });
  const kill = () => new Promise((done) => {
    child.once("exit", done);
    child.kill("SIGKILL");
  });
  const tokenOf = (sub) => execFileSync(program, ["token", "operator", "--org", "demo", "--sub", sub, "--data", data], { encoding: "utf8" }).trim();
  await start();
  const settings = { url, apiKey: tokenOf("ops"), policyId, agentId: "billing-agent", timeout: 20_000 };
  const client = new writ.Client(settings);
  const refund = (amountMinor) => ({ actionType: "payment.refund", resource, cost: { amountMinor, currency: "EUR" } });

  await t.test("a decision and its receipt", async () => {
    const d = await client.evaluate(refund(50_001));
    assert.equal(d.allowed, false);
    assert.match(d.explain(), /cost\.exceeded/);
    await client.verify(d.receipt);
    for await (const row of client.history({ intent_id: d.intent.intent_id })) assert.equal(row.decision_id, d.id);
  });

  await t.test("a key repeats the decision", async () => {
    const replayed = [];
    for (let i = 0; i < 2; i++) await new writ.Client(settings).run({ ...refund(100), key: "order-7" }, (d) => replayed.push(d.replayed));
    assert.deepEqual(replayed, [false, true]);
  });

  await t.test("a guard waits for a verdict", async () => {
    let ran = 0;
    const guarded = client.guard(() => ran++, { ...refund(30_000), key: "order-8", wait: 0 });
    const held = await guarded().catch((e) => e);
    assert.ok(held instanceof writ.Held, held);
    await new writ.Client({ ...settings, apiKey: tokenOf("finance") }).decideApproval(held.approvalId, "approved");
    await guarded();
    await assert.rejects(guarded(), writ.AlreadyRedeemed);
    assert.equal(ran, 1);
  });

  await t.test("one approval runs one call", async () => {
    const held = await client.require(refund(30_000)).catch((e) => e);
    assert.ok(held instanceof writ.Held, held);
    await assert.rejects(held.wait(0), writ.Pending);
    await new writ.Client({ ...settings, apiKey: tokenOf("finance") }).decideApproval(held.approvalId, "approved", "fine");
    const got = await Promise.all([held, new writ.Client(settings).resume(JSON.stringify(held))].map((h) => h.wait(10_000).then((d) => d.allowed, (e) => e.name)));
    assert.deepEqual(got.sort(), ["AlreadyRedeemed", true]);
  });

  await t.test("no call runs that was not allowed, and none twice", async () => {
    const [ran, failed] = [new Map(), new Map()];
    let stopped = false;
    const act = new writ.Client({ ...settings, timeout: 2000 }).guard((key) => ran.set(key, (ran.get(key) ?? 0) + 1), {
      actionType: "payment.refund", resource, cost: (_, amountMinor) => ({ amountMinor, currency: "EUR" }), key: (key) => key,
    });
    const work = async (worker) => {
      for (let n = 1; !stopped; n++) {
        await act(`${worker}-${n}`, n % 2 ? 100 : 50_001).catch((e) => failed.set(e.name, (failed.get(e.name) ?? 0) + 1));
      }
    };
    const all = Promise.all([1, 2, 3, 4].map(work));
    for (let i = 0; i < 3; i++) {
      await sleep(500);
      await kill();
      await sleep(200);
      await start();
    }
    await sleep(500);
    stopped = true;
    await all;
    assert.ok(ran.size > 0 && failed.get("Denied") && failed.get("NoDecision"), JSON.stringify([...failed]));
    assert.equal(Math.max(...ran.values()), 1);
    assert.ok([...ran.keys()].every((key) => Number(key.split("-")[1]) % 2 === 1), "a denied action ran");
  });

  await t.test("a stream of intents", async () => {
    const openStreams = async () => Number(/^writ_intent_streams (\d+)$/m.exec(await (await fetch(`${admin}/metrics`)).text())[1]);
    const refunds = (n) => Array.from({ length: n }, () => ({ ...refund(100), intentId: crypto.randomUUID(), issuedAt: "2026-11-21T10:00:00Z" }));
    const streaming = new writ.Client({ ...settings, timeout: 60_000, stream: true });
    const require = async (intent) => {
      for (;;) {
        try {
          return await streaming.require(intent);
        } catch (e) {
          if (!(e instanceof writ.NoDecision)) throw e;
          await sleep(10); // the server is being started
        }
      }
    };
    const first = await Promise.all(refunds(200).map(require));
    assert.equal(await openStreams(), 1);
    await assert.rejects(streaming.require(refund(50_001)), writ.Denied);
    // A request of its own, which ends no stream.
    await assert.rejects(streaming.require({ actionType: "t", resource: "x".repeat(70_000) }), (e) => e instanceof writ.Problem && e.status === 400);
    assert.equal(await openStreams(), 1);
    const rest = refunds(200).map(require);
    await sleep(1);
    await kill();
    await start();
    const decided = [...first, ...(await Promise.all(rest))];
    for (const d of decided) {
      const i = d.intent;
      const again = await client.require({ ...refund(100), intentId: i.intent_id, issuedAt: i.issued_at });
      assert.deepEqual([again.id, again.replayed], [d.id, true]);
    }
    const stranger = new writ.Client({ ...settings, apiKey: "writ_none", stream: true });
    await assert.rejects(stranger.require(refund(100)), (e) => e instanceof writ.Problem && e.status === 401);
  });
  await kill();
  rmSync(data, { recursive: true });
});
