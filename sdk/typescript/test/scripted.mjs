// A server that gives scripted answers, in order.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

export const conformance = JSON.parse(readFileSync(new URL("../../conformance.json", import.meta.url), "utf8"));

export async function scripted(answers, use) {
  const seen = [];
  const server = createServer(async (req, res) => {
    const parts = [];
    for await (const part of req) parts.push(part);
    seen.push({ path: req.url, headers: req.headers, body: Buffer.concat(parts).toString() });
    const a = answers[seen.length - 1];
    if (a?.delay_ms) await new Promise((done) => setTimeout(done, a.delay_ms));
    if (!a || a.cut) return req.socket.destroy();
    for (const [k, v] of Object.entries(a.headers ?? {})) res.setHeader(k, v);
    if (a.cut_body) {
      res.writeHead(a.status, { "Content-Length": 100000 });
      return res.write(a.body ?? "", () => req.socket.destroy());
    }
    res.writeHead(a.status);
    res.end(a.body ?? "");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  try {
    return await use(`http://127.0.0.1:${server.address().port}`, seen);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
