package embedded

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestModel compares stores of short segments with the model of the contract. A store is closed, or it crashes and loses
// any part of its unsynced data. Its tables are lost, cut and changed. The last state must pass CheckIndex.
func TestModel(t *testing.T) {
	seeds := 3
	if os.Getenv("WRIT_SOAK") != "" {
		seeds = 200
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			disk := vfs.NewCrashableMem()
			o := Options{FS: disk, segmentSize: 1500 + rng.IntN(20_000)}
			open := func() *Store {
				o.FS = disk
				s, err := openQuietly(o)
				must(t, err)
				return s
			}
			last := open()
			storagetest.Model(t, seed, 150, last, func(storage.Store) storage.Store {
				if rng.IntN(3) == 0 {
					until(t, func() bool { return !last.rewriting.Load() })
					return last
				}
				crashed := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
				closeTest(t, last)
				if rng.IntN(2) == 0 {
					disk = crashed
				}
				if rng.IntN(2) == 0 {
					loseTables(t, disk, rng)
				}
				last = open()
				return last
			})
			closeTest(t, last)
			readClosed(t, disk, func(r *ReadOnly) {
				sums := make(map[string]storage.RowSums)
				for _, org := range []string{"a", "b"} {
					var sum storage.RowSums
					must(t, r.EachRow(t.Context(), org, "", "", func(row *storage.Record) error {
						sum.Add(idOf(row), row)
						return nil
					}))
					sums[org] = sum
				}
				must(t, r.CheckIndex(t.Context(), storage.IndexCheck{
					Rows: sums, Document: func(storage.Document, string) error { return nil },
				}))
			})
		})
	}
}

// loseTables removes, cuts and changes tables at random.
func loseTables(t *testing.T, disk vfs.FS, rng *rand.Rand) {
	t.Helper()
	for _, name := range anyFilesOf(t, disk, ".index") {
		switch rng.IntN(6) {
		case 0:
			must(t, disk.Remove(name))
		case 1:
			damage(t, disk, name, func(b []byte) []byte { return b[:rng.IntN(len(b))] })
		case 2:
			damage(t, disk, name, func(b []byte) []byte {
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
				return b
			})
		}
	}
}
