package operator

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

const secret = "0123456789abcdef0123456789abcdef"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// jwksOf is a key set of public keys by id.
func jwksOf(t testing.TB, keys map[string]crypto.Signer) []byte {
	t.Helper()
	set := jwk.NewSet()
	for kid, key := range keys {
		k, err := jwk.Import(key.Public())
		must(t, err)
		must(t, k.Set(jwk.KeyIDKey, kid))
		must(t, set.AddKey(k))
	}
	data, err := json.Marshal(set)
	must(t, err)
	return data
}

func TestParseJWKS(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	must(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	private, err := jwk.Import(ed)
	must(t, err)
	privateSet, err := json.Marshal(map[string]any{"keys": []any{private}})
	must(t, err)
	for name, tc := range map[string]struct {
		data []byte
		alg  string
		keys int // -1: refused
	}{
		"one":               {jwksOf(t, map[string]crypto.Signer{"a": ed}), algEdDSA, 1},
		"others are passed": {jwksOf(t, map[string]crypto.Signer{"a": ed, "b": p384, "c": rsaKey}), algEdDSA, 1},
		"unknown are passed": {[]byte(strings.Replace(string(jwksOf(t, map[string]crypto.Signer{"a": ed})), `"keys":[`,
			`"keys":[{"kty":"AKP","alg":"ML-DSA-44","pub":"AAAA"},{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"},`+
				`{"kty":"OKP","crv":"Ed448","x":"`+strings.Repeat("A", 76)+`"},`, 1)), algEdDSA, 1},
		"none fits":        {jwksOf(t, map[string]crypto.Signer{"a": ed}), algES256, -1},
		"P-384 for ES256":  {jwksOf(t, map[string]crypto.Signer{"a": p384}), algES256, -1},
		"RSA of 1024 bits": {[]byte(`{"keys":[{"kty":"RSA","kid":"a","e":"AQAB","n":"` + base64.RawURLEncoding.EncodeToString(small.N.Bytes()) + `"}]}`), algRS256, -1},
		"private key":      {privateSet, algEdDSA, -1},
		"secret":           {[]byte(`{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"a"}]}`), algEdDSA, -1},
		"empty set":        {[]byte(`{"keys":[]}`), algEdDSA, -1},
		"not JSON":         {[]byte(`<html>`), algEdDSA, -1},
		"other use":        {[]byte(strings.Replace(string(jwksOf(t, map[string]crypto.Signer{"a": ed})), `"kid"`, `"use":"enc","kid"`, 1)), algEdDSA, -1},
		"other alg":        {[]byte(strings.Replace(string(jwksOf(t, map[string]crypto.Signer{"a": rsaKey})), `"kid"`, `"alg":"RS512","kid"`, 1)), algRS256, -1},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := parseJWKS(tc.data, tc.alg)
			switch {
			case tc.keys < 0 && err == nil:
				t.Errorf("parseJWKS(%s) = %v, want an error", tc.data, set.byID)
			case tc.keys >= 0 && (err != nil || len(set.byID) != tc.keys):
				t.Errorf("parseJWKS(%s) = %v, want %d keys", tc.data, err, tc.keys)
			}
		})
	}
}

func TestConfig_Check(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg Config
		ok  bool
	}{
		"none":                {Config{}, true},
		"HS256":               {Config{Alg: "HS256", Secret: []byte(secret)}, true},
		"short secret":        {Config{Alg: "HS256", Secret: []byte("short")}, false},
		"HS256 with key set":  {Config{Alg: "HS256", Secret: []byte(secret), JWKS: "x"}, false},
		"none by name":        {Config{Alg: "none"}, false},
		"RS256 with secret":   {Config{Alg: "RS256", Secret: []byte(secret), JWKS: "x"}, false},
		"RS256 without keys":  {Config{Alg: "RS256"}, false},
		"secret without alg":  {Config{Secret: []byte(secret)}, false},
		"ES256 with key set":  {Config{Alg: "ES256", JWKS: "x"}, true},
		"lower-case spelling": {Config{Alg: "hs256", Secret: []byte(secret)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.cfg.check(); (err == nil) != tc.ok {
				t.Errorf("check = %v, want ok %v", err, tc.ok)
			}
		})
	}
}

func TestOpen_AFileThatCannotBeReadIsAnError(t *testing.T) {
	_, err := Open(t.Context(), Config{Alg: algEdDSA, JWKS: filepath.Join(t.TempDir(), "missing")}, time.Now, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Error("Open with a missing file = nil, want an error")
	}
}

func TestSign_RefusesWhatWouldNotBeAccepted(t *testing.T) {
	for name, tc := range map[string]struct {
		secret, org, subject string
		ttl                  time.Duration
	}{
		"short secret": {"x", "acme", "op", time.Hour},
		"no org":       {secret, "", "op", time.Hour},
		"no subject":   {secret, "acme", "", time.Hour},
		"no lifetime":  {secret, "acme", "op", 0},
	} {
		if _, err := Sign([]byte(tc.secret), tc.org, tc.subject, time.Now(), tc.ttl); err == nil {
			t.Errorf("%s: Sign = nil, want an error", name)
		}
	}
}
