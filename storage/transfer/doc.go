// Package transfer carries an organization from one store to another, in a file that
// anybody can read and verify.
//
// # The file
//
// The file is NDJSON in UTF-8. Each line is one JSON object and ends with the byte 0x0a.
// An object has one member, which names the kind of line. In order:
//
//	{"header":   {"format","id","organization_id","exported_at","last","forgotten","keys"}}
//	{"row":      a row of the history as GET /v1/authorizations/{id} shows it}     any number
//	{"removed":  {"intent_id","decision_id","leaves"}}                            among the rows
//	{"document": {"kind","id","value"}}                                           any number
//	{"footer":   {"rows","settled","removed","documents","root","digest"}}
//
// The format is "writ-export/4". Files of the formats before can be imported, too. A file of
// "writ-export/3" has no origins and revisions. A file of "writ-export/2" also has no findings in its
// rows, and [Import] computes their left_out.
//
// Id is a UUIDv7. Last is the greatest decision id of the file, and empty if the file has no rows. Forgotten is later
// than all intents were issued whose removed decisions the source has forgotten, or a store before it. It is absent if
// there are none. Keys is the JSON Web Key Set of the source. Rows and removed rows are in the order of their decision
// ids, each greater than the one before. A removed row was removed by retention, but its intent stays decided.
// A leaf is {"chain","seq","index","hash"}, chain and hash in hex.
//
// A document's kind is organization (a stop), agent, list, library, rule, plan, counts, details, origin,
// revision, policy or key. Its id is
// in base64url without padding. Its value is the stored JSON. Documents are in the order
// in which their kinds are listed here. Documents of one kind are in the order of the
// bytes of their ids. Each document occurs once. A key is the hash of an API key, never
// the key. Details occur only in older exports. They are read and not stored: see
// [Import].
//
// A row names revisions of the store that decided it, by rules_revision and by rule_revision. An origin is
// such a store: {"id","chains","forgotten"}. The receipt of a row names the chain. Id is the id of the export that took
// the rows out of that store, so the source is the origin of the header's id. A revision is a rule (r), a
// list (l) or a library (b) as it stood in an origin from the revision since to before the revision until:
// {"origin","of","id","since","until","replaced_at","removed","value"}. Until is absent if the document was
// current at the export. Revisions of one document do not overlap. Documents under which nothing can have
// been decided have no revision.
//
// The footer counts the lines above it. Settled is the number of rows with a settlement. Root
// is the root of [ledger.Import]. Digest is "sha256:" and the SHA-256, in hex, of all bytes
// of the lines above. A file without a footer is incomplete.
//
// For example, this is the file of an organization without rows and documents:
//
//	{"header":{"format":"writ-export/4","id":"01a1fe16-…","organization_id":"acme","exported_at":"2026-11-22T12:00:00Z","last":"","keys":{"keys":[…]}}}
//	{"footer":{"rows":0,"settled":0,"removed":0,"documents":0,"root":"sha256:e3b0c442…","digest":"sha256:…"}}
//
// # What is verified
//
// [Check] verifies each row by its receipt and its audit digest, and each settlement by its
// receipt, with the keys that it was given. It accepts only documents that their endpoints accept,
// beside each other: see [CheckConfig]. Nothing proves the documents or the removed rows, and
// nothing proves that no row is missing. A person who can change the file can change the documents,
// the removed rows and the footer. So send the footer's digest separately from the file, and
// compare both. The counts in a file are not used: [Import] counts the documents. If the file has
// changed since Check, Import stores nothing that Check has not read.
//
// # Exporting and importing again
//
// [Receive] exports from a server in parts, each of one moment, and continues a file as Export does: see [Part].
// [Export] continues an interrupted file after its last complete row or removed row, up to the
// decision id header.last. So the file has each earlier decision once. It may also have settlements
// and removals that happened during the export. [Import] stores nothing twice. If it is
// interrupted, run it again with the same file. Until everything is stored and the entry
// [ledger.Import] is signed, a document of the kind import says that it is not finished. [Abandon]
// undoes an unfinished import. One entry, [ledger.Abandonment], announces the number of removed
// rows.
package transfer
