// An agent of the Claude Agent SDK whose tool asks writ: canUseTool decides each call. A denied call tells the model
// why. A held call tells it the approval: once a person has approved it in writ, the same call runs, once. An order
// is refunded once, however often the model asks: a call that was decided before does not run again.
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { Held } from "writ";
import { z } from "zod";

const resource = "https://api.payments.example/v1/refunds";

const refund = tool("refund", "Refunds an order, in cents.", { order: z.string(), amount: z.number().int() }, async ({ order, amount }) => ({
  content: [{ type: "text", text: `refunded ${amount} of ${order}` }],
}));

/** Returns what decides a call, and what records its outcome afterwards. */
function guard(client) {
  const decided = new Map(); // the decision and the cost of each call that may run
  const canUseTool = async (name, input, { toolUseID }) => {
    if (name !== "mcp__payments__refund") return { behavior: "deny", message: `${name} is no tool of this agent` };
    try {
      const cost = { amountMinor: input.amount, currency: "EUR" };
      const intent = { actionType: "payment.refund", resource, cost, metadata: { "fact.arg.order": input.order }, key: input.order };
      const decision = await client.require(intent).catch((e) => {
        if (e instanceof Held) return e.wait(0); // redeems the approval, if there is one
        throw e;
      });
      if (decision.replayed) return { behavior: "deny", message: `the refund of ${input.order} was decided before: look whether it ran` };
      decided.set(toolUseID, { id: decision.id, cost });
      return { behavior: "allow", updatedInput: input };
    } catch (e) {
      return { behavior: "deny", message: `not allowed: ${e.message}` };
    }
  };
  const record = (outcome) => async (_, toolUseID) => {
    const { id, cost } = decided.get(toolUseID) ?? {};
    if (id) await client.record(id, outcome, outcome === "executed" ? { cost } : {}).catch(() => undefined);
    return {};
  };
  const hooks = { PostToolUse: [{ hooks: [record("executed")] }], PostToolUseFailure: [{ hooks: [record("failed")] }] };
  return { canUseTool, hooks };
}

/** Runs the agent. Its messages are those of the SDK. An allow rule would come before canUseTool: no settings are read. */
export const run = (client, prompt) => query({
  prompt,
  options: {
    mcpServers: { payments: createSdkMcpServer({ name: "payments", tools: [refund] }) },
    tools: [],
    settingSources: [],
    permissionMode: "default",
    ...guard(client),
  },
});
