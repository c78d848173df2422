// Package transfer carries an organization from one store to another, in a file that
// anybody can read and verify.
//
// # The file
//
// It is NDJSON: UTF-8, one JSON object a line, each line ended by 0x0a. An object has
// one member, which says what the line is. In order:
//
//	{"header":   {"format","id","organization_id","exported_at","last","keys"}}
//	{"row":      a row of the history as GET /v1/authorizations/{id} shows it}     any number
//	{"removed":  {"intent_id","decision_id","leaves"}}                            among the rows
//	{"document": {"kind","id","value"}}                                           any number
//	{"footer":   {"rows","settled","removed","documents","root","digest"}}
//
// The format is "writ-export/1". Id is a UUIDv7, last the greatest decision id of the
// file (empty: there is none), keys the JSON Web Key Set of the source. Rows and
// removed ones are in the order of their decision ids, each greater than the one
// before. A removed one is what is left of a row that retention has removed: its intent
// stays decided. A leaf is {"chain","seq","index","hash"}, chain and hash in hex.
//
// A document's kind is agent, rule, plan, counts, details, policy or key, its id
// base64url without padding, its value what the store keeps. Documents are in the order
// of their kinds as listed here, and those of a kind in the order of their ids' bytes,
// each once. A key is the hash of an API key, never the key. Details, which older
// exports have, are read and not stored: see [Import].
//
// The footer counts the lines above it; settled is how many rows have a settlement. Root is that of
// [ledger.Import], digest "sha256:" and the SHA-256, in hex,
// of all bytes of the lines above. A file without a footer is not whole.
//
// For example, the history of an organization without any:
//
//	{"header":{"format":"writ-export/1","id":"01a1fe16-…","organization_id":"acme","exported_at":"2026-11-22T12:00:00Z","last":"","keys":{"keys":[…]}}}
//	{"footer":{"rows":0,"settled":0,"removed":0,"documents":0,"root":"sha256:e3b0c442…","digest":"sha256:…"}}
//
// # What is verified
//
// Each row has its receipt and its audit digest, and so does its settlement:
// [Check] holds them to keys that it was given. Documents, what is left of removed rows,
// and that no row is missing, are as good as the file: whoever can change the file can
// change these, the footer too. Carry the digest of the footer by another way, and
// compare. The counts in a file are not used: [Import] counts its documents. Of a file
// that is another than Check has read Import stores nothing that Check has not.
//
// # Exporting and importing again
//
// [Export] goes on with a file that it was interrupted in: after the last whole line
// of a row or a removed one, up to header.last. So each decision until the export began
// is there once; what was posted or removed since may be. [Import] stores nothing twice:
// interrupted, it is run again with the same file. Until all is stored and the entry
// [ledger.Import] is signed, a document of the kind import says that it is not finished.
// [Abandon] takes it back: one entry, [ledger.Abandonment], announces how many rows go.
package transfer
