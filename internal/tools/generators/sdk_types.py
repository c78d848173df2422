"""Generates the types under the clients of sdk/ from api/openapi.yaml: the schemas that the clients send or return."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ruamel.yaml

ROOT = Path(__file__).parents[3]
SCHEMAS = ["ActionIntent", "Agent", "Approval", "Authorization", "CreateSession", "Credential", "Problem", "RecordAction", "Session"]
TYPESCRIPT = ROOT / "sdk" / "typescript" / "src" / "api.ts"
PYTHON = ROOT / "sdk" / "python" / "src" / "writ" / "_api.py"


def names(of: Any) -> Iterator[str]:
    """Yields the schemas that a part of the document refers to."""
    for key, value in of.items() if isinstance(of, dict) else enumerate(of) if isinstance(of, list) else ():
        if key == "$ref":
            yield value.rpartition("/")[2]
        else:
            yield from names(value)


def opened(of: Any) -> Any:
    """Returns a schema whose objects may have more members: a newer server sends what a client does not know."""
    if isinstance(of, dict):
        return {key: opened(value) for key, value in of.items() if (key, value) != ("additionalProperties", False)}
    return [opened(value) for value in of] if isinstance(of, list) else of


def pruned() -> str:
    """Returns the document with those schemas alone, as JSON."""
    document = ruamel.yaml.YAML(typ="safe").load((ROOT / "api" / "openapi.yaml").read_text())
    schemas, kept, left = document["components"]["schemas"], set(), list(SCHEMAS)
    while left:
        if (name := left.pop()) not in kept:
            kept.add(name)
            left += names(schemas[name])
    components = {"schemas": {name: opened(schemas[name]) for name in schemas if name in kept}}
    return json.dumps({"openapi": document["openapi"], "info": document["info"], "paths": {}, "components": components}, default=str)


def typescript(run: Callable[..., str], at: Path) -> str:
    """Returns src/api.ts, made by openapi-typescript."""
    (at / "pruned.json").write_text(pruned())
    run("node_modules/.bin/openapi-typescript", "pruned.json", "-o", "api.ts")
    return (at / "api.ts").read_text()


def python(run: Callable[..., str], at: Path, tool: str) -> str:
    """Returns writ/_api.py, made by datamodel-codegen."""
    (at / "pruned.json").write_text(pruned())
    options = ["--output-model-type", "typing.TypedDict", "--target-python-version", "3.10", "--use-union-operator"]
    options += ["--formatters", "builtin", "--disable-timestamp"]
    run(tool, "--input", "pruned.json", "--input-file-type", "openapi", "--output", "api.py", *options)
    return (at / "api.py").read_text()
