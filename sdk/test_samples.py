"""Runs each sample of api/openapi.yaml as it stands there, against a real writ.

WRIT is the path of the program. SAMPLES is a directory for programs with the package writ for Node in its
node_modules. The Python that runs the tests has the package writ for Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from serving import POLICY, WRIT, Server

import writ

ROOT = Path(__file__).parents[1]
AT = Path(os.environ.get("SAMPLES", "."))
pytestmark = pytest.mark.skipif(not WRIT, reason="WRIT does not name the program writ")
LANGUAGES = ["Shell", "Python", "TypeScript", "Go"]
#: What each sample prints, by its operation.
PRINTS = {
    "evaluate": "policy.allowed: version 1 of the policy allows it",
    "evaluateBatch": "policy.allowed: version 1 of the policy allows it",
    "getApproval": "pending",
    "decideApproval": "approved",
    "listAuthorizations": "payment.refund",
}


def samples() -> dict[tuple[str, str], str]:
    paths: dict[str, dict[str, Any]] = YAML(typ="safe").load(ROOT / "api" / "openapi.yaml")["paths"]
    operations = [op for item in paths.values() for op in item.values() if isinstance(op, dict)]
    return {(op["operationId"], s["lang"]): s["source"] for op in operations for s in op.get("x-codeSamples", [])}


SAMPLES = samples()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("writ") / "data")
    yield server
    server.kill()


def test_every_operation_has_a_sample_in_each_language() -> None:
    assert set(SAMPLES) == {(operation, language) for operation in PRINTS for language in LANGUAGES}


def program(operation: str, language: str) -> list[str]:
    """Writes a sample into a file and returns the command that runs it."""
    name, command = {
        "Shell": ("sample.sh", ["bash", "-eu"]),
        "Python": ("sample.py", [sys.executable]),
        "TypeScript": ("sample.mjs", ["node"]),
        "Go": ("main.go", ["go", "run"]),
    }[language]
    file = AT / "_samples" / operation / name  # Go ignores a directory with such a name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SAMPLES[operation, language])
    if language == "Go":
        assert subprocess.check_output(["gofmt", "-l", str(file)], text=True) == ""
    return [*command, str(file)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("operation", PRINTS)
def test_sample(server: Server, operation: str, language: str) -> None:
    asker = server.token_of("--sub", "asker")
    intent = writ.Intent("payment.refund", "https://api.payments.example/v1/refunds", writ.Cost(30_000, "EUR"))
    with writ.Client(server.url, asker, POLICY, "billing-agent", timeout=20) as client:
        held = client.evaluate(intent)
    settings = {"WRIT_URL": server.url, "WRIT_API_KEY": server.token, "WRIT_POLICY_ID": POLICY}
    env = {**os.environ, **settings, "WRIT_AGENT_ID": "billing-agent", "APPROVAL_ID": held.id}
    ran = subprocess.run(program(operation, language), cwd=ROOT, env=env, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert PRINTS[operation] in ran.stdout
