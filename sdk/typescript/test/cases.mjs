// What the cases of conformance.json lead to, in any runtime.
import * as writ from "writ";

const policyId = "0198f3c2-7a10-7c3e-9d41-000000000001";

/** Names an error as the cases do. */
export function outcomeOf(e) {
  const kinds = [
    [writ.Denied, "denied"], [writ.Held, "held"], [writ.Problem, "problem"], [writ.AnswerError, "answer"],
    [writ.ExpiredReceipt, "expired"], [writ.AlreadyRedeemed, "redeemed"], [writ.Pending, "pending"], [writ.WritError, "failed"],
  ];
  return kinds.find(([kind]) => e instanceof kind)?.[1] ?? `an error of another kind: ${e}`;
}

/** Makes the call of a case to the server at url. Returns the decision or the error, and the client. */
export async function attempt(conformance, c, url) {
  // Only a case with a late answer waits for the timeout. A busy machine may need longer for the others.
  const timeout = c.answers.some((a) => a.delay_ms) ? conformance.timeout_ms : 50_000;
  const client = new writ.Client({ url, apiKey: conformance.api_key, policyId, agentId: "a", timeout });
  const wanted = { actionType: "payment.refund", resource: "https://api.example/refunds" };
  const calls = {
    require: () => client.require(wanted),
    redeem: () => {
      const intent = { intent_id: "7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11", policy_id: policyId, agent_id: "a",
        action_type: wanted.actionType, resource: wanted.resource, issued_at: "2026-11-21T10:00:00Z" };
      return client.redeem(client.resume(JSON.stringify({ approval_id: conformance.approval_id, intent, reasons: [] })));
    },
  };
  try {
    return { client, decision: await calls[c.call]() };
  } catch (error) {
    return { client, error };
  }
}

/** Follows the stream of a case until it ends. Returns the events and the error. */
export async function follow(conformance, url) {
  const events = [];
  try {
    for await (const event of new writ.Client({ url, apiKey: conformance.api_key }).stream()) events.push(event);
  } catch (error) {
    return { events, error };
  }
  return { events };
}
