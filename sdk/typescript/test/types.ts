// Compiles only if the types that are written by hand have the members of the schemas of openapi.yaml.
import type { Cost, Intent, Problem, Receipt } from "writ";
import type { components } from "../src/api.js";

type Schemas = components["schemas"];
type Camel<S> = S extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B> & string>}` : S;
/** Is true, or what either side lacks. */
type Same<Document, Own> = [Exclude<Document, Own>, Exclude<Own, Document>] extends [never, never]
  ? true
  : { lacks: Exclude<Document, Own>; hasMore: Exclude<Own, Document> };

type Checks = [
  Same<Camel<keyof Schemas["ActionIntent"]>, Exclude<keyof Intent, "key" | "sessionId">>, // the id's source, and a member beside the intent
  Same<Camel<keyof Schemas["Cost"]>, keyof Cost>,
  Same<keyof Schemas["Receipt"], keyof Receipt>,
  // An error has what a program acts upon. What only describes, and the bytes of a refused decision, stay in the answer.
  Same<
    Exclude<Camel<keyof Schemas["Problem"]>, "type" | "title" | "instance" | "ok" | "decisionId" | "reasons" | "auditDigest" | "receipt">,
    Exclude<keyof Problem, keyof Error>
  >,
];
const checks: Checks = [true, true, true, true];
export default checks;
