package embedded

import (
	"archive/tar"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"

	"writ/engine"
	"writ/ledger"
	"writ/storage"
	"writ/storage/registry"
)

// format4 returns a directory that a writ of format 4 has written. Its
// organizations a and b have each two policies in three versions, two rules, the
// agents one (also named Bot) and two (disabled), and three tokens, of which one
// is revoked; a has a subscription.
func format4(t *testing.T) *vfs.MemFS {
	t.Helper()
	f, err := os.Open("testdata/format4.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	fs := vfs.NewCrashableMem()
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return fs
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			err = fs.MkdirAll(h.Name, 0o700)
		} else {
			err = copyFile(fs, h.Name, files)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func copyFile(fs vfs.FS, name string, from io.Reader) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close(), syncDir(fs.PathDir(name), fs), syncDir(".", fs))
}

// rewrite changes the keys of a directory, as another writ would have written them.
func rewrite(t *testing.T, fs vfs.FS, f func(db *pebble.DB) error) {
	t.Helper()
	h := &health{log: slog.New(slog.DiscardHandler), dir: "data", fs: fs, troubles: make(map[trouble]error)}
	db, err := pebble.Open("data", pebbleOptions(fs, h, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f(db), db.Close(), removeShutdownManifest("data", fs)); err != nil {
		t.Fatal(err)
	}
}

// asFormat makes a directory of format 4 what a writ of format 1 or 2 has written.
func asFormat(t *testing.T, n string, fs vfs.FS) {
	t.Helper()
	kinds := "zf"
	if n == "1" {
		kinds += "wy"
	}
	rewrite(t, fs, func(db *pebble.DB) error {
		var errs []error
		for _, k := range []byte(kinds) {
			errs = append(errs, db.DeleteRange(key{k}, key{k + 1}, pebble.Sync))
		}
		for _, org := range []string{"a", "b"} {
			errs = append(errs, db.Delete(append(orgKey('c', org), 'A'), pebble.Sync))
		}
		return errors.Join(append(errs, db.Set(formatKey, []byte(n), pebble.Sync))...)
	})
	if err := fs.Remove("data.tip"); err != nil {
		t.Fatal(err)
	}
}

// TestOpen_Upgrades: what was stored before is found as what is stored since, and
// an older writ no longer opens the directory.
func TestOpen_Upgrades(t *testing.T) {
	for name, earlier := range map[string]func(fs *vfs.MemFS){
		"format 4": func(*vfs.MemFS) {},
		"format 4, cut short": func(fs *vfs.MemFS) {
			rewrite(t, fs, func(db *pebble.DB) error {
				stray := storage.Rules.Collection
				return errors.Join(
					db.Set(documentKey(&stray, "a", "stray"), []byte("12345678{}"), pebble.Sync),
					db.Set(append(indexOf(storage.AgentKind, "a", storage.ByAge), "123456789012stray"...), []byte("stray"), pebble.Sync))
			})
		},
		"format 3": func(fs *vfs.MemFS) {
			rewrite(t, fs, func(db *pebble.DB) error { return db.Set(formatKey, []byte("3"), pebble.Sync) })
		},
		"format 2": func(fs *vfs.MemFS) { asFormat(t, "2", fs) },
		"format 1": func(fs *vfs.MemFS) { asFormat(t, "1", fs) },
	} {
		t.Run(name, func(t *testing.T) {
			fs := format4(t)
			earlier(fs)
			s := openTest(t, fs, nil)
			if v, err := s.get(formatKey); string(v) != "6" {
				t.Errorf("the format is %q, %v, want 6", v, err)
			}
			for i := range oldDocuments {
				k := oldDocuments[i]
				if err := s.scan(t.Context(), key{k}, key{k + 1}, func(k, _ []byte) (bool, error) {
					t.Errorf("a key of the old format is left: %q", k)
					return true, nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			wantMoved(t, s)
			wantWorking(t, s)
			closeTest(t, s)
			r, err := OpenReader("data", Options{FS: fs})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(r.documents(t.Context()), r.Close()); err != nil {
				t.Errorf("the documents do not hold together: %v", err)
			}
			wantSigned(t, fs)
		})
	}
}

// wantMoved holds s to what format4 says.
func wantMoved(t *testing.T, s *Store) {
	t.Helper()
	ctx, docs := t.Context(), registry.New(s)
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for _, org := range []string{"a", "b"} {
		var names []string
		versions, _, err := docs.ListPolicies(ctx, org, storage.Page{Limit: 9})
		for _, p := range versions {
			names = append(names, p.PolicyID+string(rune('0'+p.Version)))
		}
		agents, _, agentErr := docs.ListAgents(ctx, org, storage.Page{Limit: 9})
		for _, a := range agents {
			names = append(names, a.ID)
		}
		rules, _, ruleErr := docs.AllRules(ctx, org)
		for _, r := range rules {
			names = append(names, r.ID)
		}
		tokens, _, tokenErr := docs.ListTokens(ctx, org, storage.Page{Limit: 9})
		for _, k := range tokens {
			names = append(names, k.ID)
		}
		want := []string{"p3", "p1", "q2", "two", "one", "r2", "r0", "kept-" + org, "child-" + org}
		if err := errors.Join(err, agentErr, ruleErr, tokenErr); err != nil || !slices.Equal(names, want) {
			t.Errorf("the documents of %s are %q, %v, want %q", org, names, err, want)
		}
		policies, err1 := docs.CountPolicies(ctx, org)
		ruleCount, err2 := docs.CountRules(ctx, org)
		agentCount, err3 := docs.CountAgents(ctx, org)
		usable, err4 := docs.CountTokens(ctx, org, at)
		if err := errors.Join(err1, err2, err3, err4); err != nil || policies != 2 || ruleCount != 2 || usable != 2 ||
			agentCount != (registry.AgentCount{Total: 2, Disabled: 1}) {
			t.Errorf("%s has %d policies, %d rules, %+v agents, %d usable tokens, %v", org, policies, ruleCount, agentCount, usable, err)
		}
		if a, err := docs.Agent(ctx, org, "Bot"); err != nil || a.ID != "one" {
			t.Errorf("Agent(Bot) = %v, %v, want one", a, err)
		}
		if got, err := docs.AgentsNamed(ctx, org, "bot"); len(got) != 1 || err != nil {
			t.Errorf("AgentsNamed(bot) = %v, %v, want the one agent", got, err)
		}
		if k, err := docs.Token(ctx, "revoked-"+org); err != nil || k.RevokedAt.IsZero() || k.OrganizationID != org {
			t.Errorf("Token(revoked) = %+v, %v, want it revoked", k, err)
		}
	}
	if sub, err := docs.Subscription(ctx, "a"); err != nil || sub.Plan != "pro" {
		t.Errorf("Subscription = %v, %v, want pro", sub, err)
	}
	if _, err := docs.PutPolicy(ctx, &engine.ActionPolicy{OrganizationID: "a", PolicyID: "p", Version: 2}, 0); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("PutPolicy of a version that is not newer = %v, want ErrConflict", err)
	}
	if err := docs.RevokeToken(ctx, "b", "kept-a", at); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("RevokeToken of another organization = %v, want ErrNotFound", err)
	}
	records, _, err := s.ListRecords(ctx, "a", storage.Filter{}, storage.Page{Limit: 9})
	if len(records) != 1 || err != nil {
		t.Errorf("ListRecords = %v, %v, want the one", records, err)
	}
}

// wantWorking writes to an upgraded store.
func wantWorking(t *testing.T, s *Store) {
	t.Helper()
	ctx, docs := t.Context(), registry.New(s)
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	var old []storage.Change
	stop, err := s.Watch(0, func(c storage.Change) { old = append(old, c) })
	if err != nil || len(old) != 1 || old[0].Kind != storage.EverythingChanged {
		t.Errorf("Watch from the beginning = %+v, %v, want EverythingChanged", old, err)
	}
	stop()
	if err := docs.RevokeToken(ctx, "a", "kept-a", at); err != nil {
		t.Errorf("RevokeToken = %v", err)
	}
	if n, err := docs.CountTokens(ctx, "a", at); n != 0 || err != nil {
		t.Errorf("CountTokens after its maker was revoked = %d, %v, want 0", n, err)
	}
	// The versions that are stored were counted before.
	var counts *storage.Counts
	if err := s.View(ctx, func(r storage.Reader) (err error) {
		counts, err = storage.AllCounts.Get(r, "b", "")
		return err
	}); err != nil || counts.VersionBytes != 462 {
		t.Errorf("the versions of b take %+v, %v, want 462 bytes", counts, err)
	}
}

// wantSigned holds that each document of an upgraded store is as a change left it,
// and that the ledger signs these.
func wantSigned(t *testing.T, fs vfs.FS) {
	t.Helper()
	s := openTest(t, fs, nil)
	defer closeTest(t, s)
	changes, err := s.Changes(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	left := make(map[storage.Change]bool)
	for _, c := range changes {
		left[storage.Change{Revision: c.Revision, Kind: c.Kind, Org: c.Org, ID: c.ID, Digest: c.Digest}] = true
	}
	n := 0
	if err := (&Reader{s: s, hasDocuments: true}).Documents(t.Context(), func(c storage.Change) error {
		if n++; !left[c] {
			t.Errorf("no change has left the document of %+v", c)
		}
		return nil
	}); err != nil || n != 21 {
		t.Errorf("Documents = %d, %v, want 21", n, err)
	}
	l, err := ledger.Open(t.Context(), ledger.Config{Store: s, Signer: signerOf(1), Scrub: plain{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.SignChanges(t.Context(), s), l.Close(t.Context())); err != nil {
		t.Errorf("SignChanges = %v", err)
	}
	if changes, err := s.Changes(t.Context(), 0, 1); len(changes) > 0 || err != nil {
		t.Errorf("Changes once they are signed = %v, %v, want none", changes, err)
	}
}

// TestOpen_AgentsThatAreEqualOnceFoldedStayAndWork: they were registered when ids
// were compared exactly.
func TestOpen_AgentsThatAreEqualOnceFoldedStayAndWork(t *testing.T) {
	fs, ctx := format4(t), t.Context()
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	old := []*engine.Agent{
		{ID: "three", ExternalID: "ci", Status: engine.AgentActive, CreatedAt: at},
		{ID: "four", ExternalID: "CI", Status: engine.AgentDisabled, CreatedAt: at},
	}
	rewrite(t, fs, func(db *pebble.DB) error {
		var errs []error
		for _, a := range old {
			v, err := json.Marshal(a)
			errs = append(errs, err, db.Set(orgKey('a', "new").text(a.ID), v, pebble.Sync),
				db.Set(orgKey('e', "new").text(a.ExternalID), []byte(a.ID), pebble.Sync))
		}
		return errors.Join(append(errs, db.Set(append(orgKey('c', "new"), 'a'), binary.BigEndian.AppendUint64(nil, 2), pebble.Sync))...)
	})
	asFormat(t, "1", fs)

	s := openTest(t, fs, nil)
	defer closeTest(t, s)
	docs := registry.New(s)
	if n, err := docs.CountAgents(ctx, "new"); n != (registry.AgentCount{Total: 2, Disabled: 1}) || err != nil {
		t.Errorf("CountAgents = %+v, %v, want two, one of them disabled", n, err)
	}
	if named, err := docs.AgentsNamed(ctx, "new", "Ci"); len(named) != 2 || err != nil {
		t.Errorf("AgentsNamed(Ci) = %v, %v, want both", named, err)
	}
	for _, a := range old {
		if got, err := docs.Agent(ctx, "new", a.ExternalID); err != nil || got.ID != a.ID {
			t.Errorf("Agent(%s) = %v, %v, want %s", a.ExternalID, got, err, a.ID)
		}
		for _, status := range []engine.AgentStatus{engine.AgentDisabled, engine.AgentActive} {
			if got, err := docs.SetAgentStatus(ctx, "new", a.ExternalID, status, at, 5); err != nil || got.ID != a.ID || got.Status != status {
				t.Errorf("SetAgentStatus(%s, %s) = %v, %v", a.ExternalID, status, got, err)
			}
		}
	}
	if err := docs.PutAgent(ctx, "new", &engine.Agent{ID: "five", ExternalID: "cI", CreatedAt: at}, 0); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("PutAgent of a third = %v, want ErrConflict", err)
	}
}
