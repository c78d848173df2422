package ledger

import (
	"errors"
	"testing"
	"time"

	"writ.example/writ/storage"
)

const importID = "01a1fdfb-3060-7000-bdb6-3453771df8f2"

func TestSignImport_Once(t *testing.T) {
	store := newFake()
	now := &clock{now: noon}
	l := open(t, store, func(c *Config) { c.Now = now.Now })
	var tree ImportTree
	i := Import{ID: importID, OrganizationID: "acme", Root: tree.Root()}
	first, err := l.SignImport(t.Context(), i)
	if err != nil || !first.ImportedAt.Equal(noon) {
		t.Fatalf("SignImport = %+v, %v", first, err)
	}
	now.set(noon.Add(time.Hour))
	if again, err := l.SignImport(t.Context(), i); err != nil || again != first {
		t.Errorf("SignImport again = %+v, %v, want %+v", again, err, first)
	}
	i.Rows++
	if _, err := l.SignImport(t.Context(), i); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("SignImport of other rows = %v, want a conflict", err)
	}
}

func TestProve_Imports_OneOfAnOrganization(t *testing.T) {
	two, e := imports{orgs: make(map[string]*imported)}, Import{ID: importID, OrganizationID: "acme"}.entry()
	if err := two.entry(e, false); err != nil {
		t.Errorf("an import entry = %v", err)
	}
	if err := two.entry(e, false); err == nil {
		t.Error("another import entry of an organization = nil, want an error")
	}
}
