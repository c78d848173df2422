package storagetest_test

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/storagetest"
)

func TestFaulty(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault storagetest.Fault
		want  error // error when the record is looked up
	}{
		{"failed and lost", storagetest.FailedAndLost, storage.ErrNotFound},
		{"failed but persisted", storagetest.FailedButPersisted, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := embedded.Open("data", embedded.Options{FS: vfs.NewMem()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			faulty := &storagetest.Faulty{Log: s}
			w := storagetest.NewWriter()
			faulty.Fail(storagetest.Works, test.fault)
			first, second := w.Record("org"), w.Record("org")
			if _, err := w.Commit(t.Context(), faulty, first); err != nil {
				t.Errorf("Commit that works = %v, want nil", err)
			}
			if _, err := w.Commit(t.Context(), faulty, second); !errors.Is(err, storagetest.ErrFault) {
				t.Errorf("Commit that fails = %v, want ErrFault", err)
			}
			if _, err := s.Record(t.Context(), "org", second.DecisionID); !errors.Is(err, test.want) {
				t.Errorf("Record = %v, want %v", err, test.want)
			}
			if _, err := w.Commit(t.Context(), faulty, second); err != nil {
				t.Errorf("Commit again = %v, want nil", err)
			}
			storagetest.Check(t, s, w.Keys(t), "org")
		})
	}
}
