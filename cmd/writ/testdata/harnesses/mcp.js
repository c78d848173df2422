// An MCP server with one tool, which makes a file.
const fs = require('fs')
const answers = {
  initialize: (p) => ({ protocolVersion: p.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'files', version: '1' } }),
  'tools/list': () => ({
    tools: [{
      name: 'make', description: 'Makes a file.',
      inputSchema: { type: 'object', properties: { target: { type: 'string' } }, required: ['target'] },
    }],
  }),
  'tools/call': (p) => {
    fs.writeFileSync(p.arguments.target, '')
    return { content: [{ type: 'text', text: 'made' }] }
  },
}
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  const answer = answers[method]
  const body = answer ? { result: answer(params) } : { error: { code: -32601, message: 'no such method' } }
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...body }) + '\n')
})
