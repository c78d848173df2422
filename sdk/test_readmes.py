"""Runs the program of each client's README as it stands there, against a real writ. See test_samples.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import POLICY, WRIT, Server

ROOT = Path(__file__).parents[1]
AT = Path(os.environ.get("SAMPLES", "."))
pytestmark = pytest.mark.skipif(not WRIT, reason="WRIT does not name the program writ")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("writ") / "data")
    yield server
    server.kill()


@pytest.mark.parametrize(
    ("language", "fence", "name", "command"),
    [
        ("python", "python", "readme.py", [sys.executable]),
        ("typescript", "js", "readme.mjs", ["node"]),
        ("go", "go", "main.go", ["go", "run"]),
    ],
)
def test_readme(server: Server, language: str, fence: str, name: str, command: list[str]) -> None:
    text = (ROOT / "sdk" / language / "README.md").read_text()
    programs = re.findall(rf"^```{fence}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    file = AT / "_samples" / "readme" / name  # Go ignores a directory with such a name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(programs[0])
    settings = {"WRIT_URL": server.url, "WRIT_API_KEY": server.token, "WRIT_POLICY_ID": POLICY, "WRIT_AGENT_ID": "billing-agent"}
    ran = subprocess.run([*command, str(file)], cwd=ROOT, env={**os.environ, **settings}, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    allowed, refunded, denied = ran.stdout.splitlines()
    assert (allowed, refunded) == ("allowed", "refunded 1250 of A-1") and "cost.exceeded" in denied
