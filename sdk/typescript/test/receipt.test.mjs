// Verifies the vectors of package storage/receipt.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as writ from "writ";

const vectors = JSON.parse(readFileSync(new URL("../../../storage/receipt/testdata/vectors.json", import.meta.url), "utf8"));
const keys = await writ.Keys.parse(JSON.stringify(vectors.keys));
const classes = { malformed: writ.Malformed, unknown_key: writ.UnknownKey, signature: writ.BadSignature, expired: writ.Expired };
const verify = async (text, now) => keys.verify(writ.parseReceipt(text), now);

test("vectors verify", async () => {
  const receipts = vectors.chain.flatMap((batch) => batch.receipts);
  assert.equal(receipts.length, 22);
  for (const r of receipts) await verify(r.receipt, vectors.now);
});

for (const v of vectors.refused) {
  test(`refused: ${v.name}`, () => assert.rejects(() => verify(v.receipt, v.now), classes[v.error]));
}

test("mutants are refused", async () => {
  const text = vectors.chain[3].receipts[3].receipt;
  let n = 0;
  for (let at = 0; at < text.length; at++) {
    const changed = String.fromCharCode(text.charCodeAt(at) ^ 1);
    for (const mutant of [text.slice(0, at) + changed + text.slice(at + 1), text.slice(0, at) + text.slice(at + 1)]) {
      n++;
      await assert.rejects(() => verify(mutant, vectors.now), writ.ReceiptError, mutant);
    }
  }
  assert.ok(n >= 300);
});

for (const jwks of [
  "[]", '{"keys":[]}', '{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":""}]}',
  '{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","d":"x","x":"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w"}]}',
  '{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}',
  '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w"}]}',
]) {
  test(`no keys: ${jwks}`, () => assert.rejects(() => writ.Keys.parse(jwks), writ.ReceiptError));
}
