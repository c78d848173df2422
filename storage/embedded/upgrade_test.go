package embedded

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"writ/engine"
	"writ/storage"
)

// asFormat1 makes s what a writ of format 1 has written.
func asFormat1(t *testing.T, s *Store) {
	t.Helper()
	of, end, named := key{byte(kindTokenOf)}, key{byte(kindTokenEnd)}, key{byte(kindAgentName)}
	err := errors.Join(
		s.db.DeleteRange(of, of.end(), pebble.Sync),
		s.db.DeleteRange(end, end.end(), pebble.Sync),
		s.db.DeleteRange(named, named.end(), pebble.Sync),
		s.db.Set(formatKey, []byte("1"), pebble.Sync),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// TestOpen_UpgradesFormat1: what was stored before is found as what is stored
// since, and an older writ no longer opens the directory.
func TestOpen_UpgradesFormat1(t *testing.T) {
	fs, ctx := vfs.NewMem(), t.Context()
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	s := openTest(t, fs, nil)
	for _, id := range []string{"kept", "revoked"} {
		if err := s.PutToken(ctx, &storage.Token{ID: id, OrganizationID: "a", CreatedAt: at}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RevokeToken(ctx, "a", "revoked", at); err != nil {
		t.Fatal(err)
	}
	if err := s.PutAgent(ctx, "a", &engine.Agent{ID: "one", ExternalID: "Bot", CreatedAt: at}, 0); err != nil {
		t.Fatal(err)
	}
	want := look(t, s)
	asFormat1(t, s)
	closeTest(t, s)

	s = openTest(t, fs, nil)
	defer closeTest(t, s)
	if v, err := s.get(formatKey); string(v) != "3" {
		t.Errorf("the format is %q, %v, want 3", v, err)
	}
	if got := look(t, s); len(got.Tokens) != 1 || got.Tokens[0].ID != want.Tokens[0].ID {
		t.Errorf("tokens = %v, want %v", got.Tokens, want.Tokens)
	}
	if got, err := s.AgentsNamed(ctx, "a", "bot"); len(got) != 1 || err != nil {
		t.Errorf("AgentsNamed = %v, %v, want the one agent", got, err)
	}
	if n, err := s.CountTokens(ctx, "a", at); n != 1 || err != nil {
		t.Errorf("CountTokens = %d, %v, want 1", n, err)
	}
	for _, id := range []string{"kept", "revoked"} {
		if err := s.RevokeToken(ctx, "b", id, at); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("RevokeToken(%s) of another organization = %v, want ErrNotFound", id, err)
		}
		if err := s.RevokeToken(ctx, "a", id, at); err != nil {
			t.Errorf("RevokeToken(%s) = %v", id, err)
		}
	}
}
