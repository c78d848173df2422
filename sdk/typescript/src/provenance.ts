/** Where a value of an argument stands. See {@link Provenance}. */
export type Source = "user" | "record" | "text" | "named" | "model" | "unknown";

// The user's words are never dropped: later ones are not kept. Of results the oldest are dropped. A list of sources
// that is longer than a fact is unknown.
const maxWords = 64 << 10;
const maxResults = 4 << 20;
const maxFact = 1024;

/** Stands between the texts of a result. No text has it, because a lone surrogate is replaced. */
const between = "\uD800";

const joining = /[\p{L}\p{M}\p{N}\p{Cf}._\-@/+%:~#?=&]/u;
/** Finds a character that does not join. */
const apart = /[^\p{L}\p{M}\p{N}\p{Cf}._\-@/+%:~#?=&]/gu;
/** An address behind a display name. */
const addressed = /^(?:"[^"@,;<>()\\]*"[\t\n\f\r ]*|[^"@,;<>()]*)<([^<>"()\t\n\f\r @]+@[^<>"()\t\n\f\r @]+)>$/u;

interface Result {
  text: string;
  named: boolean; // it is from a place that the user named
  records: string[];
  size: number;
}

/**
 * Keeps the user's words and what tools returned in a session, and says of each argument of a call where its values
 * come from.
 *
 * A value is `user` (it stands in the user's words), `record` (it equals a field that `records` names), `text` (it
 * stands in what a tool returned), `named` (only in what a tool returned from a place that the user named), `model` (it
 * stands nowhere) or `unknown` (nowhere that is still kept). The user's words are kept up to 64 KiB, results up to 4 MiB.
 *
 * A value is compared whole, without case. It stands in a text only if neither neighbour could belong to it: letters,
 * digits and `._-@/+%:~#?=&` could, but for a full stop or a colon that ends a sentence. A paraphrase stands nowhere.
 * So let only values decide that must be exact: addresses, accounts, paths.
 */
export class Provenance {
  readonly #paths: Map<string, string[]>;
  #spoken = 0;
  readonly #words: string[] = [];
  #kept = 0;
  readonly #results: Result[] = [];
  readonly #records = new Map<string, number>();
  #dropped = false;

  /**
   * `records` has by tool the paths of the fields of its results that are yours, such as `contacts.*.email`. A star is
   * each element or member, and the empty path the whole result.
   */
  constructor(settings: { records?: Readonly<Record<string, readonly string[]>> } = {}) {
    this.#paths = new Map(Object.entries(settings.records ?? {}).map(([tool, paths]) => [tool, [...paths]]));
  }

  /** Keeps words of the user. */
  user(text: string): void {
    const size = sizeOf(text);
    if (this.#spoken + size > maxWords) {
      this.#dropped = true;
      return;
    }
    this.#spoken += size;
    this.#words.push(fold(text));
  }

  /** Keeps what a tool returned: a text, or what JSON can say. `place` is the file, address or id that it is from. */
  result(tool: string, value: unknown, place = ""): void {
    let plain = plainOf(value);
    const leaves = leavesOf(plain);
    if (typeof plain === "string") {
      const inner = decode(plain);
      if (inner !== undefined) {
        plain = inner;
        for (const leaf of leavesOf(plain)) leaves.push(leaf);
      }
    }
    const records = (this.#paths.get(tool) ?? []).flatMap((path) => fieldsAt(plain, path === "" ? [] : path.split("."))).map(fold);
    const size = leaves.reduce((sum, leaf) => sum + sizeOf(leaf), 0);
    const named = stands(this.#words, fold(trim(place)));
    this.#results.push({ text: leaves.map(fold).join(between), named, records, size });
    for (const record of records) this.#records.set(record, (this.#records.get(record) ?? 0) + 1);
    this.#kept += size;
    while (this.#kept > maxResults) this.#dropOldest();
  }

  #dropOldest(): void {
    const oldest = this.#results.shift();
    if (!oldest) return;
    this.#kept -= oldest.size;
    this.#dropped = true;
    for (const record of oldest.records) {
      const left = (this.#records.get(record) ?? 0) - 1;
      if (left > 0) this.#records.set(record, left);
      else this.#records.delete(record);
    }
  }

  /** Returns the metadata `fact.source.NAME` of each argument that has values: their sources between commas. */
  facts(args: Readonly<Record<string, unknown>>): Record<string, string> {
    const facts: Array<[string, string]> = [];
    for (const [name, argument] of Object.entries(args)) {
      const said = valuesOf(plainOf(argument)).map((value) => this.#source(value)).join();
      if (said !== "") facts.push([`fact.source.${name}`, said.length <= maxFact ? said : "unknown"]);
    }
    return Object.fromEntries(facts);
  }

  #source(value: string): Source {
    value = fold(value);
    const inResults = (named: boolean) => stands(this.#results.filter((r) => r.named === named).map((r) => r.text), value);
    if (stands(this.#words, value)) return "user";
    if (this.#records.has(value)) return "record";
    if (this.#dropped) return "unknown";
    if (inResults(false)) return "text";
    if (inResults(true)) return isDigits(value) ? "text" : "named";
    return "model";
  }
}

/** Reports whether a folded value stands in one of the folded texts. */
function stands(texts: readonly string[], value: string): boolean {
  if (value === "") return false;
  return texts.some((text) => {
    let start = text.indexOf(value);
    while (start >= 0) {
      if (!joins(before(text, start)) && ends(text, start + value.length)) return true;
      // It can stand only behind a character that does not join.
      apart.lastIndex = start;
      const next = apart.exec(text);
      start = next ? text.indexOf(value, next.index + next[0].length) : -1;
    }
    return false;
  });
}

/** Reports whether a value can end at a place of a text. */
function ends(text: string, at: number): boolean {
  const c = behind(text, at);
  return !joins(c) || ((c === "." || c === ":") && !joins(behind(text, at + 1)));
}

const behind = (text: string, at: number): string => (at < text.length ? String.fromCodePoint(text.codePointAt(at) ?? 0) : "");

const before = (text: string, at: number): string => [...text.slice(Math.max(0, at - 2), at)].at(-1) ?? "";

/** Reports whether a character could belong to a value beside it. */
const joins = (c: string): boolean => joining.test(c);

/** Reports whether a value is a number, an amount, a date or the like, which stand in many texts by chance. */
const isDigits = (value: string): boolean => /\p{Nd}/u.test(value) && /^[\p{Nd} .,\-+/:]*$/u.test(value);

const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, "\uFFFD");

const sizeOf = (text: string): number => new TextEncoder().encode(text).length;

/** Returns a text in lower case, character by character. İ stays, because it would become an i. */
function fold(text: string): string {
  // At the end of a word toLowerCase would write another letter for Σ.
  return wellFormed(text).replaceAll("Σ", "σ").split("İ").map((part) => part.toLowerCase()).join("İ");
}

const trim = (text: string): string => text.replace(/^[ \t\r\n]+/, "").replace(/[ \t\r\n]+$/, "");

/**
 * Returns the values of an argument. A text, or the text of a JSON array of texts, is read as a list, as conditions read
 * metadata. If it has quotes, comments or angle brackets of another kind than those of display names, it is one value.
 */
function valuesOf(argument: unknown): string[] {
  if (typeof argument !== "string") return leavesOf(argument).map(addressIn).filter((value) => value !== "");
  const texts = textsIn(argument);
  if (texts) return valuesOf(texts);
  const values: string[] = [];
  for (const element of argument.split(/[,;\r\n]/)) {
    const part = trim(element);
    if (part === "") continue;
    const value = addressIn(part);
    if (value === part && /["<>()]/.test(part)) return [trim(argument)];
    values.push(value);
  }
  return values;
}

function textsIn(text: string): string[] | null {
  try {
    const array: unknown = JSON.parse(text);
    return Array.isArray(array) && array.every((element) => typeof element === "string") ? array : null;
  } catch {
    return null;
  }
}

/** Returns the address that a display name stands before, else the element. */
function addressIn(element: string): string {
  element = trim(element);
  return addressed.exec(element)?.[1] ?? element;
}

/** Returns a value as JSON decodes it. It throws where JSON cannot say the value. */
function plainOf(value: unknown): unknown {
  if (typeof value === "string") return value;
  const text = JSON.stringify(value, (_, v: unknown) => {
    if (typeof v === "number" && !Number.isFinite(v)) throw new TypeError(`${v} is no JSON`);
    return v;
  }) as string | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} is no JSON`);
  return decode(text);
}

/** Decodes JSON with numbers as they are written, or returns undefined. */
function decode(text: string): unknown {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  // The text is JSON, so what begins with a digit or a minus outside of texts is a number.
  return JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) => (token[0] === '"' ? token : `"${token}"`)));
}

/** Returns the texts, the numbers and the truth values in a value. Members are in the order of their names. */
function leavesOf(value: unknown): string[] {
  const leaves: string[] = [];
  const todo = [value];
  while (todo.length > 0) {
    const v = todo.pop();
    if (typeof v !== "object") leaves.push(String(v));
    else if (Array.isArray(v)) for (let i = v.length; i > 0; i--) todo.push(v[i - 1]);
    else if (v !== null) {
      const members = v as Record<string, unknown>;
      for (const name of Object.keys(members).sort(byCodePoint).reverse()) todo.push(members[name]);
    }
  }
  return leaves;
}

/** Orders as UTF-8 does, in which characters beyond U+FFFF come last. */
function byCodePoint(a: string, b: string): number {
  const [x, y] = [[...a], [...b]];
  for (let i = 0; i < x.length && i < y.length; i++) {
    const difference = (x[i]?.codePointAt(0) ?? 0) - (y[i]?.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return x.length - y.length;
}

/** Returns the fields at a path that are texts, numbers or truth values. */
function fieldsAt(value: unknown, path: readonly string[]): string[] {
  const [first, ...rest] = path;
  if (typeof value !== "object") return first === undefined ? [String(value)] : [];
  if (value === null || first === undefined) return [];
  if (Array.isArray(value)) return first === "*" ? value.flatMap((element) => fieldsAt(element, rest)) : [];
  return Object.entries(value).flatMap(([name, member]) => (first === "*" || first === name ? fieldsAt(member, rest) : []));
}
