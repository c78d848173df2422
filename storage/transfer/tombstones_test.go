package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// buried is a source of rows and removed rows. It lists the removed rows in random order.
type buried struct {
	Source
	removed []*storage.Tombstone
	rows    []*storage.Record
	passes  int
}

func (b *buried) EachTombstone(_ context.Context, _ string, f func(*storage.Tombstone) error) error {
	b.passes++
	for _, i := range rand.Perm(len(b.removed)) {
		if err := f(b.removed[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *buried) EachRow(_ context.Context, _, after, upTo string, f func(*storage.Record) error) error {
	for _, r := range b.rows {
		if r.DecisionID > after && (upTo == "" || r.DecisionID <= upTo) {
			if err := f(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestExporter_RemovedInOrder checks that an export has rows and removed rows in the order of their
// ids. The test lets only a few tombstones into memory, and interrupts the export at each place.
func TestExporter_RemovedInOrder(t *testing.T) {
	const n = 100
	for _, most := range []int{1, 7, 50, 51, 100} {
		src := &buried{}
		var want []string
		for i := range n {
			id := fmt.Sprintf("01a1fe16-6700-7f79-840b-%012d", i)
			want = append(want, id)
			if i%2 == 0 || i > 60 && i < 80 {
				src.removed = append(src.removed, &storage.Tombstone{OrganizationID: "acme", DecisionID: id, Leaves: make([]receipt.Leaf, 1)})
			} else {
				src.rows = append(src.rows, &storage.Record{OrganizationID: "acme", DecisionID: id})
			}
		}
		for _, from := range []int{0, 1, 33, 70, 99} {
			var out bytes.Buffer
			e := exporter{ctx: t.Context(), src: src, out: bufio.NewWriter(&out), tombstones: tombstones{most: most}}
			e.cfg.Organization, e.cfg.Progress = "acme", func(string, int, int) {}
			e.state.header = &Header{OrganizationID: "acme", Last: want[n-2]}
			if from > 0 {
				e.state.last = want[from-1]
			}
			src.passes = 0
			if err := e.history(); err != nil {
				t.Fatal(err)
			}
			if err := e.out.Flush(); err != nil {
				t.Fatal(err)
			}
			var got []string
			r := newReader(&out)
			for l, err := r.next(); err == nil; l, err = r.next() {
				got = append(got, l.id())
			}
			if !slices.Equal(got, want[from:n-1]) && from < n-1 {
				t.Errorf("with room for %d, from %d = %s\nwant %s", most, from, strings.Join(got, "\n"), strings.Join(want[from:n-1], "\n"))
			}
			if limit := len(src.removed)/most + 2; src.passes > limit {
				t.Errorf("with room for %d, from %d: %d passes, want at most %d", most, from, src.passes, limit)
			}
		}
	}
}

// TestExporter_PartsAmongRemoved checks that a part also ends among removed rows, of which each part reads some, and that
// the parts have each once.
func TestExporter_PartsAmongRemoved(t *testing.T) {
	const n, most = 100, 7
	src := &buried{}
	for i := range n {
		id := fmt.Sprintf("01a1fe16-6700-7f79-840b-%012d", i)
		src.removed = append(src.removed, &storage.Tombstone{OrganizationID: "acme", DecisionID: id, Leaves: make([]receipt.Leaf, 1)})
	}
	last, parts, got := "", 0, 0
	for err := errPartEnds; errors.Is(err, errPartEnds); parts++ {
		e := exporter{ctx: t.Context(), src: src, out: bufio.NewWriter(io.Discard), tombstones: tombstones{most: most}}
		e.cfg.Organization, e.cfg.Ends = "acme", func() bool { return true }
		e.state.header, e.state.last = &Header{OrganizationID: "acme", Last: src.removed[n-1].DecisionID}, last
		if err = e.history(); err != nil && !errors.Is(err, errPartEnds) {
			t.Fatal(err)
		}
		if e.state.last <= last {
			t.Fatalf("a part ends at %q, where it began", last)
		}
		last, got = e.state.last, got+int(e.state.tree.Removed)
	}
	if got != n || parts < n/(2*most) || parts > n/most+1 {
		t.Errorf("%d parts have %d removed rows, want %d in some %d parts", parts, got, n, n/most)
	}
}
