"""Runs the AuthZEN working group's own runner of its Todo scenario against a real writ.

WRIT is the path of the program, and AUTHZEN a directory with this directory's files and the modules of package.json.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import WRIT, Server

AT = Path(os.environ.get("AUTHZEN", "."))
CASES = Path(__file__).parents[3] / "api" / "testdata" / "authzen" / "todo.json"
POLICY = "0c0ffee0-0000-4000-8000-0000000000b2"
CHANGES = ["can_update_todo", "can_delete_todo"]
VIEWERS = [
    "user/CiRmZDM2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs",
    "user/CiRmZDQ2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs",
]
EDITORS = {
    "user/CiRmZDE2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs": "morty@the-citadel.com",
    "user/CiRmZDI2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs": "summer@the-smiths.com",
}
pytestmark = pytest.mark.skipif(not WRIT, reason="WRIT does not name the program writ")


def test_todo(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    try:

        def post(path: str, body: dict[str, Any]) -> Any:
            headers = {"Authorization": f"Bearer {server.token}"}
            return httpx.post(server.url + path, json=body, headers=headers, timeout=20).raise_for_status().json()

        def deny(**condition: Any) -> None:
            condition = {name.replace("__", "."): value for name, value in condition.items()}
            post("/v1/rules", {"name": "todo", "condition": json.dumps(condition), "action": '{"decision":"deny"}'})

        policy = {"policy_id": POLICY, "version": 1, "organization_id": "demo", "agent_id": "user/*", "status": "active"}
        policy |= {"allowed_action_types": ["can_read_user", "can_read_todos", "can_create_todo", *CHANGES]}
        policy |= {"allowed_resource_patterns": ["user/*", "todo/*"], "updated_at": "2026-11-01T09:00:00Z"}
        post("/v1/policies/register", {"policy": policy})
        deny(agent_id={"$in": VIEWERS}, action_type={"$in": ["can_create_todo", *CHANGES]})
        for editor, own in EDITORS.items():
            deny(agent_id=editor, action_type={"$in": CHANGES}, metadata__resource__ownerID={"$ne": own})
        key = post("/v1/tokens", {"name": "pep", "scopes": ["policy:evaluate"], "policy_id": POLICY})["token"]
        version = "authorization-api-1_0-02"
        (AT / f"decisions-{version}.json").write_text(CASES.read_text())
        done = subprocess.run(
            ["node_modules/.bin/tsx", "runner.ts", server.url, version, "console"], cwd=AT, capture_output=True, text=True,
            env={**os.environ, "AUTHZEN_PDP_API_KEY": f"Bearer {key}", "NO_COLOR": "1"},
        )
        outcomes = [line.split()[0] for line in done.stdout.splitlines()]
        assert (done.returncode, outcomes) == (0, ["PASS"] * 43), done.stdout + done.stderr
    finally:
        server.kill()
