//go:build unix

package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// BenchmarkHistory measures reads of a history of 200,000 rows of 16 organizations, or as many as WRIT_ROWS says, in
// segments of 8 MiB. One row in 500 is denied, and one in 20 is settled. "open" includes Close. cpu-ns/op is processor time.
func BenchmarkHistory(b *testing.B) {
	rows := benchRows(200_000)
	options := Options{Log: (*logged)(nil).logger(), MinFreeBytes: 1, segmentSize: 8 << 20}
	dir := b.TempDir()
	s, err := Open(dir, options)
	must(b, err)
	unsigned, ids := storagetest.Unsigned(), []string(nil)
	for n := uint64(0); n < rows; {
		var batch storage.Batch
		for range 64 {
			n++
			r := benchRecord(n)
			r.Decision, r.Receipt.Decision = engine.Allow, engine.Allow.String()
			if n%500 == 7 {
				r.Decision, r.Receipt.Decision = engine.Deny, engine.Deny.String()
			}
			batch.Records = append(batch.Records, r)
		}
		_, err := s.Append(b.Context(), batch, unsigned)
		must(b, err)
		ids = append(ids, batch.Records[5].DecisionID)
		var ends storage.Batch
		for i := 0; i < 64; i += 20 {
			r := *batch.Records[i]
			r.Settle(storage.Settlement{Outcome: storage.Executed, RecordedAt: r.DecidedAt, Receipt: new(receipt.Inclusion)})
			ends.Entries = append(ends.Entries, r.SettlementEntry())
		}
		_, err = s.Append(b.Context(), ends, sealAll)
		must(b, err)
	}
	org := benchRecord(6).OrganizationID
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			must(b, s.Close())
			if s, err = Open(dir, options); err != nil {
				b.Fatal(err)
			}
		}
	})
	defer func() { must(b, s.Close()) }()
	from, to, err := s.span(b.Context(), org)
	must(b, err)
	middle := storage.Filter{To: from.Add(to.Sub(from) / 2)}
	several := storage.Filter{
		Decision: engine.Allow, AgentIDs: []string{"none", "team-a/deployer"}, PolicyID: benchRecord(6).PolicyID,
		ActionTypes: []string{"deploy"}, From: from, To: to,
	}
	for _, page := range []struct {
		name   string
		filter storage.Filter
	}{
		{"newest", storage.Filter{}},
		{"several filters", several},
		{"denied", storage.Filter{Decision: engine.Deny}},
		{"middle", middle},
		{"agent", storage.Filter{AgentIDs: []string{"none"}}},
	} {
		b.Run("page/"+page.name, func(b *testing.B) {
			timed(b, func() {
				_, _, err := s.ListRecords(b.Context(), org, page.filter, storage.Page{Limit: 50})
				must(b, err)
			})
		})
	}
	b.Run("page/settled", func(b *testing.B) {
		settled := benchRecord(5).OrganizationID // a fourth of its rows
		timed(b, func() {
			s.frames.forget() // the page has more frames than the cache, which would find some of them at times
			_, _, err := s.ListRecords(b.Context(), settled, storage.Filter{}, storage.Page{Limit: 50})
			must(b, err)
		})
	})
	b.Run("row", func(b *testing.B) {
		n := 0
		timed(b, func() {
			n++
			_, err := s.Record(b.Context(), org, ids[n%len(ids)])
			must(b, err)
		})
	})
	b.Run("every row", func(b *testing.B) {
		timed(b, func() {
			after := storage.Page{Limit: 500}
			for {
				_, next, err := s.ListRecords(b.Context(), org, storage.Filter{}, after)
				must(b, err)
				if after.After = next; next == "" {
					break
				}
			}
		})
	})
	size := int64(0)
	must(b, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		info, infoErr := d.Info()
		if err == nil && infoErr == nil && filepath.Ext(path) != ".segment" && !d.IsDir() {
			size += info.Size()
		}
		return err
	}))
	fmt.Printf("beside the segments: %.1f bytes a row\n", float64(size)/float64(rows))
}

// benchRows returns how many rows a benchmark has: usual, or as many as WRIT_ROWS says.
func benchRows(usual uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("WRIT_ROWS"), 10, 64); err == nil {
		return n
	}
	return usual
}

// timed measures f. It also reports processor time, because the machine may be busy.
func timed(b *testing.B, f func()) {
	b.Helper()
	start := processorTime(b)
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(processorTime(b)-start)/float64(b.N), "cpu-ns/op")
}

// span returns the times of the first and the last row of an organization.
func (s *Store) span(ctx context.Context, org string) (from, to time.Time, err error) {
	err = s.Organizations(ctx, func(string) error { return nil })
	rows, _, listErr := s.ListRecords(ctx, org, storage.Filter{}, storage.Page{Limit: 1})
	if len(rows) > 0 {
		to = rows[0].DecidedAt
	}
	from = benchRecord(1).DecidedAt
	if err == nil {
		err = listErr
	}
	return from, to, err
}
