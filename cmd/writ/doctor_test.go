package main

import (
	"context"
	"testing"

	"writ.example/writ/storage/mongodb"
)

// sharing is a database that some replicas share.
type sharing []mongodb.Replica

func (s sharing) Replicas(context.Context) ([]mongodb.Replica, error) { return s, nil }

// TestDoctor_Versions checks that replicas of two versions are a warning until all have one.
func TestDoctor_Versions(t *testing.T) {
	c := new(serveCmd)
	c.Store = "mongodb"
	for want, versions := range map[string][]string{fine: {"1.1", "1.1"}, warning: {"1.1", "1.0"}} {
		var all sharing
		for i, v := range versions {
			all = append(all, mongodb.Replica{Name: string(rune('a' + i)), Version: v})
		}
		e := examiner{c: c, history: all}
		if got := e.replicas(t.Context()); got.State != want {
			t.Errorf("replicas of %v: %+v, want %s", versions, got, want)
		}
	}
}
