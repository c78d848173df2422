"""A LangChain agent whose tools ask writ. A denied call is an error message to the model. A held call interrupts
the graph: once it is approved in writ, resume it with Command(resume=True). Resuming without the approval
interrupts again, so nothing that is said here runs a held call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import writ
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolCallRequest, wrap_tool_call
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import interrupt

REFUNDS = "https://api.payments.example/v1/refunds"


@tool
def refund(order: str, amount: int) -> str:
    """Refunds an order, in cents."""
    return f"refunded {amount} of {order}"


def guard(client: writ.Client) -> AgentMiddleware[Any, Any]:
    """Returns the middleware that asks before each tool call. The call's id makes the intent's."""

    @wrap_tool_call
    def ask(request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        call, arguments = request.tool_call, request.tool_call["args"]
        guarded = client.guard(
            action_type=f"payment.{call['name']}",
            resource=REFUNDS,
            cost=writ.Cost(int(arguments["amount"]), "EUR"),
            metadata={f"fact.arg.{k}": str(v) for k, v in arguments.items()},
            key=str(call["id"]),
            wait=0,
        )(handler)
        while True:
            try:
                return guarded(request)
            except writ.Denied as denied:
                return ToolMessage(denied.decision.explain(), tool_call_id=call["id"], status="error")
            except writ.Held as held:
                interrupt({"approval": held.approval_id, "reasons": list(held.reasons)})

    return ask


def agent(client: writ.Client, model: BaseChatModel, checkpointer: BaseCheckpointSaver[Any]) -> Any:
    """Returns an agent that refunds orders. An interrupt needs the checkpointer."""
    return create_agent(model, tools=[refund], middleware=[guard(client)], checkpointer=checkpointer)
