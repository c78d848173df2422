// Makes calls through a server that is a program, with the SDK for JavaScript. The arguments are JSON: the
// program and its arguments, and calls of [tool, arguments]. Prints what the model hears.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [command, ...args] = JSON.parse(process.argv[2]);
const client = new Client({ name: 'test', version: '1' });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
await client.listTools();
const heard = [];
for (const [name, args] of JSON.parse(process.argv[3])) {
  try {
    const result = await client.callTool({ name, arguments: args });
    heard.push((result.isError ? 'error ' : 'ok ') + result.content.map((c) => c.text).join(''));
  } catch (e) {
    heard.push(String(e.code));
  }
}
await client.close();
console.log(JSON.stringify(heard));
