package datadir

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ.example/writ/storage/receipt"
)

// serveSigner serves h at a Unix socket and returns its URL.
func serveSigner(t *testing.T, h http.Handler) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(server.Close)
	return "unix:" + socket
}

func keyOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(seed), ed25519.SeedSize)))
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey {
	return ed25519.PublicKey(key[ed25519.SeedSize:])
}

// signWith answers as a signer with a key does, and changes what it answers to POST.
func signWith(t *testing.T, keys remoteKeys, key ed25519.PrivateKey, change func([]byte) []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode(keys)
			return
		}
		var ask signRequest
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || string(ask.Public) != string(publicOf(key)) {
			t.Errorf("the signer is asked %+v, %v, want its public key", ask, err)
		}
		_ = json.NewEncoder(w).Encode(signAnswer{change(ed25519.Sign(key, ask.Message))})
	})
}

// TestReadSigning_OfASigner seals with a key behind a URL, now and from a time on.
func TestReadSigning_OfASigner(t *testing.T) {
	now, next, at := keyOf('a'), keyOf('b'), time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	url := serveSigner(t, signWith(t, remoteKeys{publicOf(now), publicOf(next), &at}, now, func(sig []byte) []byte { return sig }))
	s, err := ReadSigning(url)
	if err != nil {
		t.Fatal(err)
	}
	if s.At(time.Now()) != s.Key || s.At(at) != s.Next || s.Next.KeyID() != receipt.KeyID(publicOf(next)) {
		t.Errorf("the keys are %v, from %s on %v, want %v", s.Key, s.From, s.Next, at)
	}
	got, _, err := s.Key.Seal(receipt.Chain{}, time.UnixMilli(1), make([][32]byte, 3))
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := receipt.NewSigner(now).Seal(receipt.Chain{}, time.UnixMilli(1), make([][32]byte, 3))
	if got != want {
		t.Errorf("Seal with a key behind a URL = %+v, want that of a key in memory, %+v", got, want)
	}
}

// TestReadSigning_RefusesSigners checks that a signer that answers wrongly is no source of keys or signatures.
func TestReadSigning_RefusesSigners(t *testing.T) {
	for _, at := range []string{"https:", "https://u:p@h/", "https://h/?q", "unix:", "https://h/%zz"} {
		if _, err := ReadSigning(at); err == nil {
			t.Errorf("ReadSigning(%q) succeeds", at)
		}
	}
	if _, err := ReadSigning("unix:" + t.TempDir() + "/nobody"); err == nil {
		t.Error("a socket where nobody listens is a signer")
	}
	for name, text := range map[string]string{
		"no JSON": "{", "no key": "{}", "a short key": `{"public_key":"AAAA"}`,
		"a key of small order": `{"public_key":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`,
	} {
		if _, err := ReadSigning(serveSigner(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(text))
		}))); err == nil {
			t.Errorf("a signer that answers %s has keys", name)
		}
	}
	key, other := keyOf('a'), keyOf('b')
	for name, change := range map[string]func([]byte) []byte{
		"no signature": func([]byte) []byte { return nil },
		"a bit is wrong": func(sig []byte) []byte {
			sig[5] ^= 1
			return sig
		},
		"a short one":     func(sig []byte) []byte { return sig[:63] },
		"of another key":  func([]byte) []byte { return ed25519.Sign(other, []byte("m")) },
		"of another text": func([]byte) []byte { return ed25519.Sign(key, []byte("m")) },
	} {
		s, err := ReadSigning(serveSigner(t, signWith(t, remoteKeys{Public: publicOf(key)}, key, change)))
		if err != nil {
			t.Fatal(err)
		}
		if _, sigs, err := s.Key.Seal(receipt.Chain{}, time.UnixMilli(1), make([][32]byte, 1)); !errors.Is(err, receipt.ErrUnsigned) || sigs != nil {
			t.Errorf("%s: Seal = %v, %v, want ErrUnsigned", name, sigs, err)
		}
	}
}
