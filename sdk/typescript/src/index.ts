/**
 * Ask a writ server whether an agent's action may proceed, before the action happens.
 *
 *     const client = new Client(); // WRIT_URL, WRIT_API_KEY, WRIT_POLICY_ID, WRIT_AGENT_ID
 *     await client.require({ actionType: "payment.refund", resource: "https://api.example/refunds" });
 *     // the action runs here
 *
 * `require` returns for an allow alone. Every failure throws. A server decides an intent once, so the client may
 * safely repeat a request: it sends the same bytes at most three times and gives up after `timeout` in all.
 * Redirects are not followed.
 */
export { Client, type Approval, type Authorization, type Credential, type Guard, type Session, type Settings } from "./client.js";
export { Decision, Denied, Held, type Cost, type Intent, type WholeIntent } from "./decision.js";
export * from "./errors.js";
export { Provenance, type Source } from "./provenance.js";
export { Keys, ReceiptError, Malformed, UnknownKey, BadSignature, Expired, parseReceipt, type Outcome, type Receipt } from "./receipt.js";
export { type Event } from "./stream.js";
export { BadWebhook, verifyWebhook } from "./webhook.js";
