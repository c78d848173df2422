package registry_test

import (
	"fmt"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

func (w *world) wantStop(org string, want *storage.Stop) {
	w.Helper()
	got, err := w.Stopped(w.ctx, org)
	w.Must("Stopped", err)
	w.WantSame("Stopped of "+org, got, want)
}

var stopTests = []test{
	{"Stop stops one organization and keeps the first stop, and Resume ends it", func(w *world) {
		w.wantStop("org", nil)
		w.Must("Resume of an active organization", w.Resume(w.ctx, "org", noon))
		want := &storage.Stop{At: noon, By: "operator:alice"}
		for i, by := range []string{"operator:alice", "operator:bob"} {
			got, err := w.Stop(storage.WithActor(w.ctx, by), "org", noon.Add(time.Duration(i)*time.Hour))
			w.Must("Stop", err)
			w.WantSame("Stop", got, want)
		}
		w.wantStop("org", want)
		w.wantStop("other", nil)
		w.Must("Resume elsewhere", w.Resume(w.ctx, "other", noon))
		w.wantStop("org", want)
		w.Must("Resume", w.Resume(w.ctx, "org", noon))
		w.wantStop("org", nil)
		_, err := w.Stop(w.ctx, "org", noon)
		w.Must("Stop again", err)
		w.wantStop("org", &storage.Stop{At: noon})
	}},
	{"a stop and a resumption are one change each, and what changes nothing is none", func(w *world) {
		var h storagetest.Heard
		defer w.docs.Watch(h.Add)()
		ctx := storage.WithActor(w.ctx, "key:k")
		for range 2 {
			_, err := w.Stop(ctx, "org", noon)
			w.Must("Stop", err)
		}
		for range 2 {
			w.Must("Resume", w.Resume(ctx, "org", noon))
		}
		changes := h.Take()
		if len(changes) != 2 || changes[0].Digest == [32]byte{} || changes[1].Digest != [32]byte{} {
			w.Fatalf("changes = %+v, want a stop and a resumption", changes)
		}
		for _, c := range changes {
			c.Revision, c.Digest = 0, [32]byte{}
			w.WantSame("change", c, storage.Change{Kind: storage.StopKind, Org: "org", ID: storage.StopID, Actor: "key:k"})
		}
	}},
	{"webhooks are told of each stop and of each resumption", func(w *world) {
		w.hook("org", "w", storage.OrganizationStopped, storage.OrganizationResumed)
		for i := range 4 {
			at := noon.Add(time.Duration(i/2) * time.Minute)
			_, err := w.Stop(w.ctx, "org", at)
			w.Must("Stop", err)
			if i%2 == 1 {
				w.Must("Resume", w.Resume(w.ctx, "org", at))
			}
		}
		told := map[string]int{}
		all, _, err := w.ListDeliveries(w.ctx, "org", "w", "", storage.Page{Limit: 9})
		w.Must("ListDeliveries", err)
		for _, d := range all {
			told[d.Type]++
		}
		w.WantSame("events", told, map[string]int{storage.OrganizationStopped: 2, storage.OrganizationResumed: 2})
	}},
	{"of several who stop, all get the same stop", func(w *world) {
		stops := make([]*storage.Stop, storagetest.Racers)
		storagetest.Race(func(i int) {
			stop, err := w.Stop(storage.WithActor(w.ctx, fmt.Sprint("key:", i)), "org", noon)
			if err != nil {
				w.Errorf("Stop = %v", err)
			}
			stops[i] = stop
		})
		for _, s := range stops {
			w.wantStop("org", s)
		}
	}},
}
