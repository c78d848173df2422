"""An agent of the OpenAI Agents SDK whose tool asks writ. needs_approval stops the run for a held call. The
guardrail decides, also after a local approval: it redeems the approval that a person gave in writ. So a local
`approve` alone runs nothing.
"""

from __future__ import annotations

import json
from typing import Any

import writ
from agents import (
    Agent,
    FunctionTool,
    Model,
    RunContextWrapper,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    function_tool,
    tool_input_guardrail,
)

REFUNDS = "https://api.payments.example/v1/refunds"


def tool_of(client: writ.AsyncClient) -> FunctionTool:
    """Returns the tool. The call's id makes the intent's, so each question is about the same intent."""

    def intent(call_id: str, arguments: dict[str, Any]) -> writ.Intent:
        cost, metadata = writ.Cost(arguments["amount"], "EUR"), {"fact.arg.order": arguments["order"]}
        return writ.Intent("payment.refund", REFUNDS, cost, metadata, key=call_id)

    async def held(_: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        try:
            return (await client.evaluate(intent(call_id, arguments))).outcome == "approval_required"
        except writ.WritError:
            return False  # the guardrail says why

    @tool_input_guardrail
    async def guardrail(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        arguments = json.loads(data.context.tool_arguments)
        try:
            try:
                await client.require(intent(data.context.tool_call_id, arguments))
            except writ.Held as e:
                await client.wait(e, 0)
        except writ.WritError as e:
            return ToolGuardrailFunctionOutput.reject_content(f"not allowed: {e}")
        return ToolGuardrailFunctionOutput.allow()

    @function_tool(needs_approval=held, tool_input_guardrails=[guardrail])
    def refund(order: str, amount: int) -> str:
        """Refunds an order, in cents."""
        return f"refunded {amount} of {order}"

    return refund


def agent(client: writ.AsyncClient, model: Model) -> Agent[Any]:
    """Returns an agent that refunds orders."""
    return Agent(name="refunds", model=model, tools=[tool_of(client)])
