// A gateway before a payment API: POST /refunds {"order": "A-1", "charge": "ch_1", "amount": 1250}.
//
// 200 is the refund, 403 a deny, 202 a hold: send the same request again once it is approved. An order is refunded
// once, however often it is sent.
import { createServer } from "node:http";
import { AlreadyRedeemed, Client, Denied, Held } from "writ";

const { PAYMENTS_URL, PAYMENTS_KEY, PORT } = process.env;
const client = new Client(); // WRIT_URL, WRIT_API_KEY, WRIT_POLICY_ID, WRIT_AGENT_ID

async function pay({ order, charge, amount }) {
  const answer = await fetch(`${PAYMENTS_URL}/v1/refunds`, {
    method: "POST",
    headers: { Authorization: `Bearer ${PAYMENTS_KEY}`, "Idempotency-Key": order },
    body: new URLSearchParams({ charge, amount: String(amount) }),
  });
  if (!answer.ok) throw new Error(`the payment API answers ${answer.status}`);
  return answer.json();
}

const refund = client.guard(pay, {
  actionType: "payment.refund",
  resource: "https://api.payments.example/v1/refunds",
  cost: ({ amount }) => ({ amountMinor: amount, currency: "EUR" }),
  metadata: ({ order, charge }) => ({ order, charge }),
  key: ({ order }) => order,
  wait: 0,
});

async function answer(body) {
  let asked;
  try {
    asked = JSON.parse(body);
    if (!asked.order || !asked.charge || !Number.isInteger(asked.amount)) throw new TypeError("incomplete");
  } catch {
    return [400, { error: "want order, charge and amount" }];
  }
  try {
    return [200, await refund(asked)];
  } catch (e) {
    if (e instanceof Denied) return [403, { error: e.decision.explain() }];
    if (e instanceof Held) return [202, { approval: e.approvalId, error: e.message }];
    if (e instanceof AlreadyRedeemed) return [409, { error: `${e.message}: look whether the order was refunded` }];
    return [503, { error: e.message }];
  }
}

createServer(async (req, res) => {
  let body = "";
  for await (const part of req) body += part;
  const [status, doc] = await answer(body);
  res.writeHead(status, { "Content-Type": "application/json" });
  res.end(JSON.stringify(doc));
}).listen(Number(PORT), "127.0.0.1");
