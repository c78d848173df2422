package forged

import (
	"bytes"
	"slices"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// dropWriter deletes the rows of a writer.
func (f *forger) dropWriter(name string) {
	f.Records = slices.DeleteFunc(f.Records, func(r *storage.Record) bool { return r.Writer == name })
}

// chain returns a forgery of the history SeveralChains. In want, the letters A, B and C are
// replaced by the chain ids.
func chain(name, want string, do func(f *forger, a, b, c [16]byte)) forgery {
	return forgery{name, func(f *forger) string {
		do(f, f.chains["a"], f.chains["b"], f.chains["c"])
		return want
	}}
}

var chainForgeries = []forgery{
	chain("the heads of a chain deleted", "of chain B, of which the history has no head (writer \"b\" decided it)", func(f *forger, _, b, _ [16]byte) {
		delete(f.ByChain, b)
		f.Graves = nil
	}),
	chain("a chain deleted with its rows, and not what it says of others", "its tombstone is under head 1 of chain B, of which the history has no head",
		func(f *forger, _, b, _ [16]byte) { delete(f.ByChain, b); f.dropWriter("b") }),
	chain("a chain deleted that has announced a removal", notCovered, func(f *forger, _, _, c [16]byte) {
		delete(f.ByChain, c)
		f.dropWriter("c")
		f.Others = nil
	}),
	chain("the first head of a chain deleted", "chain B, head 1: receipt: broken chain: head 2 follows head 0",
		func(f *forger, _, b, _ [16]byte) { f.ByChain[b] = f.ByChain[b][1:] }),
	chain("the last head of a chain deleted", "its receipt is under head 3 of chain A, and the history ends at head 2",
		func(f *forger, a, _, _ [16]byte) { f.ByChain[a] = f.ByChain[a][:2] }),
	chain("a head of an unknown writer", "chain 09000000000000000000000000000000, head 1: it signs 1 leaves, and 0 are there", func(f *forger, _, _, _ [16]byte) {
		h, _, _ := signerOf(1).Seal(receipt.Chain{ID: [16]byte{9}}, noon, make([][32]byte, 1))
		f.ByChain[h.Chain] = []receipt.SignedHead{h}
	}),
	chain("a row deleted", "chain C, head 2: it signs 1 leaves, and 0 are there", func(f *forger, _, _, _ [16]byte) {
		f.Records = slices.DeleteFunc(f.Records, func(r *storage.Record) bool { return r.IntentID == intentID(5) })
	}),
	chain("a row given twice", "head 4 of chain B signs 1 leaves, and this is one more", func(f *forger, _, _, _ [16]byte) {
		f.Records = append(f.Records, f.Records[3])
	}),
	chain("a row's writer changed", notDigested, func(f *forger, _, _, _ [16]byte) { f.Records[0].Writer = "c" }),
	chain("a tombstone moved to the same head of another chain", "head 1 of chain C does not sign all of its leaves",
		func(f *forger, _, _, c [16]byte) { f.Graves[0].Leaves[0].Chain = c }),
	chain("a tombstone moved to another head of another chain", "its tombstone is under head 9 of chain C, and the history ends at head 4",
		func(f *forger, _, _, c [16]byte) { f.Graves[0].Leaves[0].Chain, f.Graves[0].Leaves[0].Seq = c, 9 }),
}

// foreign returns acme's imported rows.
func (f *forger) foreign() (rows []*storage.Record) {
	for _, r := range f.rows("acme") {
		if chain, _ := r.Receipt.Inclusion().Chain(); chain != f.own {
			rows = append(rows, r)
		}
	}
	return rows
}

// left returns the only imported tombstone.
func (f *forger) left() *storage.Tombstone {
	return f.Graves[slices.IndexFunc(f.Graves, func(t *storage.Tombstone) bool { return t.Imported })]
}

// imports returns a forgery of a history with imported rows.
func imports(name, want string, do func(f *forger)) forgery {
	return forgery{name, func(f *forger) string { do(f); return want }}
}

var importForgeries = []forgery{
	imports("a row deleted", "it was signed for 7 rows, 2 settlements and 1 removed rows, and 6, ", func(f *forger) { f.drop(f.foreign()[1]) }),
	imports("a genuine row added", "it was signed for 7 rows, 2 settlements and 1 removed rows, and 8, ",
		func(f *forger) { f.Records = append(f.Records, f.more) }),
	imports("a row given twice", "and 8, ", func(f *forger) { f.Records = append(f.Records, f.foreign()[1]) }),
	imports("a row swapped for another genuine one", "one of them was swapped", func(f *forger) {
		i := slices.IndexFunc(f.Records, func(r *storage.Record) bool { return r.Settlement == nil })
		f.Records[i] = f.more
	}),
	imports("a row changed", notDigested, func(f *forger) { f.foreign()[0].AgentID = "another" }),
	imports("a receipt under another head", "and it does not verify by itself: receipt: signature does not verify", func(f *forger) {
		f.foreign()[0].Receipt.Sig = f.foreign()[1].Receipt.Sig
	}),
	imports("a settlement deleted", "and 7, 1 and 1 exist", func(f *forger) {
		for _, r := range f.foreign() {
			if r.Settlement == nil {
				continue
			}
			if chain, _ := r.Settlement.Receipt.Chain(); chain != f.own {
				r.Settlement = nil
				return
			}
		}
	}),
	imports("a settlement with a receipt of the row", "its settlement: ", func(f *forger) {
		all := f.foreign()
		r := all[slices.IndexFunc(all, func(r *storage.Record) bool { return r.Settlement == nil })]
		in := r.Receipt.Inclusion()
		r.Settle(storage.Settlement{Outcome: "failed", RecordedAt: noon.Add(time.Hour), Receipt: &in})
	}),
	imports("a row passed for one that had been removed before", "and 6, 2 and 2 exist", func(f *forger) {
		f.bury("acme", 1)
		f.Graves[len(f.Graves)-1].Imported = true
	}),
	imports("a row removed without an announcement", "2 rows were removed that only retention entries for 1 cover", func(f *forger) { f.bury("acme", 1) }),
	imports("what is left of a removed row deleted", "and 7, 2 and 0 exist", func(f *forger) {
		f.Graves = slices.DeleteFunc(f.Graves, func(t *storage.Tombstone) bool { return t.Imported })
	}),
	imports("the intent of a removed row changed", "one of them was swapped", func(f *forger) { f.left().IntentID = "5eed0000-0000-4000-8000-0000000000ff" }),
	imports("rows of an organization that imported nothing", "no import entry is of the organization", func(f *forger) {
		f.deleteEntry(f.entry(storage.ImportEntry))
	}),
	imports("the import of other rows", `import "`+importID+`": it is not what head `, func(f *forger) {
		e := f.entry(storage.ImportEntry)
		e.Body = bytes.Replace(e.Body, []byte(`"rows":7`), []byte(`"rows":6`), 1)
	}),
}
