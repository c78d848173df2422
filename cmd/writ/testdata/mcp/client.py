"""Makes calls through a server that is a program, with the SDK for Python. The arguments are JSON: the
program and its arguments, and calls of [tool, arguments]. Prints what the model hears."""

import asyncio
import json
import os
import sys

from mcp import Client, MCPError, StdioServerParameters


async def main() -> None:
    command, *args = json.loads(sys.argv[1])
    heard = []
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    async with Client(server) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        await client.list_tools()
        for name, arguments in json.loads(sys.argv[2]):
            try:
                result = await client.call_tool(name, arguments)
                text = "".join(c.text for c in result.content)
                heard.append(("error " if result.is_error else "ok ") + text)
            except MCPError as e:
                heard.append(str(e.code))
    print(json.dumps(heard))


asyncio.run(main())
