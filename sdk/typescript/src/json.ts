/**
 * Reads one I-JSON value (RFC 7493). It refuses what two readers could read in two ways: a member twice, a
 * number that is no plain integer, a lone surrogate, and bytes that are not UTF-8.
 */
export function strictJSON(data: string | Uint8Array): unknown {
  const text = typeof data === "string" ? data : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  const value: unknown = JSON.parse(text);
  // The text is JSON, so these tokens and white space are all that it has.
  const names: Array<Set<string> | null> = []; // of the objects and arrays around a token
  const tokens = [...text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g)].map((m) => m[0]);
  tokens.forEach((token, i) => {
    switch (token[0]) {
      case "{":
        names.push(new Set());
        break;
      case "[":
        names.push(null);
        break;
      case "}":
      case "]":
        names.pop();
        break;
      case '"': {
        const s = JSON.parse(token) as string;
        if (/\p{Surrogate}/u.test(s)) throw new SyntaxError("lone surrogate");
        const around = names.at(-1);
        if (tokens[i + 1] !== ":" || !around) break;
        if (around.has(s)) throw new SyntaxError("duplicate member");
        around.add(s);
        break;
      }
      default:
        if (/^-?\d/.test(token) && !/^(0|-?[1-9]\d*)$/.test(token)) throw new SyntaxError("a number that is no plain integer");
    }
  });
  return value;
}

/** Returns the canonical JSON (RFC 8785) of a value that was decoded from JSON. */
export function canonical(v: unknown): string {
  if (Array.isArray(v)) return `[${v.map(canonical).join()}]`;
  const m = membersOf(v);
  return m ? `{${Object.keys(m).sort().map((n) => `${JSON.stringify(n)}:${canonical(m[n])}`).join()}}` : JSON.stringify(v);
}

/** Returns the members of an object, or null for any other value. */
export function membersOf(v: unknown): Record<string, unknown> | null {
  return typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Record<string, unknown>) : null;
}
