// A server that gives scripted answers, in order.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { WebSocketServer } from "ws";

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

/** A server that opens scripted streams of intents, in order. seen has how many it opened, and the lines on them. */
export async function scriptedStreams(streams, use) {
  const seen = { opened: 0, lines: [] };
  const rest = conformance.cases[0].answers[0].body.slice(1);
  const server = new WebSocketServer({
    host: "127.0.0.1", port: 0, path: "/v1/policy/evaluate/stream", handleProtocols: () => "writ.v1",
    verifyClient: (_, done) => {
      const stream = streams[seen.opened++];
      const refused = stream ? stream.refused : { status: 404, body: "there is no such stream" };
      return refused ? done(false, refused.status, refused.body, refused.headers) : done(true);
    },
  });
  server.on("connection", (socket) => {
    const { hello = ['{"window":64,"window_bytes":4194304}'], answers, cut } = streams[seen.opened - 1];
    let n = 0;
    const cutAfterLast = () => cut && n === answers.length && socket.terminate();
    socket.on("error", () => undefined);
    socket.on("message", (data) => {
      const { ref, ...body } = JSON.parse(String(data));
      seen.lines.push(JSON.stringify(body));
      const texts = (answers[n++] ?? []).map((text) => text.replaceAll("$REF", ref).replaceAll("$ALLOW", () => rest));
      for (const text of texts) socket.send(text);
      socket.ping("", false, cutAfterLast); // after what was sent
    });
    for (const text of hello) socket.send(text);
    socket.ping("", false, cutAfterLast);
  });
  await new Promise((done) => server.on("listening", done));
  try {
    return await use(`http://127.0.0.1:${server.address().port}`, seen);
  } finally {
    for (const socket of server.clients) socket.terminate();
    server.close();
  }
}
