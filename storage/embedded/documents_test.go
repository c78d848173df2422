package embedded

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"writ/storage"
	"writ/storage/registry"
)

// TestRevokeToken_ReadsNoTokenOfAnother: what would take time, and tell by it
// that there is one, is not done.
func TestRevokeToken_ReadsNoTokenOfAnother(t *testing.T) {
	s := openTest(t, vfs.NewMem(), nil)
	defer closeTest(t, s)
	docs := registry.New(s)
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if err := docs.PutToken(t.Context(), &storage.Token{ID: "t", OrganizationID: "a", CreatedAt: at}, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Set(documentKey(&storage.Tokens.Collection, "a", "t"), []byte("unreadable"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := docs.RevokeToken(t.Context(), "b", "t", at); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("RevokeToken of another's = %v, want ErrNotFound without reading it", err)
	}
	if err := docs.RevokeToken(t.Context(), "a", "t", at); err == nil || errors.Is(err, storage.ErrNotFound) {
		t.Errorf("RevokeToken of an unreadable token = %v, want an error about it", err)
	}
}
