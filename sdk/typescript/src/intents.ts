import type { WebSocket } from "ws";
import { membersOf, strictJSON } from "./json.js";

const evaluate = "/v1/policy/evaluate";
/**
 * Bounds what is sent on a stream of intents. A longer intent is a request of its own, so 64 intents never exceed the
 * bytes that a stream may have on its way.
 */
const maxLine = 64 << 10;
/** How long a stream stays open while no call uses it, in milliseconds. */
const maxIdle = 60_000;
/** Bounds the bytes of an answer. */
const maxAnswer = 8 << 20;

/**
 * Returns a fetch that sends evaluations on a stream of intents, and all other requests with plain. The first
 * evaluation opens the stream, and the first one after its end opens another. timeout bounds the opening.
 */
export function streaming(plain: typeof fetch, timeout: number): typeof fetch {
  let last: Stream | undefined;
  return async (target, init) => {
    const body = init?.body;
    if (init?.method !== "POST" || typeof body !== "string" || !String(target).endsWith(evaluate) || new TextEncoder().encode(body).length > maxLine) {
      return plain(target, init);
    }
    if (!last?.takes) last = new Stream(`${String(target)}/stream`, new Headers(init.headers).get("authorization")!, timeout);
    return last.ask(body, init.signal!);
  };
}

/** The answer with which the server refuses a stream. */
interface Refusal {
  status: number;
  headers: Record<string, string>;
  body: string | null;
}

/** Waits for a promise, but not longer than the signal lets it. */
function before<T>(signal: AbortSignal, of: Promise<T>): Promise<T> {
  return new Promise((done, fail) => {
    const stop = () => fail(signal.reason);
    of.then(done, fail).finally(() => signal.removeEventListener("abort", stop));
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
  });
}

interface Call {
  done(answer: Response): void;
  fail(e: unknown): void;
}

/** One connection. */
class Stream {
  #socket: WebSocket | undefined;
  readonly #opened: Promise<Refusal | undefined>;
  #hold: (held: boolean) => void = () => undefined; // says whether the connection keeps the process alive
  #window = 0;
  #calls = 0; // how many calls use the stream
  #refs = 0;
  readonly #unanswered = new Map<string, Call>(); // by ref
  #room: Array<() => void> = []; // of the calls that wait for it
  #heard = 0; // how many answers came
  #used = performance.now();
  #over: Error | undefined; // why no further intent is taken

  constructor(url: string, authorization: string, timeout: number) {
    this.#opened = this.#open(url, authorization, timeout);
    this.#opened.then((refusal) => refusal && this.#end(new Error("the stream of intents was refused")), (e: Error) => this.#end(e));
  }

  /** Opens the connection. It resolves after the first message, and the rest is read until the connection ends. */
  async #open(url: string, authorization: string, timeout: number): Promise<Refusal | undefined> {
    const { default: WebSocket } = await import("ws");
    const socket = new WebSocket(url.replace(/^http/, "ws"), "writ.v1", {
      headers: { Authorization: authorization },
      handshakeTimeout: timeout,
      maxPayload: maxAnswer,
      perMessageDeflate: false,
    });
    this.#socket = socket;
    return new Promise((done, fail) => {
      socket.on("unexpected-response", (request, response) => {
        let body = "";
        response.setEncoding("utf8");
        response.on("data", (part: string) => (body = (body + part).slice(0, maxAnswer)));
        response.on("close", () => {
          request.destroy();
          const status = response.statusCode ?? 0;
          const headers = Object.fromEntries(Object.entries(response.headers).map(([k, v]) => [k, String(v)]));
          if (status < 300 || status > 599) fail(new Error(`there is no stream of intents, but status ${status}`));
          else done({ status, headers, body: status === 304 ? null : body });
        });
      });
      socket.on("upgrade", ({ socket: below }) => {
        this.#hold = (held) => (held ? below.ref() : below.unref());
        this.#hold(this.#calls > 0);
      });
      const lost = (e: Error) => {
        this.#end(e);
        fail(e);
      };
      socket.on("message", (data) => {
        try {
          this.#take(String(data));
          done(undefined);
        } catch (e) {
          lost(e as Error);
        }
      });
      // The server sends one every 15 seconds.
      socket.on("ping", () => {
        if (this.#calls === 0 && performance.now() - this.#used > maxIdle) lost(new Error("the stream of intents was not used"));
      });
      socket.on("error", (cause) => lost(new Error("the stream of intents was cut", { cause })));
      socket.on("close", () => lost(new Error("the stream of intents was cut")));
    });
  }

  /** Whether the stream takes intents. */
  get takes(): boolean {
    return !this.#over;
  }

  /** Sends a line and returns its answer, as the answer of the request. */
  async ask(body: string, signal: AbortSignal): Promise<Response> {
    this.#hold(++this.#calls > 0);
    const heard = this.#heard;
    try {
      const refusal = await before(signal, this.#opened);
      if (refusal) return new Response(refusal.body, refusal);
      while (!this.#over && this.#unanswered.size >= this.#window) {
        await before(signal, new Promise<void>((done) => this.#room.push(done)));
      }
      if (this.#over) throw this.#over;
      const ref = String(++this.#refs);
      const answer = new Promise<Response>((done, fail) => this.#unanswered.set(ref, { done, fail }));
      this.#socket!.send(`{"ref":"${ref}",${body.slice(1)}`);
      return await before(signal, answer);
    } catch (e) {
      if (signal.aborted && this.#heard === heard) this.#end(new Error("no answer came in time")); // the connection may be dead
      throw e;
    } finally {
      this.#used = performance.now();
      this.#hold(--this.#calls > 0);
    }
  }

  /** Takes no more, and closes the connection. What has no answer gets none. */
  #end(why: Error): void {
    this.#over ??= why;
    this.#hold = () => undefined; // the socket has gone
    this.#socket?.terminate();
    for (const call of this.#unanswered.values()) call.fail(why);
    this.#unanswered.clear();
    this.#moved();
  }

  /** Lets the calls that wait for room look again. */
  #moved(): void {
    const all = this.#room;
    this.#room = [];
    for (const look of all) look();
  }

  /** Takes a message of the server. */
  #take(text: string): void {
    const members = membersOf(strictJSON(text));
    if (!members) throw new Error("a message of the stream is no object");
    if (this.#window === 0) {
      const window = members["window"];
      if (typeof window !== "number" || window < 1 || this.#socket?.protocol !== "writ.v1") throw new Error("it is no stream of intents");
      this.#window = window;
      return;
    }
    if ("closing" in members) {
      this.#over ??= new Error("the stream of intents ends");
      this.#moved();
      return;
    }
    const { ref, replayed, expired: _, retry_after: after, ...body } = members;
    const call = typeof ref === "string" ? this.#unanswered.get(ref) : undefined;
    const status = body["ok"] === true ? 200 : body["status"];
    if (!call || typeof status !== "number" || !(status >= 200 && status < 600)) throw new Error("an answer of the stream is to no intent, or has no status");
    this.#unanswered.delete(ref as string);
    this.#heard++;
    const headers = { ...(replayed === true && { "Idempotent-Replayed": "true" }), ...(typeof after === "number" && { "Retry-After": String(after) }) };
    call.done(new Response(JSON.stringify(body), { status, headers }));
    this.#moved();
  }
}
