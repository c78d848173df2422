import { Webhook } from "standardwebhooks";
import { WritError } from "./errors.js";

/** A webhook that the server did not send, or that is too old. */
export class BadWebhook extends WritError {}

/** Returns the event of a webhook, or throws BadWebhook. secret is that of the webhook, whsec_…. */
export function verifyWebhook(secret: string, headers: Record<string, string>, body: string): unknown {
  try {
    return new Webhook(secret).verify(body, headers);
  } catch (e) {
    throw new BadWebhook(`the webhook does not verify: ${e instanceof Error ? e.message : "error"}`);
  }
}
