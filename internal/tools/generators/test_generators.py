"""Generates a client of api/openapi.yaml in three languages and uses each against a real writ.

A generator's warning fails its test. WRIT is the path of the program, and GENERATORS is a directory with this
directory's files, the modules of package.json in node_modules, and the modules of go.mod in Go's cache.
UPDATE=1 writes the types under the clients of sdk/, otherwise they are compared.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sdk_types
from serving import POLICY, WRIT, Server

AT = Path(os.environ.get("GENERATORS", "."))
DOCUMENT = str(Path(__file__).parents[3] / "api" / "openapi.yaml")
pytestmark = pytest.mark.skipif(not WRIT, reason="WRIT does not name the program writ")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("writ") / "data")
    yield server
    server.kill()


def run(*command: str, **more: str) -> str:
    """Returns what a program prints. It must print nothing on standard error."""
    done = subprocess.run(command, cwd=AT, env={**os.environ, **more}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def uses(server: Server, *command: str) -> None:
    settings = {"WRIT_URL": server.url, "WRIT_API_KEY": server.token, "WRIT_POLICY_ID": POLICY}
    said = run(*command, **settings, WRIT_AGENT_ID="billing-agent")
    assert said.lower().splitlines() == ["true allow", "409 intent_conflict", "allow true"]


def same(path: Path, text: str) -> None:
    """Compares the types under a client with those that the document leads to."""
    if os.environ.get("UPDATE"):
        path.write_text(text)
    assert path.read_text() == text, f"{path.name} is not what openapi.yaml leads to: UPDATE=1 .ci/sdk writes it"


def test_types_under_the_client_for_typescript() -> None:
    same(sdk_types.TYPESCRIPT, sdk_types.typescript(run, AT))


def test_types_under_the_client_for_python() -> None:
    tool = str(Path(sys.executable).with_name("datamodel-codegen"))
    same(sdk_types.PYTHON, sdk_types.python(run, AT, tool))


def test_openapi_python_client(server: Server) -> None:
    tool = str(Path(sys.executable).with_name("openapi-python-client"))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # it calls ruff
    options = ["--meta", "none", "--overwrite", "--fail-on-warning"]
    said = run(tool, "generate", "--path", DOCUMENT, "--output-path", "client", *options, PATH=path)
    assert "warning" not in said.lower(), said
    uses(server, sys.executable, "use.py")


def test_openapi_typescript(server: Server) -> None:
    said = run("node_modules/.bin/openapi-typescript", DOCUMENT, "-o", "client.d.ts")
    assert "warn" not in said.lower(), said
    run("node_modules/.bin/tsc", "-p", "tsconfig.json")
    uses(server, "node", "dist/use.js")


def test_oapi_codegen(server: Server) -> None:
    client = run("go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "client", DOCUMENT)
    (AT / "client").mkdir(exist_ok=True)
    (AT / "client" / "client.go").write_text(client)
    run("go", "build", "-o", "use", ".")
    uses(server, "./use")
