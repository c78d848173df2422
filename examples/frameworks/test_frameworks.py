"""Runs the agents with scripted models and a real writ. WRIT is the program."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import writ

WRIT = os.environ.get("WRIT", "")
POLICY = "0c0ffee0-0000-4000-8000-000000000001"
pytestmark = pytest.mark.skipif(not WRIT, reason="WRIT does not name the program writ")


class Server:
    """A writ server with the demo's policies: refunds above 500.00 are denied, those above 250.00 held."""

    def __init__(self, data: Path) -> None:
        ports = []
        for _ in range(2):
            with socket.create_server(("127.0.0.1", 0)) as s:
                ports.append(s.getsockname()[1])
        self.data, self.url = data, f"http://127.0.0.1:{ports[0]}"
        self.process = subprocess.Popen(
            [WRIT, "serve", "--demo", "--data", str(data), "--addr", f"127.0.0.1:{ports[0]}"]
            + ["--admin-addr", f"127.0.0.1:{ports[1]}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", ports[0]), timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the server does not listen after a minute")

    def settings(self, sub: str) -> tuple[str, str, str, str]:
        args = ["token", "operator", "--org", "demo", "--sub", sub, "--data", str(self.data)]
        token = subprocess.check_output([WRIT, *args], text=True).strip()
        return self.url, token, POLICY, "billing-agent"

    def approve(self, approval_id: str) -> None:
        with writ.Client(*self.settings("finance")) as finance:
            finance.decide_approval(approval_id, "approved")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("writ") / "data")
    yield server
    server.process.kill()


def test_langchain(server: Server) -> None:
    pytest.importorskip("langchain")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    import langchain_agent

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

    def asks(amount: int) -> Any:
        call = {"name": "refund", "args": {"order": "A-1", "amount": amount}, "id": f"call-langchain-{amount}"}
        return Scripted(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("done")]))

    with writ.Client(*server.settings("gateway"), timeout=20) as client:

        def run(amount: int) -> tuple[Any, dict[str, Any], Any]:
            agent = langchain_agent.agent(client, asks(amount), InMemorySaver())
            config = {"configurable": {"thread_id": str(amount)}}
            return agent, config, agent.invoke({"messages": [("user", "refund A-1")]}, config)

        def said(state: Any) -> str:
            return str([m.content for m in state["messages"] if m.type == "tool"])

        assert said(run(1250)[2]) == "['refunded 1250 of A-1']"
        assert "cost.exceeded" in said(run(50_001)[2])

        agent, config, state = run(30_000)
        approval = state["__interrupt__"][0].value["approval"]
        state = agent.invoke(Command(resume=True), config)
        assert state["__interrupt__"] and said(state) == "[]", "a resume without the approval runs nothing"
        server.approve(approval)
        assert said(agent.invoke(Command(resume=True), config)) == "['refunded 30000 of A-1']"


def test_openai_agents(server: Server) -> None:
    agents = pytest.importorskip("agents")
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    import openai_agent

    agents.set_tracing_disabled(True)

    class Scripted(agents.Model):  # type: ignore[name-defined,misc]
        def __init__(self, amount: int) -> None:
            self.amount, self.turn = amount, 0

        async def get_response(self, *_: Any, **__: Any) -> Any:
            self.turn += 1
            output: Any = ResponseOutputMessage(
                id="m", role="assistant", status="completed", type="message",
                content=[ResponseOutputText(text="done", type="output_text", annotations=[])],
            )
            if self.turn == 1:
                output = ResponseFunctionToolCall(
                    name="refund", call_id=f"call-openai-{self.amount}", type="function_call",
                    arguments=f'{{"order": "A-1", "amount": {self.amount}}}',
                )
            return agents.ModelResponse(output=[output], usage=agents.Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    def said(result: Any) -> str:
        return str([i.output for i in result.new_items if i.type == "tool_call_output_item"])

    async def run() -> None:
        async with writ.AsyncClient(*server.settings("gateway"), timeout=20) as client:

            async def refund(amount: int) -> tuple[Any, Any]:
                agent = openai_agent.agent(client, Scripted(amount))
                return agent, await agents.Runner.run(agent, "refund A-1")

            assert said((await refund(1250))[1]) == "['refunded 1250 of A-1']"
            assert "cost.exceeded" in said((await refund(50_001))[1])

            agent, result = await refund(30_000)
            assert result.interruptions and said(result) == "[]"
            state = result.to_state()
            state.approve(result.interruptions[0])
            local = await agents.Runner.run(agent, state)
            assert "pending" in said(local) and "refunded" not in said(local), "a local approval runs nothing"

            agent, result = await refund(30_001)
            with writ.Client(*server.settings("gateway"), timeout=20) as history:
                held = next(history.history(decision="approval_required"))["decision_id"]
            server.approve(held)
            state = result.to_state()
            state.approve(result.interruptions[0])
            assert said(await agents.Runner.run(agent, state)) == "['refunded 30001 of A-1']"

    asyncio.run(run())
