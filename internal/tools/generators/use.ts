// Asks a writ server with the types that openapi-typescript made of api/openapi.yaml.
import createClient from "openapi-fetch";
import type { components, paths } from "./client.js";

const { WRIT_URL: baseUrl = "", WRIT_API_KEY: key = "", WRIT_POLICY_ID: policy_id = "", WRIT_AGENT_ID: agent_id = "" } = process.env;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
const intent: components["schemas"]["ActionIntent"] = {
  intent_id: crypto.randomUUID(),
  policy_id,
  agent_id,
  action_type: "payment.refund",
  resource: "https://api.payments.example/v1/refunds",
  cost: { amount_minor: 1250, currency: "EUR" },
  issued_at: new Date().toISOString(),
};
const decided = await client.POST("/v1/policy/evaluate", { body: { policy_id, intent } });
console.log(decided.data?.approved, decided.data?.decision);
const other = { ...intent, cost: { amount_minor: 1251, currency: "EUR" } };
const refused = await client.POST("/v1/policy/evaluate", { body: { policy_id, intent: other } });
console.log(refused.error?.status, refused.error?.code);
const page = await client.GET("/v1/authorizations", { params: { query: { intent_id: intent.intent_id } } });
for (const row of page.data?.data ?? []) console.log(row.decision, row.decision_id === decided.data?.decision_id);
