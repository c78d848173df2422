package registry_test

import (
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// token returns a token with every field set except RevokedAt.
func token(org, id string) *storage.Token {
	return &storage.Token{
		ID: id, OrganizationID: org, Name: "ci", Scopes: []string{"policy:evaluate", "history:read"},
		AgentID: "team-a/*", PolicyID: "11111111-1111-4111-8111-111111111111",
		Hash: [32]byte{1, 2, 255}, Hint: "writ_ab…yz", CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
}

func childOf(parent string, t *storage.Token) *storage.Token {
	t.ParentID = parent
	return t
}

func (w *world) tokens(org string, limit int) []*storage.Token {
	w.Helper()
	return storagetest.All(w, limit, func(p storage.Page) ([]*storage.Token, string, error) { return w.ListTokens(w.ctx, org, p) })
}

func (w *world) wantToken(id string, want *storage.Token) {
	w.Helper()
	got, err := w.Token(w.ctx, id)
	w.Must("Token("+id+")", err)
	w.WantSame("Token("+id+")", got, want)
}

var tokenTests = []test{
	{"PutToken stores a new token; ErrConflict when its ID exists", func(w *world) {
		_, err := w.Token(w.ctx, "t")
		w.WantErr("Token before", err, storage.ErrNotFound)
		w.put("org", token("org", "t"))
		w.wantToken("t", token("org", "t"))
		again := token("org", "t")
		again.Scopes = []string{"tokens:write"}
		w.WantErr("PutToken again", w.PutToken(w.ctx, again, 0), storage.ErrConflict)
		w.WantErr("PutToken elsewhere", w.PutToken(w.ctx, token("other", "t"), 0), storage.ErrConflict)
		w.wantToken("t", token("org", "t"))
	}},
	{"RevokeToken sets RevokedAt unless it is set", func(w *world) {
		w.put("org", token("org", "t"))
		w.Must("RevokeToken", w.RevokeToken(w.ctx, "org", "t", noon.Add(time.Minute)))
		w.Must("RevokeToken again", w.RevokeToken(w.ctx, "org", "t", noon.Add(time.Hour)))
		want := token("org", "t")
		want.RevokedAt = noon.Add(time.Minute)
		w.wantToken("t", want)
	}},
	{"PutToken returns ErrNotFound when the parent is revoked or not a token of its organization", func(w *world) {
		w.put("org", token("org", "t"))
		for name, child := range map[string]*storage.Token{
			"another organization": childOf("t", token("other", "c")), "no parent": childOf("u", token("org", "c")),
		} {
			w.WantErr("PutToken with "+name, w.PutToken(w.ctx, child, 0), storage.ErrNotFound)
		}
		w.Must("RevokeToken", w.RevokeToken(w.ctx, "org", "t", noon))
		w.WantErr("PutToken with a revoked parent", w.PutToken(w.ctx, childOf("t", token("org", "c")), 0), storage.ErrNotFound)
		_, err := w.Token(w.ctx, "c")
		w.WantErr("Token after", err, storage.ErrNotFound)
	}},
	{"RevokeToken revokes all that descend from it, and tells of each", func(w *world) {
		for _, t := range []*storage.Token{
			token("org", "t"), childOf("t", token("org", "c1")), childOf("t", token("org", "c2")),
			childOf("c1", token("org", "g")), token("org", "t2"), childOf("t2", token("org", "c3")),
		} {
			w.put("org", t)
		}
		w.Must("RevokeToken of a child", w.RevokeToken(w.ctx, "org", "c2", noon))
		told := make(map[string]int)
		stop := w.docs.Watch(func(c storage.Change) { told[c.ID]++ })
		defer stop()
		w.Must("RevokeToken", w.RevokeToken(w.ctx, "org", "t", noon.Add(time.Minute)))
		for id, at := range map[string]time.Time{
			"t": noon.Add(time.Minute), "c1": noon.Add(time.Minute), "g": noon.Add(time.Minute), "c2": noon, "t2": {}, "c3": {},
		} {
			got, err := w.Token(w.ctx, id)
			w.Must("Token("+id+")", err)
			w.WantSame("RevokedAt of "+id, got.RevokedAt, at)
		}
		w.WantSame("changes told", told, map[string]int{"t": 1, "c1": 1, "g": 1})
	}},
	{"RevokeToken returns ErrNotFound for a token that is not org's", func(w *world) {
		w.put("org", token("org", "t"))
		w.WantErr("RevokeToken elsewhere", w.RevokeToken(w.ctx, "other", "t", noon), storage.ErrNotFound)
		w.WantErr("RevokeToken of none", w.RevokeToken(w.ctx, "org", "u", noon), storage.ErrNotFound)
		w.wantToken("t", token("org", "t"))
	}},
	{"ListTokens returns org's tokens that are not revoked, by creation time, then id", func(w *world) {
		var want []*storage.Token
		for _, id := range []string{"t3", "t9", "t1", "t5"} {
			tok := token("org", id)
			tok.CreatedAt = noon.Add(time.Duration(len(want)/2) * time.Second)
			want = append(want, tok)
			w.put("org", tok)
			revoked := token("org", id+"r")
			revoked.CreatedAt = tok.CreatedAt
			w.put("org", revoked)
			w.Must("RevokeToken", w.RevokeToken(w.ctx, "org", revoked.ID, noon))
		}
		for _, limit := range []int{1, 2, 4, 5} {
			w.WantSame("ListTokens", w.tokens("org", limit), want)
		}
	}},
}
