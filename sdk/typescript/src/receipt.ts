// Reads and verifies receipts offline, with the public keys that the caller trusts. The format is described
// in the package storage/receipt of writ.

import { sha256 } from "@noble/hashes/sha2.js"; // the runtime's is a promise, which takes too long for many
import { WritError } from "./errors.js";
import { canonical, membersOf, strictJSON } from "./json.js";

/** A receipt that must not be relied on. */
export class ReceiptError extends WritError {}
/** The input is not a receipt. */
export class Malformed extends ReceiptError {}
/** No trusted key has the kid. */
export class UnknownKey extends ReceiptError {}
/** The key did not sign this content. The content was forged or changed. */
export class BadSignature extends ReceiptError {}
/** The receipt is genuine but expired. */
export class Expired extends ReceiptError {}

export type Outcome = "allow" | "deny" | "approval_required";

/** The signed outcome of a decision. */
export interface Receipt {
  readonly decision: Outcome;
  readonly decision_id: string;
  readonly digest: string;
  /** Unix seconds. */
  readonly exp: number;
  readonly sig: string;
  readonly kid: string;
}

const names = ["decision", "decision_id", "digest", "exp", "kid", "sig"];

/** Reads a receipt. It must have exactly its six members, each once. */
export function parseReceipt(data: string | Uint8Array): Receipt {
  return receiptOf(read(data));
}

function read(data: string | Uint8Array): unknown {
  try {
    return strictJSON(data);
  } catch (e) {
    throw new Malformed(`it is not JSON that can be read in one way: ${e instanceof Error ? e.name : "error"}`);
  }
}

/** Reads a receipt from JSON that strictJSON has read. */
export function receiptOf(value: unknown): Receipt {
  const m = membersOf(value);
  if (!m || Object.keys(m).sort().join() !== names.join()) {
    throw new Malformed(`the receipt has other members than ${names.join(", ")}`);
  }
  check(m);
  return m as unknown as Receipt;
}

function check(m: Record<string, unknown>): void {
  const bad = (why: string) => {
    throw new Malformed(why);
  };
  if (names.some((n) => typeof m[n] !== (n === "exp" ? "number" : "string"))) bad("a member of the receipt has another type");
  if (!["allow", "deny", "approval_required"].includes(m["decision"] as string)) bad("the receipt has an unknown decision");
  if (m["decision_id"] === "") bad("the receipt has no decision_id");
  if (!/^sha256:[0-9a-f]{64}$/.test(m["digest"] as string)) bad("the digest is not sha256: and 64 lower-case hex digits");
  const exp = m["exp"] as number;
  if (!Number.isSafeInteger(exp) || exp < 0 || Object.is(exp, -0)) bad("exp is out of range");
  if (!goodKid(m["kid"])) bad("kid is empty or too long");
}

const utf8 = new TextEncoder();

function goodKid(kid: unknown): kid is string {
  return typeof kid === "string" && kid !== "" && utf8.encode(kid).length <= 256;
}

/** Returns the canonical JSON that the server signs. */
export function leafOf(r: Receipt): string {
  const { decision, decision_id, digest, exp, kid } = r;
  return JSON.stringify({ decision, decision_id, digest, exp, kid });
}

/** The highest version of a policy that a receipt is tried with. An answer does not say its version. */
const maxVersion = 10_000;

/**
 * Returns the version of the policy under which r is the receipt of an intent, or 0 if it is of another one. intent has
 * the members as they were sent, with UUIDs in lower case. payload has the members of the payload that the receipt and
 * the intent lack. known is a version that is tried first.
 */
export function versionOf(
  r: Receipt,
  intent: Readonly<Record<string, unknown>>,
  payload: { approval_id: string; audit_digest: string; organization_id: string; reasons: readonly string[] },
  known = 1,
): number {
  const { approval_id, audit_digest, organization_id, reasons } = payload;
  const head = canonical({
    ...(approval_id && { approval_id }),
    ...(audit_digest && { audit_digest }),
    decision: r.decision,
    decision_id: r.decision_id,
    exp: r.exp,
    intent_digest: digestOf(hash(utf8.encode(canonical(intent)))),
    intent_id: intent["intent_id"],
    organization_id,
    policy_id: intent["policy_id"],
  }).slice(0, -1);
  const begun = hash(utf8.encode(`${head},"policy_version":`));
  const tail = `,"reasons":${canonical(reasons)}}`;
  for (let tried = 0; tried < maxVersion; tried++) {
    const version = ((known - 1 + tried) % maxVersion) + 1; // after the last come those below the known one
    if (digestOf(begun.clone().update(utf8.encode(version + tail))) === r.digest) return version;
  }
  return 0;
}

function digestOf(h: { digest(): Uint8Array }): string {
  return "sha256:" + hexOf(h.digest());
}

const hexes = Array.from({ length: 256 }, (_, b) => b.toString(16).padStart(2, "0"));

function hexOf(bytes: Uint8Array): string {
  let hex = "";
  for (const b of bytes) hex += hexes[b]!;
  return hex;
}

/** A set of trusted public keys, by key id. */
export class Keys {
  readonly #byId: ReadonlyMap<string, CryptoKey>;

  private constructor(byId: ReadonlyMap<string, CryptoKey>) {
    this.#byId = byId;
  }

  has(kid: string): boolean {
    return this.#byId.has(kid);
  }

  /** Reads a JSON Web Key Set. It takes the Ed25519 keys that may verify and ignores others. */
  static async parse(jwks: string | Uint8Array): Promise<Keys> {
    const keys = membersOf(read(jwks))?.["keys"];
    if (!Array.isArray(keys)) throw new Malformed("the key set has no array keys");
    const byId = new Map<string, CryptoKey>();
    for (const jwk of keys) await addKey(byId, membersOf(jwk));
    if (byId.size === 0) throw new Malformed("the key set has no Ed25519 key to verify with");
    return new Keys(byId);
  }

  /** Throws unless the key that r names has signed r, and r is in force at now (unix seconds). */
  async verify(r: Receipt, now = Date.now() / 1000): Promise<void> {
    check(r as unknown as Record<string, unknown>);
    const sig = decode(r.sig, "sig");
    if (sig.length < 137 || (sig.length - 137) % 32 !== 0 || sig[0] !== 1) throw new Malformed("sig has another length or version");
    const view = new DataView(sig.buffer, sig.byteOffset);
    const leaf = hash(new Uint8Array([0]), utf8.encode(leafOf(r))).digest();
    const root = rootOf(leaf, view.getUint32(133), view.getUint32(25), sig.subarray(137));
    const key = this.#byId.get(r.kid);
    if (!key) throw new UnknownKey("no trusted key has the receipt's kid");
    const head = join(utf8.encode("writ/head/v1\n"), sig.subarray(1, 69), root);
    if (!(await crypto.subtle.verify("Ed25519", key, sig.slice(69, 133), head))) {
      throw new BadSignature("the receipt's signature does not verify");
    }
    if (now >= r.exp) throw new Expired("the receipt has expired");
  }
}

/** The y coordinates of the points of small order, with which anybody can sign. */
const smallOrder = new Set([
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]);

async function addKey(byId: Map<string, CryptoKey>, jwk: Record<string, unknown> | null): Promise<void> {
  if (!jwk) throw new Malformed("a key of the key set is not an object");
  if ("d" in jwk) throw new Malformed("the key set has a private key (member d)");
  const ops = jwk["key_ops"] ?? ["verify"];
  const verifies = Array.isArray(ops) && ops.includes("verify") && (jwk["use"] ?? "sig") === "sig";
  if (jwk["kty"] !== "OKP" || jwk["crv"] !== "Ed25519" || !verifies) return;
  const { kid, x, alg = "EdDSA" } = jwk;
  if (alg !== "EdDSA" && alg !== "Ed25519") throw new Malformed("an Ed25519 key has another alg");
  if (!goodKid(kid) || byId.has(kid)) throw new Malformed("a key has no kid, or the kid of another key");
  const raw = typeof x === "string" ? decode(x, "x") : new Uint8Array();
  const y = raw.slice();
  y[31]! &= 0x7f;
  if (raw.length !== 32 || smallOrder.has(hexOf(y))) {
    throw new Malformed("a public key has another length or small order");
  }
  byId.set(kid, await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]));
}

/** Decodes base64url without padding. It accepts one spelling alone. */
function decode(text: string, name: string): Uint8Array<ArrayBuffer> {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) throw new Malformed(`${name} is not base64url`);
  const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  if (btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "") !== text) {
    throw new Malformed(`${name} is not canonical base64url without padding`);
  }
  return Uint8Array.from(binary, (c) => c.charCodeAt(0));
}

function join(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    out.set(p, at);
    at += p.length;
  }
  return out;
}

function hash(...parts: Uint8Array[]) {
  const h = sha256.create();
  for (const p of parts) h.update(p);
  return h;
}

/** Folds a leaf's hash with its inclusion proof (RFC 9162, 2.1.3). */
function rootOf(node: Uint8Array, index: number, size: number, proof: Uint8Array) {
  if (index >= size) throw new Malformed("the index is not below the size");
  for (let width = size; width > 1; index = Math.floor(index / 2), width = Math.ceil(width / 2)) {
    const sibling = index % 2 === 1 ? index - 1 : index + 1;
    if (sibling >= width) continue;
    const pair = proof.subarray(0, 32);
    if (pair.length === 0) throw new Malformed("the proof is too short");
    node = hash(new Uint8Array([1]), ...(sibling < index ? [pair, node] : [node, pair])).digest();
    proof = proof.subarray(32);
  }
  if (proof.length > 0) throw new Malformed("the proof is too long");
  return node;
}
