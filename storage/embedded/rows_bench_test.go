package embedded

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// BenchmarkRows measures what following a history costs beside its commits: each operation commits 200
// batches of 3 rows and then reads them. commit-ns/rec is the time of the commits alone.
func BenchmarkRows(b *testing.B) {
	for name, follow := range map[string]bool{"alone": false, "followed": true} {
		b.Run(name, func(b *testing.B) {
			s := benchStore(b, vfs.NewMem())
			n, from, unsigned := uint64(0), uint64(1), storagetest.Unsigned()
			for b.Loop() {
				for range 200 {
					b.StopTimer()
					batch := make([]*storage.Record, 3)
					for i := range batch {
						n++
						batch[i] = benchRecord(n)
					}
					b.StartTimer()
					_, err := s.Append(b.Context(), storage.Batch{Records: batch}, unsigned)
					must(b, err)
				}
				if !follow {
					continue
				}
				tip, err := s.Tip(b.Context())
				must(b, err)
				must(b, s.Rows(b.Context(), storage.RowQuery{Chain: tip.ID, From: from}, func(h storage.HeadRows) error {
					from = h.Seq + 1
					return nil
				}))
			}
			reportRecords(b, int(n))
		})
	}
}
