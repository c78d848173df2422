import type { components } from "./api.js";
import { AnswerError, ConfigError, ExpiredReceipt, WritError, problemOf } from "./errors.js";
import { membersOf } from "./json.js";
import { Malformed, receiptOf, type Outcome, type Receipt } from "./receipt.js";
import type { Client } from "./client.js";

/** An amount in the smallest unit of a currency (ISO 4217), such as cents. */
export interface Cost {
  amountMinor: number;
  currency: string;
}

/** An action that an agent wants to take. The client fills in what is optional. */
export interface Intent {
  actionType: string;
  resource: string;
  cost?: Cost | undefined;
  /** Keys that begin with "fact." are the statements of this program and not of the agent. */
  metadata?: Readonly<Record<string, string>> | undefined;
  /**
   * A key of the caller's own, such as an order's number. It makes the intent's id, so a caller that crashed and
   * asks again gets the same decision. A repetition must have the same issuedAt: without one it is of 1970.
   */
  key?: string | undefined;
  /** A UUID of the caller's own. The server decides an intent once. */
  intentId?: string | undefined;
  policyId?: string | undefined;
  agentId?: string | undefined;
  /** RFC 3339. */
  issuedAt?: string | undefined;
  sessionId?: string | undefined;
}

/** An intent as it is sent. */
export type WholeIntent = Readonly<components["schemas"]["ActionIntent"]>;

/** Fills in the members that the caller left out. */
export async function complete(i: Intent, policyId: string, agentId: string): Promise<WholeIntent> {
  const policy = i.policyId || policyId;
  const agent = i.agentId || agentId;
  if (!policy) throw new ConfigError("the intent has no policy: set policyId or WRIT_POLICY_ID");
  if (!agent) throw new ConfigError("the intent has no agent: set agentId or WRIT_AGENT_ID");
  if (!i.actionType || !i.resource) throw new ConfigError("the intent has no action type or no resource");
  if (i.key === "") throw new ConfigError("the intent's key is empty");
  const own = i.key === undefined ? undefined : await keyed(policy, agent, i.key);
  return {
    intent_id: i.intentId || own || crypto.randomUUID(),
    policy_id: policy,
    agent_id: agent,
    action_type: i.actionType,
    resource: i.resource,
    ...(i.cost && { cost: { amount_minor: i.cost.amountMinor, currency: i.cost.currency } }),
    ...(i.metadata && Object.keys(i.metadata).length > 0 && { metadata: { ...i.metadata } }),
    issued_at: i.issuedAt || (own ? "1970-01-01T00:00:00Z" : new Date().toISOString()),
  };
}

const keyNamespace = "6f1d2a4e9c1b5d0e8a573c6b2f7e9d10";

/** Returns the id of an intent that is made from a caller's own key (a UUID of version 5). */
export async function keyed(policyId: string, agentId: string, key: string): Promise<string> {
  const name = new TextEncoder().encode(JSON.stringify([policyId, agentId, key]));
  const space = Uint8Array.from(keyNamespace.match(/../g)!, (h) => parseInt(h, 16));
  const all = new Uint8Array(space.length + name.length);
  all.set(space);
  all.set(name, space.length);
  const b = new Uint8Array(await crypto.subtle.digest("SHA-1", all)).slice(0, 16);
  b[6] = (b[6]! & 0x0f) | 0x50;
  b[8] = (b[8]! & 0x3f) | 0x80;
  const hex = [...b].map((x) => x.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The decision about an intent. An object is always true in a condition: ask for `allowed`, or use `require`. */
export class Decision {
  readonly #allowed: boolean;

  constructor(
    /** As sent, with the members that the client filled in. */
    readonly intent: WholeIntent,
    readonly id: string,
    readonly outcome: Outcome,
    /** A sentence each, behind its code. */
    readonly reasons: readonly string[],
    readonly receipt: Receipt,
    /** The intent was decided before. */
    readonly replayed: boolean,
    allowed: boolean,
    readonly sessionId = "",
    /** The digest of the decision's row of the history, if the server says it. */
    readonly auditDigest = "",
  ) {
    this.#allowed = allowed;
  }

  /** Whether the action may run. */
  get allowed(): boolean {
    return this.#allowed;
  }

  /** Returns the outcome and the reasons in words. */
  explain(): string {
    return `${this.outcome} (decision ${this.id}): ${this.reasons.join("; ")}`;
  }
}

/** The action is denied. */
export class Denied extends WritError {
  constructor(readonly decision: Decision) {
    super(decision.explain());
  }
}

/** The action waits for an approval. Its JSON form has what another process needs: see Client.resume. */
export class Held extends WritError {
  readonly #client: Client;

  constructor(
    readonly approvalId: string,
    readonly intent: WholeIntent,
    readonly reasons: readonly string[],
    readonly sessionId: string,
    client: Client,
  ) {
    super(`approval ${approvalId} is pending: ${reasons.join("; ")}`);
    this.#client = client;
  }

  /**
   * Waits for the verdict, for at most timeout milliseconds, and redeems the approval. Returns the allow, or
   * throws Denied, Pending, AlreadyRedeemed, or Held if something new wants an approval.
   */
  wait(timeout: number): Promise<Decision> {
    return this.#client.wait(this, timeout);
  }

  toJSON(): unknown {
    return { approval_id: this.approvalId, intent: { ...this.intent, session_id: this.sessionId }, reasons: this.reasons };
  }
}

/** Reads the JSON form of a Held. */
export function heldOf(text: string, client: Client): Held {
  let doc: Record<string, unknown> | null = null;
  try {
    doc = membersOf(JSON.parse(text));
  } catch {
    // refused below
  }
  const { session_id: session = "", ...intent } = membersOf(doc?.["intent"]) ?? {};
  const id = doc?.["approval_id"];
  const reasons = doc?.["reasons"];
  if (typeof id !== "string" || !id || typeof intent["intent_id"] !== "string" || !intent["intent_id"] || !Array.isArray(reasons)) {
    throw new ConfigError("a held action has approval_id, intent and reasons, as its JSON form has them");
  }
  return new Held(id, intent as unknown as WholeIntent, reasons.map(String), String(session), client);
}

const members = ["approved", "audit_digest", "decision", "decision_id", "ok", "reasons", "receipt"];

/** Reads the answer of an evaluation. The answer cannot claim more than its receipt. */
export function decisionOf(body: unknown, intent: WholeIntent, session: string, replayed: boolean): Decision {
  const m = membersOf(body);
  const bad = (why: string): never => {
    throw new AnswerError(why);
  };
  if (!m || Object.keys(m).some((n) => !members.includes(n))) return bad("the answer has other members than that of an evaluation");
  let receipt: Receipt;
  try {
    receipt = receiptOf(m["receipt"]);
  } catch (e) {
    if (e instanceof Malformed) return bad(e.message);
    throw e;
  }
  const reasons = m["reasons"];
  if (!Array.isArray(reasons) || reasons.some((r) => typeof r !== "string")) return bad("reasons is not a list of texts");
  const { audit_digest: audit = "" } = m;
  if (typeof audit !== "string") return bad("audit_digest is not a text");
  if (m["ok"] !== true) bad("ok is not true beside a receipt");
  if (m["decision_id"] !== receipt.decision_id) bad("decision_id is not the receipt's");
  if ("decision" in m && m["decision"] !== receipt.decision) bad("decision is not the receipt's");
  const allowed = receipt.decision === "allow";
  if (m["approved"] !== allowed) bad("approved is not what the receipt says");
  if (allowed && Date.now() / 1000 >= receipt.exp) {
    throw new ExpiredReceipt(`the receipt of decision ${receipt.decision_id} has expired`);
  }
  return new Decision(intent, receipt.decision_id, receipt.decision, reasons as string[], receipt, replayed, allowed, session, audit);
}

/** Reads a result of a batch. */
export function resultOf(body: unknown, intent: WholeIntent, session: string): Decision | WritError {
  const m = membersOf(body);
  if (typeof m?.["code"] === "string") return problemOf(typeof m["status"] === "number" ? m["status"] : 0, m, "");
  try {
    return decisionOf(body, intent, session, false);
  } catch (e) {
    if (e instanceof WritError) return e;
    throw e;
  }
}
