package registry_test

import (
	"bytes"
	"crypto/ed25519"
	"slices"
	"testing"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

func publicKeys(t testing.TB, seeds ...byte) (keys receipt.Keys) {
	t.Helper()
	for _, seed := range seeds {
		one, err := receipt.NewKeys(receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32))).Public())
		if err != nil {
			t.Fatal(err)
		}
		keys = keys.With(one)
	}
	return keys
}

var keyTests = []test{
	{"PublicKeys are all that were published, none replaced", func(w *world) {
		want := func(keys receipt.Keys) {
			w.Helper()
			got, err := w.PublicKeys(w.ctx)
			if err != nil || !bytes.Equal(got.JWKS(), keys.JWKS()) {
				w.Errorf("PublicKeys = %s, %v, want %s", got.JWKS(), err, keys.JWKS())
			}
		}
		want(receipt.Keys{})
		first, second := publicKeys(w, 1, 2), publicKeys(w, 3, 1)
		for _, keys := range []receipt.Keys{first, first, second} {
			if err := w.PublishKeys(w.ctx, keys); err != nil {
				w.Fatalf("PublishKeys = %v", err)
			}
		}
		want(first.With(second))

		// This is another key with the same id.
		id := first.IDs()[0]
		forged := bytes.ReplaceAll(publicKeys(w, 9).JWKS(), []byte(publicKeys(w, 9).IDs()[0]), []byte(id))
		keys, err := receipt.ParseKeys(forged)
		if err != nil || !slices.Equal(keys.IDs(), []string{id}) {
			w.Fatalf("ParseKeys = %v, %v", keys.IDs(), err)
		}
		if err := w.PublishKeys(w.ctx, keys); err != nil {
			w.Fatalf("PublishKeys = %v", err)
		}
		want(first.With(second))
	}},
	{"a stored key that is none is an error", func(w *world) {
		_, err := w.docs.Update(w.ctx, "", func(tx storage.Tx) error {
			return storage.PublicKeys.Put(tx, "", &storage.PublicKey{ID: "k", JWKS: "{}"})
		})
		w.Must("Update", err)
		if keys, err := w.PublicKeys(w.ctx); err == nil || len(keys.IDs()) > 0 {
			w.Errorf("PublicKeys = %v, %v, want an error", keys.IDs(), err)
		}
	}},
}

// TestKeys_EveryReplicaHasThem checks that every replica returns the keys that any replica has
// published.
func TestKeys_EveryReplicaHasThem(t *testing.T) {
	m := storagetest.NewMemory()
	here, there := registry.New(m.Open()), registry.New(m.Open())
	keys := publicKeys(t, 1)
	if err := here.PublishKeys(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	if got, err := there.PublicKeys(t.Context()); err != nil || !bytes.Equal(got.JWKS(), keys.JWKS()) {
		t.Errorf("PublicKeys = %s, %v", got.JWKS(), err)
	}
}
