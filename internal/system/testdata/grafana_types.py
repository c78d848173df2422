"""Reads dashboards through Grafana's own types and prints what they write, a JSON document a line.

With --write the files get what the types write. A member that the types do not know is lost, and
one that is missing gets the types' default.
"""

import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

register_default_plugins()


def members(document: dict, indent: str) -> str:
    return (",\n" + indent).join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in document.items())


def text(document: dict) -> str:
    """Returns the document with a line for each of its members and for each member of a panel."""
    panels = ",\n    ".join("{" + members(panel, "     ") + "}" for panel in document.pop("panels"))
    return "{\n  " + members(document, "  ") + ',\n  "panels": [\n    ' + panels + "\n  ]\n}\n"


names = [name for name in sys.argv[1:] if name != "--write"]
for name in names:
    with open(name, encoding="utf-8") as file:
        written = JSONEncoder().encode(Dashboard.from_json(json.load(file)))
    if "--write" in sys.argv:
        with open(name, "w", encoding="utf-8") as file:
            file.write(text(json.loads(written)))
    else:
        print(written)
