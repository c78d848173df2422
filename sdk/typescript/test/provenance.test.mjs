// Runs the cases of provenance that all clients of writ share, and what a file of JSON cannot say.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Provenance } from "writ";

const { cases } = JSON.parse(readFileSync(new URL("../../provenance.json", import.meta.url), "utf8"));

test("there are enough cases", () => assert.ok(cases.length >= 140));

test("provenance", async (t) => {
  for (const c of cases) {
    await t.test(c.name, () => {
      const p = new Provenance({ records: c.records });
      for (const step of c.session) {
        if (step.tool) p.result(step.tool, step.result, step.place);
        else p.user(step.user);
      }
      const want = Object.fromEntries(Object.entries(c.facts).map(([name, said]) => [`fact.source.${name}`, said]));
      assert.deepEqual(p.facts(c.arguments), want);
    });
  }
});

test("a value stands where a search character by character finds it", () => {
  const joins = (c) => c !== undefined && /[\p{L}\p{M}\p{N}\p{Cf}._\-@/+%:~#?=&]/u.test(c);
  const naive = (text, value) => text.some((_, i) => {
    const end = i + value.length;
    return value.every((c, j) => text[i + j] === c) && !joins(text[i - 1]) &&
      (!joins(text[end]) || (".:".includes(text[end]) && !joins(text[end + 1])));
  });
  let seed = 1;
  const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
  const characters = [..."ab.:@1é_🙂𝒳\u0301\u200D "];
  const text = (n) => Array.from({ length: 1 + random(n) }, () => characters[random(characters.length)]);
  let stood = 0;
  for (let i = 0; i < 50_000; i++) {
    const [words, value] = [text(12), text(3).filter((c) => c !== " ")];
    if (value.length === 0) continue;
    const p = new Provenance();
    p.user(words.join(""));
    const want = naive(words, value);
    assert.equal(p.facts({ v: value.join("") })["fact.source.v"], want ? "user" : "model", JSON.stringify([words, value]));
    stood += want ? 1 : 0;
  }
  assert.ok(stood > 300, `${stood} values stood`);
});

test("the oldest results are dropped", () => {
  const p = new Provenance({ records: { contacts: ["*"] } });
  p.user("write to ana@ours.example");
  p.result("contacts", ["eve@ours.example"]);
  p.result("read", "first-value");
  for (let i = 0; i < 4; i++) p.result("read", "x ".repeat(1 << 19));
  p.result("contacts", ["bob@ours.example"]);
  const to = ["ana@ours.example", "bob@ours.example", "first-value", "eve@ours.example", "x"];
  assert.deepEqual(p.facts({ to }), { "fact.source.to": "user,record,unknown,unknown,unknown" });
});

test("the user's words are kept", () => {
  const p = new Provenance();
  p.user("ana@ours.example");
  p.user("x".repeat(64 << 10));
  for (let i = 0; i < 5; i++) p.result("read", "y ".repeat(1 << 19));
  assert.deepEqual(p.facts({ to: "ana@ours.example, xyz" }), { "fact.source.to": "user,unknown" });
});

test("a number in a text of JSON is as it is written", () => {
  const p = new Provenance();
  p.result("read", '{"amount":98.70,"id":12345678901234567890,"say":"it\\"s -1.50 5"}');
  assert.deepEqual(p.facts({ v: "98.70,12345678901234567890,-1.50" }), { "fact.source.v": "text,text,text" });
});

test("what is no JSON is refused", () => {
  const p = new Provenance();
  for (const value of [NaN, [Infinity], undefined, () => 1, 10n]) {
    assert.throws(() => p.facts({ v: value }), TypeError);
    assert.throws(() => p.result("read", value), TypeError);
  }
});

test("members are in the order of their code points, and __proto__ is one", () => {
  const p = new Provenance();
  p.user("first");
  assert.deepEqual(p.facts({ v: { "𝒳": "second", "\uFF5A": "first" } }), { "fact.source.v": "user,model" });
  assert.deepEqual(p.facts(JSON.parse('{"v":{"__proto__":"evil"}}')), { "fact.source.v": "model" });
});
