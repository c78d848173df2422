"""Runs the agents with scripted models and a real writ.

WRIT is the program, and AGENT_NODE a directory whose node_modules has the package writ and what package.json names.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import serving
from serving import POLICY, WRIT

import writ

pytestmark = pytest.mark.skipif(not WRIT, reason="WRIT does not name the program writ")


class Server(serving.Server):
    def settings(self, sub: str) -> tuple[str, str, str, str]:
        return self.url, self.token_of("--sub", sub), POLICY, "billing-agent"

    def approve(self, approval_id: str) -> None:
        with writ.Client(*self.settings("finance")) as finance:
            finance.decide_approval(approval_id, "approved")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("writ") / "data")
    yield server
    server.kill()


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


class Model(ThreadingHTTPServer):
    """Is a model of Anthropic's API that asks for refunds, one after the other, and keeps what it is told of them."""

    def __init__(self, refunds: list[tuple[str, int]]) -> None:
        super().__init__(("127.0.0.1", 0), _Messages)
        self.refunds, self.heard = refunds, [""] * len(refunds)


class _Messages(BaseHTTPRequestHandler):
    server: Model

    def log_message(self, format: str, *args: Any) -> None:
        """Writes nothing."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        blocks = [b for m in asked.get("messages", []) if isinstance(m["content"], list) for b in m["content"]]
        results = [str(b["content"]) for b in blocks if b["type"] == "tool_result"]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta, stop = {"type": "text_delta", "text": "done"}, "end_turn"
        if asked.get("tools"):  # it is not a title that is asked for
            self.server.heard[: len(results)] = results
            if len(results) < len(self.server.refunds):
                order, amount = self.server.refunds[len(results)]
                arguments = json.dumps({"order": order, "amount": amount})
                block = {"type": "tool_use", "id": f"toolu_{len(results)}", "name": "mcp__payments__refund", "input": {}}
                delta, stop = {"type": "input_json_delta", "partial_json": arguments}, "tool_use"
        message = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
        usage = {"input_tokens": 1, "output_tokens": 1}
        for name, data in [
            ("message_start", {"message": {**message, "stop_reason": None, "usage": usage}}),
            ("content_block_start", {"index": 0, "content_block": block}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": {"stop_reason": stop}, "usage": usage}),
            ("message_stop", {}),
        ]:
            self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode())


RUN = """
import { Client } from "writ";
import { run } from "./claude_agent.mjs";
for await (const message of run(new Client({ timeout: 20000 }), "refund")) console.log(JSON.stringify(message));
"""


def test_claude_agent(server: Server, tmp_path: Path) -> None:
    at = os.environ.get("AGENT_NODE")
    if not at:
        pytest.skip("AGENT_NODE does not name a directory with the Claude Agent SDK")
    shutil.copy(Path(__file__).parent / "claude_agent.mjs", at)
    Path(at, "run.mjs").write_text(RUN)
    settings = tmp_path / ".claude" / "settings.json"  # a user's permission would come before the agent's question
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"allow": ["mcp__payments__refund"], "defaultMode": "bypassPermissions"}}')

    def refunds(*asked: tuple[str, int]) -> list[str]:
        """Runs a session of the agent and returns what its model is told of its calls."""
        url, token, policy, agent = server.settings("gateway")
        with Model(list(asked)) as model:
            threading.Thread(target=model.serve_forever, daemon=True).start()
            env = {
                "PATH": os.environ["PATH"], "HOME": str(tmp_path),
                "WRIT_URL": url, "WRIT_API_KEY": token, "WRIT_POLICY_ID": policy, "WRIT_AGENT_ID": agent,
                "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_address[1]}",
                "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            }
            done = subprocess.run(["node", "run.mjs"], cwd=at, env=env, capture_output=True, text=True, timeout=300)
            model.shutdown()
        assert done.returncode == 0 and '"subtype":"success"' in done.stdout, done.stdout + done.stderr
        return model.heard

    allowed, denied, held, again = refunds(("C-1", 1250), ("C-2", 50_001), ("C-3", 30_000), ("C-3", 30_000))
    assert "refunded 1250 of C-1" in allowed
    assert "cost.exceeded" in denied and "refunded" not in denied
    assert "pending" in held and "pending" in again and "refunded" not in held + again
    with writ.Client(*server.settings("gateway"), timeout=20) as client:
        rows = list(client.history(decision="approval_required"))
        row = next(client.history(decision="allow"))
        assert row["settlement"]["outcome"] == "executed" and row["settlement"]["amount_minor"] == 1250
    server.approve(next(r["decision_id"] for r in rows if r["decision_id"] in held))
    approved, twice, other = refunds(("C-3", 30_000), ("C-3", 30_000), ("C-1", 1250))
    assert "refunded 30000 of C-3" in approved
    assert "refunded" not in twice and "refunded" not in other, "a call runs once"
