// Runs the shared cases and the vectors of receipts in a page. internal/tools/browser bundles it and serves the answers:
// those to case n below /case/n, and those to stream n below /stream/n.
import * as writ from "writ";
import vectors from "../../../storage/receipt/testdata/vectors.json";
import conformance from "../../conformance.json";
import { attempt, follow, outcomeOf } from "./cases.mjs";

/** Returns what a program could log of an error. */
const logged = (e) => `${e} ${e?.stack} ${e?.cause} ${JSON.stringify(e)}`;

globalThis.cases = async () => {
  const all = [];
  for (const [n, c] of conformance.cases.entries()) {
    const { decision, error } = await attempt(conformance, c, `${location.origin}/case/${n}`);
    all.push({
      outcome: error ? outcomeOf(error) : "allow", allowed: decision?.allowed ?? false, replayed: decision?.replayed ?? false,
      status: error?.status ?? 0, code: error?.code ?? "", logged: logged(error),
    });
  }
  return all;
};

globalThis.streams = async () => {
  const all = [];
  for (const n of conformance.streams.keys()) {
    const { events, error } = await follow(conformance, `${location.origin}/stream/${n}`);
    all.push({ events, outcome: outcomeOf(error), code: error?.code ?? "", logged: logged(error) });
  }
  return all;
};

/** Returns how many receipts verify, how many are refused as they should be, and what went wrong. */
globalThis.receipts = async () => {
  const keys = await writ.Keys.parse(JSON.stringify(vectors.keys));
  const classes = { malformed: writ.Malformed, unknown_key: writ.UnknownKey, signature: writ.BadSignature, expired: writ.Expired };
  const verify = async (text, now) => keys.verify(writ.parseReceipt(text), now).then(() => undefined, (e) => e);
  const found = { verified: 0, refused: 0, wrong: [] };
  for (const { receipt } of vectors.chain.flatMap((batch) => batch.receipts)) {
    const e = await verify(receipt, vectors.now);
    if (e === undefined) found.verified++;
    else found.wrong.push(`a good receipt: ${e}`);
  }
  const refuses = async (name, kind, text, now) => {
    const e = await (async () => verify(text, now))().catch((e) => e);
    if (e instanceof kind) found.refused++;
    else found.wrong.push(`${name}: ${e}`);
  };
  for (const v of vectors.refused) await refuses(v.name, classes[v.error], v.receipt, v.now);
  const text = vectors.chain[3].receipts[3].receipt;
  for (let at = 0; at < text.length; at++) {
    const changed = String.fromCharCode(text.charCodeAt(at) ^ 1);
    for (const mutant of [text.slice(0, at) + changed + text.slice(at + 1), text.slice(0, at) + text.slice(at + 1)]) {
      await refuses(mutant, writ.ReceiptError, mutant, vectors.now);
    }
  }
  return found;
};
