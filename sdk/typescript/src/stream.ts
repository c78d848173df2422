import type { components } from "./api.js";
import { AnswerError, NoDecision, WritError } from "./errors.js";
import { membersOf, strictJSON } from "./json.js";

/** An event of a stream: a row of the history, or a number of rows that were skipped. */
export type Event =
  | { readonly id: string; readonly row: components["schemas"]["Authorization"]; readonly skipped?: undefined }
  | { readonly id: string; readonly skipped: Record<string, unknown>; readonly row?: undefined };

/** A connection of a stream ended. A new one may go on, after so many milliseconds. */
export class Cut {
  constructor(
    readonly error: WritError,
    readonly after = 0,
  ) {}
}

/** Bounds the characters of an event. */
const maxEvent = 8 << 20;
/** How long a stream may be silent. The server sends something every 15 seconds. */
export const silence = 30_000;
const attempts = 3;
const firstPause = 250;

/** Yields the events of a stream. open makes a connection that goes on after an event. */
export async function* follow(open: (at: string) => AsyncGenerator<Message>, lastEventId: string): AsyncGenerator<Event> {
  let at = lastEventId;
  for (let failures = 0, pause = firstPause; ; pause *= 2) {
    try {
      for await (const message of open(at)) {
        const event = eventOf(message);
        if (message.id) [at, failures, pause] = [message.id, 0, firstPause];
        if (event) yield event;
      }
      throw new Cut(new NoDecision("the stream was cut"));
    } catch (e) {
      if (!(e instanceof Cut)) throw e;
      if (++failures === attempts) throw e.error;
      await new Promise((done) => setTimeout(done, Math.max(e.after, pause / 2 + Math.random() * pause)));
    }
  }
}

/** A message of server-sent events. */
export interface Message {
  id: string;
  kind: string;
  data: string[];
}

/** Reads the messages of a body. alive is called for each part. */
export async function* messages(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<Message> {
  const reader = body.getReader();
  const text = new TextDecoder();
  try {
    let rest = "";
    let m: Message = { id: "", kind: "", data: [] };
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      const lines = (rest + text.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > maxEvent) throw new AnswerError("an event is too long");
      for (const line of lines.map((l) => l.replace(/\r$/, ""))) {
        if (line === "") {
          yield m;
          m = { id: "", kind: "", data: [] };
          continue;
        }
        const [, name, given = ""] = /^([^:]*)(?::(.*))?$/s.exec(line)!;
        const value = given.replace(/^ /, "");
        if (name === "id") m.id = value;
        if (name === "event") m.kind = value;
        if (name === "data") m.data.push(value);
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Returns the event that a message is, or null if it is none that the client knows. */
function eventOf(m: Message): Event | null {
  if (m.data.length === 0 || !["", "message", "skipped"].includes(m.kind)) return null;
  let doc: Record<string, unknown> | null = null;
  try {
    doc = membersOf(strictJSON(m.data.join("\n")));
  } catch {
    // refused below
  }
  if (!doc) throw new AnswerError("the data of an event is no object");
  return m.kind === "skipped" ? { id: m.id, skipped: doc } : { id: m.id, row: doc as unknown as components["schemas"]["Authorization"] };
}
