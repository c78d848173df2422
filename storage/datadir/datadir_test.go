package datadir

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// TestLoadSecretRacesToOne starts many processes in an empty directory at the same time. All
// processes must use one secret. Otherwise a server would refuse the token of a `writ token
// operator` that started with it.
func TestLoadSecretRacesToOne(t *testing.T) {
	for range 20 {
		d := Dir(filepath.Join(t.TempDir(), "data"))
		var (
			wg      sync.WaitGroup
			secrets [8][]byte
			errs    [8]error
		)
		for i := range secrets {
			wg.Go(func() { secrets[i], errs[i] = d.Secret("") })
		}
		wg.Wait()
		for i := range secrets {
			if errs[i] != nil {
				t.Fatalf("Secret: %v", errs[i])
			}
			if !bytes.Equal(secrets[i], secrets[0]) {
				t.Fatalf("Secret gave %x to one and %x to another", secrets[0], secrets[i])
			}
		}
		left, err := filepath.Glob(filepath.Join(string(d), ".*"))
		if err != nil || len(left) > 0 {
			t.Fatalf("left behind: %v, %v", left, err)
		}
	}
}

// TestLoadSignerRacesToOne starts many replicas in an empty directory at the same time. The
// receipts of each replica must verify with the keys of any replica.
func TestLoadSignerRacesToOne(t *testing.T) {
	for range 20 {
		d := Dir(filepath.Join(t.TempDir(), "data"))
		var (
			wg  sync.WaitGroup
			ids [8]string
		)
		for i := range ids {
			wg.Go(func() {
				s, trusted, err := d.Signer("")
				if err != nil {
					t.Errorf("Signer: %v", err)
					return
				}
				if !slices.Contains(trusted.IDs(), s.KeyID()) {
					t.Errorf("Signer trusts %v, which lacks its own key %s", trusted.IDs(), s.KeyID())
				}
				ids[i] = s.KeyID()
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("Signer gave the key %s to one and %s to another", ids[0], id)
			}
		}
	}
}

func TestExposed_NamesTheSecretsThatOthersCanRead(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "data"))
	if _, err := d.Secret(""); err != nil {
		t.Fatal(err)
	}
	if got := Exposed(d.OperatorSecret(), d.SigningKey()); len(got) > 0 {
		t.Errorf("Exposed() of a fresh directory = %v, want none", got)
	}
	if err := os.Chmod(d.OperatorSecret(), 0o640); err != nil {
		t.Fatal(err)
	}
	if got := Exposed(d.OperatorSecret(), d.SigningKey()); len(got) != 1 || got[0] != d.OperatorSecret() {
		t.Errorf("Exposed() = %v, want %s", got, d.OperatorSecret())
	}
}
