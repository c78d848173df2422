package registry_test

import (
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

var sinkTests = []test{
	{"a sink begins once, at the ends of the chains, and keeps the position of each", func(w *world) {
		one, other, later := [16]byte{1}, [16]byte{2}, [16]byte{3}
		want := func(name string, chain [16]byte, want uint64) {
			w.Helper()
			if got, err := w.Confirmed(w.ctx, name, chain); got != want || err != nil {
				w.Errorf("Confirmed(%q, %x) = %d, %v, want %d", name, chain, got, err, want)
			}
		}
		_, err := w.Confirmed(w.ctx, "file", one)
		w.WantErr("Confirmed of no sink", err, storage.ErrNotFound)
		w.WantErr("Confirm of no sink", w.Confirm(w.ctx, "file", one, 1), storage.ErrNotFound)
		w.Must("BeginSink", w.BeginSink(w.ctx, "file", []receipt.Chain{{ID: one, Seq: 5}, {ID: other, Seq: 7}}))
		w.Must("Confirm", w.Confirm(w.ctx, "file", one, 6))
		w.Must("Confirm", w.Confirm(w.ctx, "file", later, 2))
		w.Must("BeginSink", w.BeginSink(w.ctx, "file", []receipt.Chain{{ID: one, Seq: 50}, {ID: later, Seq: 50}}))
		want("file", one, 6)
		want("file", other, 7)
		want("file", later, 2)
		w.Must("BeginSink", w.BeginSink(w.ctx, "stdout", nil))
		w.Must("Confirm", w.Confirm(w.ctx, "stdout", one, 1))
		want("stdout", one, 1)
		want("stdout", other, 0)
		want("file", one, 6)
	}},
}
