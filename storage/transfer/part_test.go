package transfer_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/mongodb"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/transfer"
)

// frozen is what a store that runs is exported from.
type frozen interface {
	transfer.Source
	io.Closer
}

func freeze(t *testing.T, s storage.Store) (f frozen) {
	t.Helper()
	var err error
	switch s := s.(type) {
	case *embedded.Store:
		f, err = s.Freeze(t.Context())
	case *mongodb.Store:
		f, err = s.Freeze(t.Context())
	default:
		t.Fatalf("a %T cannot be frozen", s)
	}
	must(t, err)
	return f
}

// server answers with parts of some rows. It cuts off the answer that would go beyond left bytes.
type server struct {
	t    *testing.T
	s    storage.Store
	rows int // of a part
	left int
}

func (f *server) fetch(ctx context.Context, begun *transfer.Begun) (io.ReadCloser, error) {
	state := freeze(f.t, f.s)
	defer func() { must(f.t, state.Close()) }()
	var answer bytes.Buffer
	rows := 0
	ends := func() bool { rows++; return rows == f.rows }
	for piece, err := range transfer.Part(ctx, state, begun,
		transfer.ExportConfig{Organization: "acme", Now: time.Now, Ends: ends}) {
		if err != nil {
			return nil, err
		}
		answer.Write(piece)
	}
	n := min(f.left, answer.Len())
	f.left -= n
	return io.NopCloser(bytes.NewReader(answer.Bytes()[:n])), nil
}

func (f *server) receive(file string) (transfer.Footer, error) {
	out, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	must(f.t, err)
	defer out.Close()
	return transfer.Receive(f.t.Context(), out, "acme", func(int) {}, f.fetch)
}

// afterHeader returns the lines of a file after the first, and without the last. The id of the export, which is in them,
// is replaced.
func afterHeader(t *testing.T, file string) []string {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(string(readFile(t, file)), "\n"), "\n")
	id := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(lines[0])[1]
	for i, line := range lines {
		lines[i] = strings.NewReplacer(id, "ID", base64.RawURLEncoding.EncodeToString([]byte(id)), "ID").Replace(line)
	}
	return lines[1 : len(lines)-1]
}

// TestReceive exports from stores that run, in parts and interrupted anywhere. The file equals an export of the
// stopped store, and can be imported.
func TestReceive(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { testReceive(t, inMemory(1), 97) })
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set")
	}
	set := mongotest.For(t, 1)
	t.Run("mongodb", func(t *testing.T) { testReceive(t, inMongoDB(set, 1), 4999) })
}

func testReceive(t *testing.T, from place, step int) {
	from.fill(t, rows)
	stopped, want := from.export(t)
	whole := len(readFile(t, stopped))
	from.with(t, noon.Add(time.Hour), func(s storage.Store, _ *ledger.Ledger) {
		for _, part := range []int{1, 7, 1000} {
			file := filepath.Join(t.TempDir(), "acme.ndjson")
			answers := &server{t: t, s: s, rows: part, left: 1 << 30}
			got, err := answers.receive(file)
			if err != nil || got.Rows != want.Rows || got.Settled != want.Settled || got.Removed != want.Removed ||
				got.Documents != want.Documents || got.Root != want.Root {
				t.Fatalf("Receive in parts of %d = %+v, %v, want %+v", part, got, err, want)
			}
			if diff := cmp.Diff(afterHeader(t, stopped), afterHeader(t, file)); diff != "" {
				t.Errorf("parts of %d: -stopped +running\n%s", part, diff)
			}
			if again, err := answers.receive(file); again != got || err != nil {
				t.Errorf("Receive of a whole file = %+v, %v, want %+v", again, err, got)
			}
		}
		for cut := 0; cut < whole; cut += step {
			file := filepath.Join(t.TempDir(), "acme.ndjson")
			answers := &server{t: t, s: s, rows: 11, left: cut}
			if got, err := answers.receive(file); err == nil {
				t.Fatalf("Receive of %d bytes = %+v, want an error", cut, got)
			}
			answers.left = 1 << 30
			if got, err := answers.receive(file); err != nil || got.Root != want.Root {
				t.Fatalf("Receive after %d bytes = %+v, %v, want %+v", cut, got, err, want)
			}
			if diff := cmp.Diff(afterHeader(t, stopped), afterHeader(t, file)); diff != "" {
				t.Fatalf("after %d bytes: -stopped +running\n%s", cut, diff)
			}
			if cut == 0 {
				to := inMemory(2)
				to.mustImport(t, file, keysOf(t, 1))
				wantWhole(t, to, keysOf(t, 1, 2))
			}
		}
	})
}

// TestReceive_Forged changes an answer. Each change is an error.
func TestReceive_Forged(t *testing.T) {
	from := inMemory(1)
	from.fill(t, rows)
	from.with(t, noon.Add(time.Hour), func(s storage.Store, _ *ledger.Ledger) {
		answers := &server{t: t, s: s, rows: 11, left: 1 << 30}
		for _, change := range [][2]string{{`"bot"`, `"tob"`}, {`"rows":11`, `"rows":10`}, {`"acme"`, `"rival"`}, {"\n{\"part\"", "\n{\"footer\""}} {
			file, err := os.Create(filepath.Join(t.TempDir(), "acme.ndjson"))
			must(t, err)
			got, err := transfer.Receive(t.Context(), file, "acme", func(int) {},
				func(ctx context.Context, begun *transfer.Begun) (io.ReadCloser, error) {
					body, err := answers.fetch(ctx, begun)
					must(t, err)
					text, err := io.ReadAll(body)
					must(t, err)
					changed := strings.Replace(string(text), change[0], change[1], 1)
					return io.NopCloser(strings.NewReader(changed)), nil
				})
			if err == nil {
				t.Errorf("Receive with %s for %s = %+v, want an error", change[1], change[0], got)
			}
			must(t, file.Close())
		}
	})
}

// TestFreeze_KeepsRemovedRows removes rows while they are exported. The export has them as they were.
func TestFreeze_KeepsRemovedRows(t *testing.T) {
	for name, from := range map[string]place{"embedded": inMemory(1)} {
		t.Run(name, func(t *testing.T) {
			from.fill(t, rows)
			from.with(t, noon.Add(2*time.Hour), func(s storage.Store, _ *ledger.Ledger) {
				state := freeze(t, s)
				defer func() { must(t, state.Close()) }()
				removed, err := s.RemoveRecords(t.Context(), "acme", noon.Add(90*time.Minute), storage.Expired{Records: 1000, Settled: 1000})
				if err != nil || removed.Records == 0 {
					t.Fatalf("RemoveRecords = %+v, %v, want some", removed, err)
				}
				got := 0
				must(t, state.EachRow(t.Context(), "acme", "", "", func(*storage.Record) error { got++; return nil }))
				if got != rows {
					t.Errorf("%d rows after %d were removed, want %d", got, removed.Records, rows)
				}
				tombstones := 0
				must(t, state.EachTombstone(t.Context(), "acme", func(*storage.Tombstone) error { tombstones++; return nil }))
				if tombstones != 5 {
					t.Errorf("%d removed rows, want 5", tombstones)
				}
			})
		})
	}
}
