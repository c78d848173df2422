package ledger

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// resumed is a history that was proved up to anchors. Rows from later on, the settlement of an old row and the removal
// of another were signed after them, some in a new chain.
type resumed struct {
	*storagetest.MemoryLog
	ids     []string
	later   int
	anchors []receipt.SignedHead
}

func newResumed(t *testing.T) *resumed {
	t.Helper()
	log, at := storagetest.NewMemoryLog(), &clock{now: noon}
	h := &resumed{MemoryLog: log, later: 40}
	now := func(c *Config) { c.Now = at.Now }
	l := open(t, fakeOn(log), now)
	decide := func(l *Ledger, org string) {
		h.ids = append(h.ids, mustDecide(t, l, org, intent(len(h.ids))).Record.DecisionID)
	}
	for i := range h.later {
		at.set(noon.Add(time.Duration(i) * time.Hour))
		decide(l, []string{"acme", "rival"}[i%2])
	}
	proof, err := Prove(t.Context(), log, ProveConfig{Keys: testKeys(t, testSigner(1))})
	must(t, err)
	h.anchors = proof.Ends
	at.set(noon.Add(90 * 24 * time.Hour))
	s := storage.Settlement{Outcome: "failed", RecordedAt: at.Now()}
	if _, _, err := l.Settle(t.Context(), "rival", h.ids[1], s); err != nil {
		t.Fatal(err)
	}
	must(t, l.Retain(t.Context(), "acme", noon.Add(2*time.Hour), storage.Expired{Records: 1}))
	must(t, log.Bury("acme"))
	second := open(t, fakeOn(log), now)
	for i := range 12 {
		at.set(noon.Add(90*24*time.Hour + time.Duration(i)*time.Minute))
		decide([]*Ledger{l, second}[i%2], []string{"acme", "rival"}[i/6])
	}
	return h
}

func (h *resumed) row(i int) *storage.Record {
	return h.Records[slices.IndexFunc(h.Records, func(r *storage.Record) bool { return r.DecisionID == h.ids[i] })]
}

func (h *resumed) drop(i int) {
	h.Records = slices.DeleteFunc(h.Records, func(r *storage.Record) bool { return r.DecisionID == h.ids[i] })
}

func (h *resumed) prove(t *testing.T, anchors []receipt.SignedHead) (Proof, error) {
	t.Helper()
	return Prove(t.Context(), h.MemoryLog, ProveConfig{Keys: testKeys(t, testSigner(1)), Anchors: anchors, Resume: true})
}

// TestProve_Resumed proves what was signed after anchors, and then that there is nothing more.
func TestProve_Resumed(t *testing.T) {
	h := newResumed(t)
	proof, err := h.prove(t, h.anchors)
	if err != nil || proof.Rows != 12 || proof.Settled != 1 || proof.Removals != 1 || len(proof.Ends) != 2 || proof.Heads != 14 || proof.Unanchored != 1 {
		t.Errorf("Prove since the anchor = %+v, %v, want 12 rows, 1 settled, 1 removal, 2 chains of which 1 is new", proof, err)
	}
	again, err := h.prove(t, proof.Ends)
	if err != nil || again.Rows+again.Heads+again.Settled+again.Removals > 0 || !slices.Equal(again.Ends, proof.Ends) {
		t.Errorf("Prove since the end = %+v, %v, want nothing and the same ends", again, err)
	}
	if _, err := h.prove(t, append(h.anchors, proof.Ends...)); err == nil || !strings.Contains(err.Error(), "two anchors") {
		t.Errorf("Prove since two anchors of a chain = %v", err)
	}
}

// TestProve_ResumedForged makes a change each after the anchor. Each must be found. A change before it is not looked for.
func TestProve_ResumedForged(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(h *resumed, tip receipt.SignedHead)
		want string
	}{
		"a later row is lost":       {func(h *resumed, _ receipt.SignedHead) { h.drop(h.later + 3) }, "1 leaves are missing"},
		"a later row is changed":    {func(h *resumed, _ receipt.SignedHead) { h.row(h.later + 3).Decision = engine.Deny }, "its row says deny"},
		"a later row is another's":  {func(h *resumed, _ receipt.SignedHead) { h.row(h.later + 3).OrganizationID = "rival" }, "its row is not"},
		"a row comes twice":         {func(h *resumed, _ receipt.SignedHead) { h.Records = append(h.Records, h.row(h.later+2)) }, "this is one more"},
		"the settled row is lost":   {func(h *resumed, _ receipt.SignedHead) { h.drop(1) }, "1 leaves are missing"},
		"the settlement is lost":    {func(h *resumed, _ receipt.SignedHead) { h.row(1).Settlement = nil }, "1 leaves are missing"},
		"the settlement is changed": {func(h *resumed, _ receipt.SignedHead) { h.row(1).Settlement.Outcome = "cancelled" }, "its settlement"},
		"a row is removed":          {func(h *resumed, _ receipt.SignedHead) { _ = h.Bury("rival") }, "no retention entry covers it"},
		"the word of a removal is":  {func(h *resumed, _ receipt.SignedHead) { h.Others = nil }, "no retention entry covers it"},
		"a later head is lost": {func(h *resumed, tip receipt.SignedHead) {
			h.ByChain[tip.Chain] = slices.Delete(h.ByChain[tip.Chain], int(tip.Seq)+1, int(tip.Seq)+2)
		}, "head 43 follows head 41"},
		"the chain ends before the anchor": {func(h *resumed, tip receipt.SignedHead) {
			h.ByChain[tip.Chain] = h.ByChain[tip.Chain][:tip.Seq-1]
		}, "head 40: it was kept as the anchor, and the history ends at head 39"},
		"the anchored head is another": {func(h *resumed, tip receipt.SignedHead) { h.ByChain[tip.Chain][tip.Seq-1].Sig[0] ^= 1 },
			"head 40: it is not the one that was kept as the anchor"},
		"the anchor is forged": {func(h *resumed, _ receipt.SignedHead) { h.anchors[0].Sig[0] ^= 1 }, "the anchor does not verify with these keys"},
		"the chain is lost":    {func(h *resumed, tip receipt.SignedHead) { delete(h.ByChain, tip.Chain) }, "of which the history has no head"},
		"an earlier row is":    {func(h *resumed, _ receipt.SignedHead) { h.drop(4) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newResumed(t)
			test.do(h, h.anchors[0])
			_, err := h.prove(t, h.anchors)
			if broken := (*storage.BreakError)(nil); test.want == "" && err != nil || test.want != "" && (!errors.As(err, &broken) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("Prove since the anchor = %v, want a break that says %q", err, test.want)
			}
		})
	}
}
