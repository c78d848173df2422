package embedded

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/embedded/segment"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// readFrame is a frame as testdata/read_history.py prints it.
type readFrame struct {
	Frame   uint64 `json:"frame"`
	Items   int    `json:"items"`
	Chain   string `json:"chain"`
	Seq     uint64 `json:"seq"`
	Size    uint32 `json:"size"`
	Root    string `json:"root"`
	Hash    string `json:"hash"`
	KeyID   string `json:"kid"`
	Import  bool   `json:"import"`
	Members []readItem
}

// readItem is an item as testdata/read_history.py prints it.
type readItem struct {
	Item         *int                `json:"item"`
	Kind         string              `json:"kind"`
	Leaf         string              `json:"leaf"`
	Row          *storage.Record     `json:"row"`
	Organization string              `json:"organization_id"`
	DecisionID   string              `json:"decision_id"`
	Settlement   *storage.Settlement `json:"settlement"`
	Proof        receipt.Inclusion   `json:"proof"`
	Entry        storage.EntryKind   `json:"entry"`
	Key          string              `json:"key"`
	Body         string              `json:"body"`
	Leaves       []string            `json:"leaves"`
}

// readHistory runs the second reader, testdata/read_history.py, on the segments of a directory.
// files has the contents of the segments by name.
func readHistory(t *testing.T, files map[string][]byte) (frames []readFrame, damage string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	switch {
	case err != nil && os.Getenv("CI") != "":
		t.Fatal("python3 is not installed: the history must be held to a second reader")
	case err != nil:
		t.Skip("SKIPPED the second reader of the history: python3 is not installed")
	}
	dir := t.TempDir()
	for name, b := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	args := []string{"testdata/read_history.py", dir}
	if secret := files["secret"]; secret != nil { // then files has tables too
		args = append(args, hex.EncodeToString(secret))
	}
	out, err := exec.CommandContext(t.Context(), python, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		damage = string(exit.Stderr)
		if !strings.HasPrefix(damage, "damaged: ") {
			t.Fatalf("the reader failed: %s", damage)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	for lines := jsontext.NewDecoder(bytes.NewReader(out)); ; {
		line, err := lines.ReadValue()
		if errors.Is(err, io.EOF) {
			return frames, damage
		}
		var it readItem
		if err == nil {
			err = json.Unmarshal(line, &it)
		}
		if err == nil && it.Item == nil {
			var f readFrame
			err = json.Unmarshal(line, &f)
			frames = append(frames, f)
		} else if err == nil {
			last := &frames[len(frames)-1]
			last.Members = append(last.Members, it)
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

// segmentsOf returns the segments of a closed directory.
func segmentsOf(t *testing.T, disk vfs.FS) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for name, b := range contents(t, disk) {
		if base := filepath.Base(name); segment.IsFile(base) {
			files[base] = []byte(b)
		}
	}
	return files
}

// stored is the history as the store returns it.
type stored struct {
	heads   []receipt.SignedHead
	rows    map[string]*storage.Record // the key is the decision id
	entries map[string]*storage.Entry  // the key is kind, organization and key of the entry
	removed map[string][]receipt.Leaf  // the key is the decision id
	// abandoned has the ids of decisions whose import was abandoned.
	abandoned map[string]bool
}

func entryName(k storage.EntryKind, org, key string) string {
	return fmt.Sprintf("%s %q %q", k, org, key)
}

func readStored(t *testing.T, disk vfs.FS) stored {
	t.Helper()
	w, ctx := stored{rows: make(map[string]*storage.Record), entries: make(map[string]*storage.Entry), removed: make(map[string][]receipt.Leaf), abandoned: make(map[string]bool)}, t.Context()
	readClosed(t, disk, func(r *ReadOnly) {
		must(t, errors.Join(
			r.Heads(ctx, r.s.tip.ID, 1, func(h receipt.SignedHead) error { w.heads = append(w.heads, h); return nil }),
			r.EachEntry(ctx, func(e *storage.Entry) error { w.entries[entryName(e.Kind, e.OrganizationID, e.Key)] = e; return nil }),
			r.EachTombstone(ctx, "", func(s *storage.Tombstone) error { w.removed[s.DecisionID] = s.Leaves; return nil }),
			r.Organizations(ctx, func(org string) error {
				return r.EachRow(ctx, org, "", "", func(row *storage.Record) error { w.rows[row.DecisionID] = row; return nil })
			})))
	})
	return w
}

// wantRead compares the second reader's output for a closed directory with the store's content. It
// returns the number of items of each kind.
func wantRead(t *testing.T, disk vfs.FS) (counts map[string]int) {
	t.Helper()
	files := segmentsOf(t, disk)
	readClosed(t, disk, func(r *ReadOnly) {
		for name, b := range contents(t, disk) {
			if index.IsTable(name) {
				files[filepath.Base(name)] = []byte(b)
			}
		}
		files["secret"] = r.s.secret[:]
	})
	frames, damage := readHistory(t, files)
	if damage != "" {
		t.Fatalf("the second reader: %s", damage)
	}
	w := readStored(t, disk)
	for _, f := range frames {
		for _, it := range f.Members {
			w.abandoned[it.DecisionID] = w.abandoned[it.DecisionID] || it.Kind == "a"
		}
	}
	counts, heads := make(map[string]int), w.heads
	for i := range frames {
		f := &frames[i]
		want, h := readFrame{Frame: uint64(i + 1), Items: len(f.Members), Import: true, Members: f.Members}, (*receipt.SignedHead)(nil)
		if !f.Import && len(heads) > 0 {
			h, heads = &heads[0], heads[1:]
			hash := h.Hash()
			want = readFrame{
				Frame: uint64(i + 1), Items: int(h.Size), Chain: hex.EncodeToString(h.Chain[:]), Seq: h.Seq, Size: h.Size,
				Root: hex.EncodeToString(h.Root[:]), Hash: hex.EncodeToString(hash[:]), KeyID: h.KeyID, Members: f.Members,
			}
		}
		if diff := cmp.Diff(want, *f); diff != "" || len(f.Members) != f.Items {
			t.Errorf("frame %d has %d items; -stored +read\n%s", i+1, len(f.Members), diff)
		}
		for at := range f.Members {
			w.want(t, h, f, at)
			counts[f.Members[at].Kind]++
		}
	}
	if len(w.rows)+len(w.entries)+len(heads) > 0 {
		t.Errorf("%d rows, %d entries and %d heads were not read", len(w.rows), len(w.entries), len(heads))
	}
	return counts
}

// want compares an item with the stored item, and then removes the stored item from w. For a frame
// of an import h is nil.
func (w *stored) want(t *testing.T, h *receipt.SignedHead, f *readFrame, at int) {
	t.Helper()
	it, leaf := &f.Members[at], [32]byte{}
	if _, err := hex.Decode(leaf[:], []byte(it.Leaf)); err != nil {
		t.Fatal(err)
	}
	left := func(l receipt.Leaf) bool {
		return l.Hash == leaf && (h == nil || l.Seq == h.Seq && l.Index == uint32(at))
	}
	switch it.Kind {
	case "r":
		row := w.rows[it.Row.DecisionID]
		if row == nil {
			if !w.abandoned[it.Row.DecisionID] && !slices.ContainsFunc(w.removed[it.Row.DecisionID], left) {
				t.Errorf("frame %d: decision %s was read, and it is neither stored nor removed", f.Frame, it.Row.DecisionID)
			}
			return
		}
		delete(w.rows, row.DecisionID)
		want := *row
		want.Settlement = nil
		if diff := cmp.Diff(&want, it.Row); diff != "" || row.Receipt.LeafHash() != leaf {
			t.Errorf("frame %d: decision %s with leaf %s; -stored +read\n%s", f.Frame, row.DecisionID, it.Leaf, diff)
		}
		if s := row.Settlement; s != nil && s.Receipt != nil {
			e := row.SettlementEntry()
			w.entries[entryName(e.Kind, e.OrganizationID, e.Key)] = e
		}
	case "s":
		name := entryName(storage.SettlementEntry, it.Organization, it.DecisionID)
		if w.entries[name] == nil && (w.abandoned[it.DecisionID] || slices.ContainsFunc(w.removed[it.DecisionID], left)) {
			return
		}
		e := w.entries[name]
		delete(w.entries, name)
		if e == nil || receipt.EntryLeaf(e.Body) != leaf || e.Inclusion != it.Proof {
			t.Errorf("frame %d: %s was read with %+v, and %+v is stored", f.Frame, name, it, e)
		}
	case "t":
		var leaves []string
		for _, l := range w.removed[it.DecisionID] {
			leaves = append(leaves, fmt.Sprintf("%x %d %d %x", l.Chain, l.Seq, l.Index, l.Hash))
		}
		if !w.abandoned[it.DecisionID] && !slices.Equal(leaves, it.Leaves) {
			t.Errorf("frame %d: the tombstone of %s was read with %q, and %q is stored", f.Frame, it.DecisionID, it.Leaves, leaves)
		}
	case "e":
		name := entryName(it.Entry, it.Organization, it.Key)
		e := w.entries[name]
		delete(w.entries, name)
		if e == nil || string(e.Body) != it.Body || receipt.EntryLeaf(e.Body) != leaf || e.Inclusion != it.Proof {
			t.Errorf("frame %d: %s was read with %+v, and %+v is stored", f.Frame, name, it, e)
		}
	case "x":
		if h == nil && slices.Contains(slices.Collect(maps.Values(w.abandoned)), true) {
			return // nothing says which decision an abandoned item was of
		}
		for _, leaves := range w.removed {
			if slices.ContainsFunc(leaves, left) {
				return
			}
		}
		t.Errorf("frame %d: item %d was removed, says the reader, and no tombstone has its leaf", f.Frame, at)
	}
}

// TestReadHistory runs a program that was written only from docs/history-format.md and docs/history-tables.md. It must read
// the same history as the store. It must also compute the leaves, roots and proofs that were
// signed.
func TestReadHistory(t *testing.T) {
	t.Run("decisions, settlements, verdicts, changes, retention", func(t *testing.T) {
		w := writeHistory(t)
		held := w.acme[slices.IndexFunc(w.acme, func(r *storage.Record) bool { return r.Held() })].DecisionID
		w.change(t, func(s *Store) {
			if _, err := s.Append(t.Context(), storage.Batch{Entries: []*storage.Entry{{
				Kind: storage.VerdictEntry, OrganizationID: "acme", Key: held,
				Body: fmt.Appendf(nil, `{"approval_id":"%s","decided_by":"ö","entry":"verdict","organization_id":"acme","verdict":"approved"}`, held),
			}}}, sealAll); err != nil {
				t.Fatal(err)
			}
		})
		counts := wantRead(t, w.disk)
		if counts["r"] != 48 || counts["s"] != 4 || counts["e"] < 7 || counts["x"] != 0 {
			t.Errorf("%v were read, want 48 rows, 4 settlements and at least 7 entries", counts)
		}
	})
	t.Run("rows of all kinds", func(t *testing.T) {
		disk, w := vfs.NewMem(), storagetest.NewWriter()
		s := openTest(t, disk, nil)
		amount := int64(0)
		batch := []*storage.Record{
			w.Record("a"),
			w.Record("", func(r *storage.Record) {
				r.MetadataKeys, r.Reasons, r.Metadata, r.Cost = []string{}, []string{}, map[string]string{}, nil
				r.Resource, r.IntentID = "\u2028\u0001\"\\\b", "\U0001F600"
			}),
			w.Record("a", func(r *storage.Record) {
				r.PolicyVersion, r.Cost = -1<<63, &engine.Cost{AmountMinor: 1<<63 - 1}
				r.MetadataKeys, r.Reasons, r.Metadata, r.AuditDigest, r.IssuedAt = nil, nil, nil, "md5:1", ""
				r.Writer, r.PolicyRevision, r.RulesRevision, r.AgentRevision = "eu-1", 1, -1<<63, 1<<63-1
				r.SessionID, r.ApprovalID, r.DetailsDigest = "s", "ap", "sha256:"+strings.Repeat("1c", 32)
				r.Sent = storage.Sent{AgentID: "Team-A", IssuedAt: "t", Resource: "\u2028"}
				r.Reasons = []string{"rule.deny: no", "policy.inactive: no", "x: no", "y"}
				r.Findings = []storage.Finding{
					{Code: "rule.deny", Outcome: engine.Deny, Decides: true, RuleID: r.DecisionID, RuleRevision: 1 << 40, Cause: "not_decimal", Field: "metadata.env"},
					{Code: "policy.inactive", Outcome: engine.Deny, Decides: true, Field: "policy.status"},
					{Code: "else", Outcome: engine.Allow, RuleID: "r", RuleRevision: -1, Cause: "a cause", Field: "a field"},
					{Code: "z", Outcome: engine.ApprovalRequired, Field: "cost"},
				}
				r.LeftOut = []string{"action_type", "metadata.ä", "resource"}
			}),
			w.Record("a", func(r *storage.Record) {
				r.MetadataKeys, r.Metadata, r.LeftOut = []string{"a", "b"}, nil, []string{"agent_id", "metadata.a", "metadata.b"}
			}),
			w.Record("a", func(r *storage.Record) {
				r.MetadataKeys, r.Metadata, r.LeftOut = []string{"a", "b"}, nil, []string{"metadata.a", "metadata.b"}
			}),
		}
		for _, r := range batch {
			commit(t, s, w, append([]*storage.Record{r}, w.Record("b"), w.Record("c"), w.Record("b"))...)
		}
		for i, settlement := range []storage.Settlement{
			{Outcome: storage.Executed, RecordedAt: batch[0].DecidedAt},
			{Outcome: "failed", AmountMinor: &amount, Currency: "EUR", ExternalRef: "<ä>&", RecordedAt: batch[0].DecidedAt.Truncate(1e9), Releases: true},
			{Outcome: storage.Executed, AmountMinor: &batch[2].Cost.AmountMinor, RecordedAt: batch[0].DecidedAt.Truncate(1e6)},
		} {
			_, err := w.Settle(t.Context(), s, batch[i], settlement)
			must(t, err)
		}
		closeTest(t, s)
		if counts := wantRead(t, disk); counts["r"] != 20 || counts["s"] != 3 {
			t.Errorf("%v were read, want 20 rows and 3 settlements", counts)
		}
	})
	t.Run("segments that were rewritten", func(t *testing.T) {
		disk := writeRewritten(t)
		if counts := wantRead(t, disk); counts["x"] < 60 || counts["r"] < 200 {
			t.Errorf("%v were read, want removed items, and rows", counts)
		}
	})
	t.Run("imports", func(t *testing.T) {
		disk, w := vfs.NewMem(), storagetest.NewWriter()
		s := openWith(t, Options{FS: disk, segmentSize: 4000})
		writeIndexed(t, s, w, 8)
		until(t, func() bool { return !s.rewriting.Load() })
		closeTest(t, s)
		counts := wantRead(t, disk)
		if n := counts["r"] + counts["s"] + counts["x"]; n != 8*4+3*3+8+3*2 || counts["t"] != 3 || counts["a"] != 4 {
			t.Errorf("%v were read, want 55 rows, settlements and removed ones, 3 tombstones and 4 abandoned", counts)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		disk := vfs.NewMem()
		closeTest(t, openTest(t, disk, nil))
		wantRead(t, disk)
	})
}

// writeRewritten returns a directory with several segments, some of them rewritten.
func writeRewritten(t *testing.T) *vfs.MemFS {
	t.Helper()
	disk, w := vfs.NewMem(), storagetest.NewWriter()
	s := openWith(t, Options{FS: disk, segmentSize: 20_000})
	defer closeTest(t, s)
	var last *storage.Record
	for range 60 {
		last = w.Record("a")
		commit(t, s, w, last, w.Record("b"), w.Record("a"), w.Record("a"), w.Record("a"))
		execute(t, s, w, last)
	}
	removeRows(t, s, "a", last.DecidedAt.AddDate(1, 0, 0), 80)
	until(t, func() bool { return !s.rewriting.Load() })
	return disk
}

// TestReadHistory_Torn checks the second reader. It must ignore an incomplete last frame, which a
// crash can leave. It must report damage before the last frame.
func TestReadHistory_Torn(t *testing.T) {
	files := segmentsOf(t, writeHistory(t).disk)
	if len(files) != 1 {
		t.Fatalf("there are %d segments, want 1", len(files))
	}
	const name = "0000000001.segment"
	whole, at := files[name], bytes.LastIndex(files[name], []byte("wfrm"))
	all, _ := readHistory(t, files)
	for _, cut := range []int{at, at + 3, at + 31, at + 32, (at + len(whole)) / 2, len(whole) - 9} {
		zeroed := slices.Concat(whole[:cut], make([]byte, len(whole)-cut+100))
		for what, b := range map[string][]byte{"cut": whole[:cut], "zeroed": zeroed} {
			frames, damage := readHistory(t, map[string][]byte{name: b})
			if diff := cmp.Diff(all[:len(all)-1], frames); damage != "" || diff != "" {
				t.Errorf("%s at %d of %d: %s; -want +read\n%s", what, cut, len(whole), damage, diff)
			}
		}
	}
	for _, harmed := range []int{70, at / 2, at - 1} {
		b := bytes.Clone(whole)
		b[harmed] ^= 1
		if _, damage := readHistory(t, map[string][]byte{name: b}); !strings.Contains(damage, "is not whole, and frame") {
			t.Errorf("a bit turned at %d of %d: the reader says %q, want that a frame is not whole", harmed, len(whole), damage)
		}
	}
	if _, damage := readHistory(t, map[string][]byte{"0000000002.segment": whole}); damage == "" {
		t.Error("a missing segment was not noticed")
	}
}

// TestReadHistory_Tables checks that the second reader notices a table that has a changed byte.
func TestReadHistory_Tables(t *testing.T) {
	disk := writeRewritten(t)
	files := segmentsOf(t, disk)
	readClosed(t, disk, func(r *ReadOnly) { files["secret"] = r.s.secret[:] })
	name := filepath.Base(filesOf(t, disk, ".index")[1])
	whole := content(t, disk, "data/"+name)
	for _, at := range []int{3, 20, 26, 30, 40, 100, 140, len(whole) - 8} {
		files[name] = bytes.Clone(whole)
		files[name][at] ^= 1
		if _, damage := readHistory(t, files); !strings.Contains(damage, "table 2") {
			t.Errorf("a bit turned at %d of %d: the reader says %q, want that the table is damaged", at, len(whole), damage)
		}
	}
}

// TestHistoryFormat_Example checks that the store writes exactly the example of
// docs/history-format.md.
func TestHistoryFormat_Example(t *testing.T) {
	page, err := os.ReadFile("../../docs/history-format.md")
	must(t, err)
	_, example, _ := strings.Cut(string(page), "## An example")
	blocks := strings.Split(example, "```")
	if len(blocks) != 5 {
		t.Fatalf("the example has %d blocks, want an item and a leaf", len(blocks)/2)
	}
	want, err := hex.DecodeString(strings.Join(strings.Fields(strings.TrimPrefix(blocks[1], "text")), ""))
	must(t, err)
	r := &storage.Record{
		OrganizationID: "acme", DecisionID: "0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37", Decision: engine.Allow,
		DecidedAt: time.UnixMilli(1756436265488).UTC(), PolicyID: "p", AgentID: "ci", ActionType: "deploy",
		IntentID: "i", IntentDigest: receipt.DigestBytes([]byte("{}")), PolicyVersion: 3, Resource: "prod", Reasons: []string{"policy.allow: ok"},
		Receipt: receipt.Receipt{
			Decision: "allow", DecisionID: "0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37", Digest: receipt.DigestBytes([]byte("{}")), Exp: 1756436565,
			KeyID: "k",
		},
		SessionID: "s",
	}
	if got := encoded(func(c *codec) { c.record(r, idOf(r), true) }); !bytes.Equal(got, want) {
		t.Errorf("the item is %x\nthe page has %x", got, want)
	}
	leaf, hash, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(blocks[3]), "text\n"), "\n")
	if got := string(r.Receipt.AppendLeaf(nil)); got != leaf {
		t.Errorf("the leaf is %s\nthe page has %s", got, leaf)
	}
	if got := fmt.Sprintf("%x", r.Receipt.LeafHash()); got != hash {
		t.Errorf("the hash is %s\nthe page has %s", got, hash)
	}
}

// sealAll is a storage.Seal of all that is fresh, of entries alone.
func sealAll(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
	signer, leaves := signerOf(2), make([][32]byte, len(fresh.Entries))
	for i, e := range fresh.Entries {
		leaves[i] = receipt.EntryLeaf(e.Body)
	}
	head, sigs, _ := signer.Seal(tip, time.UnixMilli(1_800_000_000_000), leaves)
	for i, e := range fresh.Entries {
		e.Inclusion = receipt.Inclusion{Sig: sigs[i], KeyID: signer.KeyID()}
	}
	return fresh, head, nil
}
