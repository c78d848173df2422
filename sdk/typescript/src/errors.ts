// The errors of the client. An action must not run after any of them.
import type { components } from "./api.js";

/** Any error of this package. */
export class WritError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** A setting or a member of an intent is missing or cannot be right. */
export class ConfigError extends WritError {}

/** There is no decision: no answer of a writ server came in time. */
export class NoDecision extends WritError {}

/** An answer contradicts itself or is not the answer of a writ server. */
export class AnswerError extends NoDecision {}

/** The receipt of an allow has expired. The decision must not be acted upon. */
export class ExpiredReceipt extends NoDecision {}

/** Another call has used the approval. */
export class AlreadyRedeemed extends WritError {}

/** Nobody has decided about a held action yet. */
export class Pending extends WritError {}

/** Says why a member of a request was refused. */
export type FieldError = components["schemas"]["FieldError"];

/** An answer with another status than success (RFC 9457). */
export class Problem extends NoDecision {
  constructor(
    readonly status: number,
    /** The stable code. It is empty if the answer is no problem document. */
    readonly code: string,
    readonly detail: string,
    /** The same request may be sent again. The client has repeated it already where that is safe. */
    readonly retryable: boolean,
    readonly requestId = "",
    readonly errors: readonly FieldError[] = [],
  ) {
    super([`${code || `status ${status}`}: ${detail}`, ...errors.map((e) => `${e.field}: ${e.message}`)].join("; "));
  }
}

/** The statuses after which the same request may succeed later. */
const mayPass = new Set([408, 425, 429, 502, 503, 504]);

/** Returns the problem that an answer is. */
export function problemOf(status: number, body: unknown, location: string): Problem {
  const doc = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  if (typeof doc["code"] !== "string" || doc["code"] === "") {
    const redirects = (status === 0 || (status >= 300 && status < 400)) && location !== "";
    const detail = redirects
      ? `the server redirects to ${JSON.stringify(location.slice(0, 200))}, where no API key is sent`
      : "the answer is no problem document, so it may be that of a proxy";
    return new Problem(status, "", detail, mayPass.has(status));
  }
  let retryable = mayPass.has(status);
  if (typeof doc["retryable"] === "boolean") {
    retryable = doc["retryable"] && (mayPass.has(status) || status === 500);
  }
  const text = (v: unknown) => (typeof v === "string" ? v : "");
  const errors = (Array.isArray(doc["errors"]) ? doc["errors"] : []).map((e: Record<string, unknown> | null) => ({
    field: text(e?.["field"]),
    message: text(e?.["message"]),
  }));
  return new Problem(status, doc["code"], text(doc["detail"]), retryable, text(doc["request_id"]), errors);
}
