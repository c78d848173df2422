import { Decision, Denied, Held, complete, decisionOf, heldOf, resultOf, type Cost, type Intent, type WholeIntent } from "./decision.js";
import type { components } from "./api.js";
import { AlreadyRedeemed, AnswerError, ConfigError, NoDecision, Pending, WritError, problemOf } from "./errors.js";
import { streaming } from "./intents.js";
import { membersOf, strictJSON } from "./json.js";
import { Expired, Keys, ReceiptError, versionOf, type Receipt } from "./receipt.js";
import { Cut, follow, messages, silence, type Event, type Message } from "./stream.js";

/** The settings of a client. A missing one is read from an environment variable, where there are any. */
export interface Settings {
  /** WRIT_URL, such as https://writ.example. */
  url?: string | undefined;
  /** WRIT_API_KEY. */
  apiKey?: string | undefined;
  /** WRIT_POLICY_ID, for intents without a policy. */
  policyId?: string | undefined;
  /** WRIT_AGENT_ID, for intents without an agent. */
  agentId?: string | undefined;
  /** Bounds a call with all its repetitions, in milliseconds. The default is 2000. */
  timeout?: number | undefined;
  /**
   * The keys that the caller trusts. With them an evaluation is an AnswerError if its receipt does not verify, or if the
   * receipt of an allow is not of the very intent that was sent. `verify` alone asks the server for its keys.
   */
  keys?: Keys | undefined;
  /** Sends the requests. The default is the global fetch. */
  fetch?: typeof fetch | undefined;
  /**
   * Sends evaluations on one connection, which does not wait for their answers: a WebSocket, as docs/intent-stream.md
   * has it. Calls and their results stay the same, but traceparent and fetch have no effect on them. A browser cannot
   * do it.
   */
  stream?: boolean | undefined;
}

/** Each member is a value, or a function of the call's arguments. */
export interface Guard<A extends unknown[]> {
  actionType: string | ((...args: A) => string);
  resource: string | ((...args: A) => string);
  cost?: Cost | ((...args: A) => Cost | undefined);
  metadata?: Readonly<Record<string, string>> | ((...args: A) => Readonly<Record<string, string>>);
  /** Makes the intent's id from the caller's own key. Without it a repetition is a new intent. */
  key?: string | ((...args: A) => string);
  issuedAt?: string | ((...args: A) => string);
  /** How long a held action waits for its verdict, in milliseconds. It runs once it is approved. Else Held is thrown. */
  wait?: number;
}

type Schemas = components["schemas"];
/** The state of a held action, as the server sends it. */
export type Approval = Schemas["Approval"];
/** A row of the history, as the server sends it. */
export type Authorization = Schemas["Authorization"];
/** What an API key may do, as the server sends it. */
export type Credential = Schemas["Credential"];
/** A session, as the server sends it. */
export type Session = Schemas["Session"];

interface Call {
  method: string;
  path: string;
  body?: unknown;
  /** The request may be sent again: the server answers it as it did the first time. */
  repeats?: boolean;
  /** Is added to the timeout, for a request that the server answers late on purpose. */
  patience?: number;
  traceparent?: string | undefined;
}

interface Answer {
  status: number;
  body: Uint8Array;
  replayed: boolean;
}

const attempts = 3;
const firstPause = 50;
/** Bounds the bytes that are read of an answer. */
const maxAnswer = 8 << 20;
/** The longest wait that the server accepts, in milliseconds. */
const maxPoll = 60_000;

/** Calls a writ server. */
export class Client {
  readonly #url: string;
  readonly #apiKey: string;
  readonly #policyId: string;
  readonly #agentId: string;
  readonly #timeout: number;
  readonly #trusted: Keys | undefined;
  readonly #fetch: typeof fetch;
  #keys: Keys | undefined;
  #organization = "";
  /** Versions of policies, as receipts had them. */
  readonly #versions = new Map<string, number>();

  constructor(s: Settings = {}) {
    this.#url = (s.url || variable("WRIT_URL")).replace(/\/+$/, "");
    this.#apiKey = s.apiKey || variable("WRIT_API_KEY");
    this.#policyId = s.policyId || variable("WRIT_POLICY_ID");
    this.#agentId = s.agentId || variable("WRIT_AGENT_ID");
    this.#timeout = s.timeout ?? 2000;
    this.#trusted = s.keys;
    const plain = s.fetch ?? globalThis.fetch.bind(globalThis);
    this.#fetch = s.stream ? streaming(plain, this.#timeout) : plain;
    if (!this.#url) throw new ConfigError("the server is missing: set url or WRIT_URL, such as https://writ.example");
    let at: URL;
    try {
      at = new URL(this.#url);
    } catch {
      throw new ConfigError("the server's URL is no URL: see url or WRIT_URL");
    }
    if (at.protocol !== "https:" && at.protocol !== "http:") throw new ConfigError("the server's URL is not http or https: see url or WRIT_URL");
    if (at.username || at.password || at.search || at.hash) {
      throw new ConfigError("the server's URL has a user, a query or a fragment: see url or WRIT_URL");
    }
    if (!this.#apiKey) throw new ConfigError("the API key is missing: set apiKey or WRIT_API_KEY");
    if (/[^!-~]/.test(this.#apiKey)) throw new ConfigError("the API key has a character that no key has: see apiKey or WRIT_API_KEY");
  }

  /** Takes the API key out of a text. A server or a proxy may have echoed it. */
  #hide(text: string): string {
    return text.replaceAll(this.#apiKey, "[API key]");
  }

  /** Takes the API key out of the texts of an answer, of which errors are made. */
  #hidden(v: unknown): unknown {
    if (typeof v === "string") return this.#hide(v);
    if (Array.isArray(v)) return v.map((x) => this.#hidden(x));
    const members = membersOf(v);
    return members ? Object.fromEntries(Object.entries(members).map(([k, x]) => [k, this.#hidden(x)])) : v;
  }

  /** Sends a request, and again where that is safe and may help. Returns the successful answer. */
  async #do(call: Call): Promise<Answer> {
    const body = call.body === undefined ? null : JSON.stringify(call.body);
    const end = performance.now() + this.#timeout + (call.patience ?? 0);
    let sent = false;
    for (let attempt = 1, pause = firstPause; ; attempt++, pause *= 2) {
      let error: WritError;
      let after = 0; // how long to wait before a repetition; negative if there is none
      try {
        const got = await this.#once(call, body, end);
        if (got instanceof WritError) [error, after] = [got, got.after];
        else return { ...got, replayed: got.replayed && !sent };
        sent = true;
      } catch (e) {
        error = new NoDecision(this.#hide(`there is no answer: ${textOf(e)}`));
        sent ||= !isUnsent(e);
      }
      const wait = Math.max(after, pause / 2 + Math.random() * pause);
      if (after < 0 || !call.repeats || attempt === attempts || performance.now() + wait > end) throw error;
      await new Promise((done) => setTimeout(done, wait));
    }
  }

  async #once(call: Call, body: string | null, end: number): Promise<Answer | (WritError & { after: number })> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#apiKey}`, Accept: "application/json" };
    if (body !== null) headers["Content-Type"] = "application/json";
    if (call.traceparent) headers["Traceparent"] = call.traceparent;
    const signal = AbortSignal.timeout(Math.max(1, Math.ceil(end - performance.now())));
    const response = await this.#fetch(this.#url + call.path, { method: call.method, headers, body, redirect: "manual", signal });
    const data = await readAll(response);
    if (data === null) return Object.assign(new NoDecision(`the answer is longer than ${maxAnswer} bytes`), { after: -1 });
    if ([200, 201, 204].includes(response.status)) {
      return { status: response.status, body: data, replayed: response.headers.get("idempotent-replayed") === "true" };
    }
    return this.#refusal(response, data);
  }

  /** Reads an answer with another status than success. `after` is negative if the request is not repeated. */
  #refusal(response: Response, data: Uint8Array): WritError & { after: number } {
    let doc: unknown;
    try {
      doc = this.#hidden(strictJSON(this.#hide(new TextDecoder().decode(data))));
    } catch {
      doc = undefined;
    }
    const problem = problemOf(response.status, doc, this.#hide(response.headers.get("location") ?? ""));
    const seconds = response.headers.get("retry-after") ?? "";
    const after = !problem.retryable ? -1 : /^\d+$/.test(seconds) ? Math.min(Number(seconds), 3600) * 1000 : 0;
    return Object.assign(problem, { after });
  }

  async #json(call: Call): Promise<Record<string, unknown>> {
    const answer = await this.#do(call);
    const doc = answer.status === 204 ? {} : membersOf(this.#parse(answer.body));
    if (!doc) throw new AnswerError("the answer is not an object");
    return doc;
  }

  #parse(body: Uint8Array): unknown {
    try {
      return this.#hidden(strictJSON(body));
    } catch {
      throw new AnswerError("the answer is not JSON that can be read in one way");
    }
  }

  /**
   * Returns the decision about an intent. A deny and a hold are decisions whose `allowed` is false. If there is no
   * decision, it throws: the action must not run.
   */
  async evaluate(intent: Intent, options: { traceparent?: string } = {}): Promise<Decision> {
    const whole = await complete(intent, this.#policyId, this.#agentId);
    return this.#evaluate(whole, intent.sessionId ?? "", "", options.traceparent);
  }

  async #evaluate(intent: WholeIntent, session: string, approval: string, traceparent?: string): Promise<Decision> {
    const body = {
      policy_id: intent.policy_id,
      ...(session && { session_id: session }),
      intent,
      ...(approval && { approval_id: approval }),
    };
    const answer = await this.#do({ method: "POST", path: "/v1/policy/evaluate", body, repeats: true, traceparent });
    if (answer.status !== 200) throw new AnswerError(`its status is ${answer.status}`);
    const decision = decisionOf(this.#parse(answer.body), intent, session, answer.replayed);
    await this.#trust(decision, approval);
    return decision;
  }

  /** Throws unless a trusted key has signed the receipt, and the receipt of an allow is of the intent that was sent. */
  async #trust(d: Decision, approval: string): Promise<void> {
    if (!this.#trusted) return;
    try {
      await this.#trusted.verify(d.receipt);
    } catch (e) {
      if (e instanceof ReceiptError && !(e instanceof Expired)) throw new AnswerError(`its receipt does not verify: ${e.message}`);
      if (!(e instanceof Expired)) throw e; // an expired deny is a deny
    }
    if (!d.allowed) return;
    const policy = d.intent.policy_id.toLowerCase();
    const session = d.sessionId.toLowerCase();
    const sent = JSON.parse(JSON.stringify(d.intent)) as Record<string, unknown>;
    const intent = { ...sent, intent_id: d.intent.intent_id.toLowerCase(), policy_id: policy, ...(session && { session_id: session }) };
    const payload = {
      approval_id: approval.toLowerCase(),
      audit_digest: d.auditDigest,
      organization_id: await this.#ownOrganization(),
      reasons: d.reasons,
    };
    const version = versionOf(d.receipt, intent, payload, this.#versions.get(policy));
    if (version === 0) throw new AnswerError("its receipt is of another intent");
    this.#versions.set(policy, version);
  }

  /** Returns the organization of the client's API key. It asks the server once. */
  async #ownOrganization(): Promise<string> {
    if (!this.#organization) {
      const { organization_id: own } = await this.#json({ method: "GET", path: "/v1/credential", repeats: true });
      if (typeof own !== "string" || !own) throw new AnswerError("the credential has no organization");
      this.#organization = own;
    }
    return this.#organization;
  }

  /** Returns an allow alone. Throws Denied, Held or the reason why there is no decision. */
  async require(intent: Intent, options: { traceparent?: string } = {}): Promise<Decision> {
    return this.#allowed(await this.evaluate(intent, options));
  }

  #allowed(d: Decision): Decision {
    if (d.allowed) return d;
    if (d.outcome === "approval_required") throw new Held(d.id, d.intent, d.reasons, d.sessionId, this);
    throw new Denied(d);
  }

  /**
   * Runs act if the intent is allowed, and records the outcome. A record that fails hides nothing. A held action
   * waits for its verdict for options.wait milliseconds, if there is one.
   */
  async run<T>(intent: Intent, act: (decision: Decision) => T | Promise<T>, options: { wait?: number } = {}): Promise<T> {
    const decision = await this.require(intent).catch((held: unknown) => {
      if (!(held instanceof Held) || options.wait === undefined) throw held;
      return held.wait(options.wait).catch((e: unknown) => {
        throw e instanceof Pending ? held : e;
      });
    });
    let outcome: "executed" | "failed" = "failed";
    try {
      const result = await act(decision);
      outcome = "executed";
      return result;
    } finally {
      const cost = outcome === "executed" ? intent.cost : undefined;
      await this.record(decision.id, outcome, { cost }).catch(() => undefined);
    }
  }

  /** Returns act behind a decision: it runs only if its intent is allowed, and its outcome is recorded. */
  guard<A extends unknown[], T>(act: (...args: A) => T | Promise<T>, g: Guard<A>): (...args: A) => Promise<T> {
    return async (...args) => {
      const of = <V>(v: V | ((...args: A) => V)): V => (typeof v === "function" ? (v as (...args: A) => V)(...args) : v);
      const intent: Intent = {
        actionType: of(g.actionType),
        resource: of(g.resource),
        cost: of<Cost | undefined>(g.cost),
        metadata: of<Readonly<Record<string, string>> | undefined>(g.metadata),
        issuedAt: of<string | undefined>(g.issuedAt),
      };
      if (g.key !== undefined) {
        intent.key = of<string>(g.key);
        if (typeof intent.key !== "string") throw new ConfigError("the guard's key is not a text");
      }
      return this.run(intent, () => act(...args), g.wait === undefined ? {} : { wait: g.wait });
    };
  }

  /** Decides at most 100 intents of one policy in one request, in their order. What could not be decided is an error. */
  async evaluateAll(intents: readonly Intent[], options: { together?: boolean } = {}): Promise<Array<Decision | WritError>> {
    const whole = await Promise.all(intents.map((i) => complete(i, this.#policyId, this.#agentId)));
    const session = intents[0]?.sessionId ?? "";
    if (new Set(whole.map((w, i) => JSON.stringify([w.policy_id, intents[i]?.sessionId ?? ""]))).size !== 1) {
      throw new ConfigError("a batch has at least one intent, and one policy and session for all");
    }
    const body = {
      policy_id: whole[0]!.policy_id,
      mode: options.together ? "all" : "each",
      ...(session && { session_id: session }),
      intents: whole,
    };
    const answer = await this.#do({ method: "POST", path: "/v1/policy/evaluate/batch", body, repeats: true });
    const results = membersOf(this.#parse(answer.body))?.["results"];
    if (answer.status !== 200 || !Array.isArray(results) || results.length !== whole.length) {
      throw new AnswerError("it has not one result for each intent");
    }
    const all: Array<Decision | WritError> = [];
    for (const [i, result] of results.entries()) {
      const got = resultOf(result, whole[i]!, session);
      all.push(got instanceof Decision ? await this.#trust(got, "").then(() => got, (e: WritError) => e) : got);
    }
    return all;
  }

  /** Records what became of an action. The key needs the scope actions:record. */
  async record(
    decisionId: string,
    outcome: "executed" | "failed" | "skipped",
    more: { cost?: Cost | undefined; externalRef?: string } = {},
  ): Promise<void> {
    const body: Schemas["RecordAction"] = {
      decision_id: decisionId,
      outcome,
      ...(more.cost && { amount_minor: more.cost.amountMinor, currency: more.cost.currency }),
      ...(more.externalRef && { external_ref: more.externalRef }),
    };
    await this.#do({ method: "POST", path: "/v1/actions/record", body });
  }

  /** Reads the JSON form of a Held, in another process. */
  resume(held: string): Held {
    return heldOf(held, this);
  }

  /** Returns an approval. If it is pending, the server answers after wait milliseconds at the latest. */
  async approval(id: string, wait = 0): Promise<Approval> {
    const patience = Math.floor(Math.min(Math.max(wait, 0), maxPoll) / 1000) * 1000;
    const path = `/v1/approvals/${encodeURIComponent(id)}?wait=${patience / 1000}`;
    const doc = await this.#json({ method: "GET", path, repeats: true, patience });
    if (doc["approval_id"] !== id || typeof doc["status"] !== "string") throw new AnswerError("it is about another approval");
    return doc as unknown as Approval;
  }

  /** See Held.wait. */
  async wait(held: Held, timeout: number): Promise<Decision> {
    const end = performance.now() + timeout;
    for (;;) {
      const { status } = await this.approval(held.approvalId, end - performance.now());
      if (status !== "pending") return this.redeem(held);
      if (end - performance.now() < 1000) throw new Pending(`approval ${held.approvalId} is pending`);
    }
  }

  /** Sends the held intent again with its approval. One approval runs one action. */
  async redeem(held: Held): Promise<Decision> {
    const d = await this.#evaluate(held.intent, held.sessionId, held.approvalId);
    if (d.id === held.approvalId) throw new Pending(`approval ${held.approvalId} is pending`);
    if (d.replayed && d.allowed) throw new AlreadyRedeemed(`another call has used approval ${held.approvalId}`);
    return this.#allowed(d);
  }

  /** Decides a held action. The key needs the scope approvals:decide. */
  async decideApproval(id: string, verdict: "approved" | "rejected" | "revoked", comment = ""): Promise<Approval> {
    const body = { status: verdict, ...(comment && { comment }) };
    return (await this.#json({ method: "PATCH", path: `/v1/approvals/${encodeURIComponent(id)}`, body })) as unknown as Approval;
  }

  /** Opens a session for ttl seconds, with members that narrow it. The key needs the scope sessions:write. */
  async openSession(ttl: number, narrowed: Partial<Omit<Schemas["CreateSession"], "ttl">> = {}): Promise<Session> {
    const body = { policy_id: this.#policyId, agent_id: this.#agentId, ...narrowed, ttl };
    return (await this.#json({ method: "POST", path: "/v1/sessions", body })) as unknown as Session;
  }

  /** Closes a session for good. */
  async closeSession(id: string): Promise<void> {
    await this.#json({ method: "PATCH", path: `/v1/sessions/${encodeURIComponent(id)}`, body: { status: "closed" } });
  }

  /** Throws the kill switch of an agent, or releases it. It is in force when the call returns. */
  async setAgentStatus(agentId: string, status: "disabled" | "active"): Promise<void> {
    await this.#json({ method: "PATCH", path: `/v1/agents/${encodeURIComponent(agentId)}/status`, body: { status } });
  }

  /** Stops everything that the organization's agents ask, or ends the stop. It is in force when the call returns. */
  async setOrganizationStatus(status: "stopped" | "active"): Promise<void> {
    const is = await this.#json({ method: "PATCH", path: "/v1/organization/status", body: { status } });
    if (is["status"] !== status) throw new AnswerError(`it does not say that the organization is ${status}`);
  }

  /** Returns what the client's own API key may do. */
  async credential(): Promise<Credential> {
    return (await this.#json({ method: "GET", path: "/v1/credential", repeats: true })) as unknown as Credential;
  }

  /** Yields rows of the history, the newest first. Filters are those of GET /v1/authorizations. */
  async *history(filters: Record<string, string> = {}): AsyncGenerator<Authorization> {
    const query = new URLSearchParams(filters);
    for (;;) {
      const page = await this.#json({ method: "GET", path: `/v1/authorizations?${query}`, repeats: true });
      const { data, next_cursor: cursor } = page;
      if (!Array.isArray(data)) throw new AnswerError("it is no page of the history");
      yield* data as Authorization[];
      if (typeof cursor !== "string" || cursor === "") return;
      query.set("cursor", cursor);
    }
  }

  /**
   * Yields the rows of the history as they are decided. Filters are those of GET /v1/authorizations. With the id of an
   * event it goes on after that event, otherwise it begins now. It connects again by itself, without a gap. It throws
   * after a refusal, or after three failures in a row. The key needs the scope history:read.
   */
  stream(filters: Record<string, string> = {}, options: { lastEventId?: string } = {}): AsyncGenerator<Event> {
    const path = `/v1/authorizations/stream?${new URLSearchParams(filters)}`;
    return follow((at) => this.#connection(path, at), options.lastEventId ?? "");
  }

  async *#connection(path: string, at: string): AsyncGenerator<Message> {
    const silent = new AbortController();
    let timer = setTimeout(() => silent.abort(), silence);
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), silence);
    };
    const headers = { Authorization: `Bearer ${this.#apiKey}`, Accept: "text/event-stream", ...(at && { "Last-Event-ID": at }) };
    try {
      const response = await this.#fetch(this.#url + path, { headers, redirect: "manual", signal: silent.signal });
      if (response.status !== 200) {
        const problem = this.#refusal(response, (await readAll(response)) ?? new Uint8Array());
        throw problem.after < 0 ? problem : new Cut(problem, problem.after);
      }
      const kind = response.headers.get("content-type") ?? "";
      if (!/^text\/event-stream *(;|$)/.test(kind) || !response.body) throw new AnswerError("it is no stream of events");
      yield* messages(response.body, alive);
    } catch (e) {
      if (e instanceof WritError || e instanceof Cut) throw e;
      throw new Cut(new NoDecision(this.#hide(`the stream was cut: ${textOf(e)}`)));
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Verifies the signature of a receipt with the server's keys, which are fetched once and for an unknown kid. It does
   * not say which intent the receipt is of: the setting `keys` does.
   */
  async verify(receipt: Receipt): Promise<void> {
    if (!this.#keys?.has(receipt.kid)) {
      const answer = await this.#do({ method: "GET", path: "/.well-known/jwks.json", repeats: true });
      try {
        this.#keys = await Keys.parse(answer.body);
      } catch (e) {
        throw new AnswerError(textOf(e));
      }
    }
    await this.#keys.verify(receipt);
  }
}

/** Returns a variable of the environment, or nothing. Deno throws where the program may not read it. */
function variable(name: string): string {
  try {
    return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] ?? "";
  } catch {
    return "";
  }
}

/** Reads an answer, or returns null if it is too long. */
async function readAll(response: Response): Promise<Uint8Array | null> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > maxAnswer) {
      await reader.cancel().catch(() => undefined);
      return null;
    }
    parts.push(value);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function causeOf(e: unknown): { code?: unknown; message?: unknown } {
  return (e instanceof Error && (e.cause as { code?: unknown; message?: unknown } | undefined)) || {};
}

function textOf(e: unknown): string {
  const cause = causeOf(e).message;
  return `${e instanceof Error ? `${e.name}: ${e.message}` : "error"}${typeof cause === "string" ? `: ${cause}` : ""}`;
}

/** Reports whether a request failed before the server can have got it. */
function isUnsent(e: unknown): boolean {
  return ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"].includes(String(causeOf(e).code));
}
