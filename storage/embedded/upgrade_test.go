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

// closeAsFormat closes s and makes its directory what a writ of format 1 or 2 has
// written.
func closeAsFormat(t *testing.T, n string, s *Store) {
	t.Helper()
	kinds := []kind{kindLink, kindAgentName}
	if n == "1" {
		kinds = append(kinds, kindTokenOf, kindTokenEnd)
	}
	for _, k := range kinds {
		if err := s.db.DeleteRange(key{byte(k)}, key{byte(k) + 1}, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(
		s.db.Delete(countKey(kindDisabled, "a"), pebble.Sync),
		s.db.Set(formatKey, []byte(n), pebble.Sync),
	)
	if err != nil {
		t.Fatal(err)
	}
	closeTest(t, s)
	if err := s.health.fs.Remove("data.tip"); err != nil {
		t.Fatal(err)
	}
}

// TestOpen_UpgradesFormat3: an older writ, which would not read rows with an audit
// digest, no longer opens the directory.
func TestOpen_UpgradesFormat3(t *testing.T) {
	fs := vfs.NewMem()
	s := openTest(t, fs, nil)
	if err := s.db.Set(formatKey, []byte("3"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	closeTest(t, s)
	s = openTest(t, fs, nil)
	defer closeTest(t, s)
	if v, err := s.get(formatKey); string(v) != "4" {
		t.Errorf("the format is %q, %v, want 4", v, err)
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
	closeAsFormat(t, "1", s)

	s = openTest(t, fs, nil)
	defer closeTest(t, s)
	if v, err := s.get(formatKey); string(v) != "4" {
		t.Errorf("the format is %q, %v, want 4", v, err)
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

// TestOpen_AgentsThatAreEqualOnceFoldedStayAndWork: they were registered when ids
// were compared exactly.
func TestOpen_AgentsThatAreEqualOnceFoldedStayAndWork(t *testing.T) {
	fs, ctx := vfs.NewMem(), t.Context()
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	s := openTest(t, fs, nil)
	old := []*engine.Agent{
		{ID: "one", ExternalID: "ci", Status: engine.AgentActive, CreatedAt: at},
		{ID: "two", ExternalID: "CI", Status: engine.AgentDisabled, CreatedAt: at},
	}
	b := &batch{b: s.db.NewBatch()}
	for _, a := range old {
		b.document(agentKey("a", a.ID), a)
		b.set(externalIDKey("a", a.ExternalID), []byte(a.ID))
		b.set(orgKey(kindAgentOrder, "a").time(a.CreatedAt).text(a.ID), nil)
	}
	b.number(countKey(kindAgent, "a"), int64(len(old)))
	if err := errors.Join(b.err, s.apply(b.b)); err != nil {
		t.Fatal(err)
	}
	closeAsFormat(t, "1", s)

	s = openTest(t, fs, nil)
	defer closeTest(t, s)
	if n, err := s.CountAgents(ctx, "a"); n != (storage.AgentCount{Total: 2, Disabled: 1}) || err != nil {
		t.Errorf("CountAgents = %+v, %v, want two, one of them disabled", n, err)
	}
	if named, err := s.AgentsNamed(ctx, "a", "Ci"); len(named) != 2 || err != nil {
		t.Errorf("AgentsNamed(Ci) = %v, %v, want both", named, err)
	}
	for _, a := range old {
		if got, err := s.Agent(ctx, "a", a.ExternalID); err != nil || got.ID != a.ID {
			t.Errorf("Agent(%s) = %v, %v, want %s", a.ExternalID, got, err, a.ID)
		}
		for _, status := range []engine.AgentStatus{engine.AgentDisabled, engine.AgentActive} {
			if got, err := s.SetAgentStatus(ctx, "a", a.ExternalID, status, at, 5); err != nil || got.ID != a.ID || got.Status != status {
				t.Errorf("SetAgentStatus(%s, %s) = %v, %v", a.ExternalID, status, got, err)
			}
		}
	}
	if err := s.PutAgent(ctx, "a", &engine.Agent{ID: "three", ExternalID: "cI", CreatedAt: at}, 0); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("PutAgent of a third = %v, want ErrConflict", err)
	}
}
