package operator

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

const secret = "0123456789abcdef0123456789abcdef"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// jwksOf returns a key set with the public keys of keys, which maps ids to keys.
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
		keys int // -1 if the set is refused
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

// verify verifies an HS256 token whose payload is exactly claims.
func verify(t *testing.T, now time.Time, claims string) (Operator, error) {
	t.Helper()
	v, err := Open(t.Context(), Config{Alg: algHS256, Secret: []byte(secret)}, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	must(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return v.Verify(t.Context(), text+"."+encode(mac.Sum(nil)))
}

func TestDecision_Credentials_OperatorClaims(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, tc := range map[string]struct {
		change map[string]any
		want   int
	}{
		"valid":                   {nil, 200},
		"no iat":                  {map[string]any{"iat": nil}, 200},
		"expired":                 {map[string]any{"exp": now.Add(-time.Minute).Unix()}, 401},
		"expired within leeway":   {map[string]any{"exp": now.Add(-10 * time.Second).Unix()}, 200},
		"no exp":                  {map[string]any{"exp": nil}, 401},
		"exp is text":             {map[string]any{"exp": "tomorrow"}, 401},
		"huge exp":                {map[string]any{"exp": 1e300}, 401},
		"not yet valid":           {map[string]any{"nbf": now.Add(time.Minute).Unix()}, 401},
		"nbf within leeway":       {map[string]any{"nbf": now.Add(10 * time.Second).Unix()}, 200},
		"issued in the future":    {map[string]any{"iat": now.Add(time.Minute).Unix()}, 401},
		"no sub":                  {map[string]any{"sub": nil}, 401},
		"empty sub":               {map[string]any{"sub": ""}, 401},
		"no org_id":               {map[string]any{"org_id": nil}, 401},
		"empty org_id":            {map[string]any{"org_id": ""}, 401},
		"org_id with NUL":         {map[string]any{"org_id": "a\x00b"}, 401},
		"org_id with line break":  {map[string]any{"org_id": "a\nb"}, 401},
		"org_id of 128":           {map[string]any{"org_id": strings.Repeat("o", 128)}, 200},
		"org_id of 129":           {map[string]any{"org_id": strings.Repeat("o", 129)}, 401},
		"org_id padded":           {map[string]any{"org_id": "acme "}, 401},
		"org_id is blank":         {map[string]any{"org_id": " "}, 401},
		"org_id is a number":      {map[string]any{"org_id": 1}, 401},
		"org_id is not ASCII":     {map[string]any{"org_id": "Zürich"}, 200},
		"claims of other systems": {map[string]any{"scope": "x", "roles": []string{"y"}}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]any{"org_id": "acme", "sub": "op", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix()}
			maps.Copy(all, tc.change)
			maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
			data, err := json.Marshal(all)
			must(t, err)
			if _, err := verify(t, now, string(data)); (err == nil) != (tc.want == 200) {
				t.Errorf("Verify of %s = %v, want good: %v", data, err, tc.want == 200)
			}
		})
	}
}

// TestDecision_Credentials_ClaimsHaveOneReading uses tokens of an issuer that lets its users add
// claims. Each token must be refused or read correctly. A user must not be able to choose org_id or
// exp, neither by another spelling of the name nor by repeating it.
func TestDecision_Credentials_ClaimsHaveOneReading(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	past, future := now.Add(-time.Hour).Unix(), now.Add(time.Hour).Unix()
	for name, tc := range map[string]struct {
		claims string
		want   int
	}{
		"exact names":            {fmt.Sprintf(`{"org_id":"acme","sub":"op","exp":%d}`, future), 200},
		"org_id in another case": {fmt.Sprintf(`{"Org_Id":"acme","sub":"op","exp":%d}`, future), 401},
		"org_id twice":           {fmt.Sprintf(`{"org_id":"acme","sub":"op","exp":%d,"org_id":"globex"}`, future), 401},
		"exp in another case":    {fmt.Sprintf(`{"org_id":"acme","sub":"op","exp":%d,"EXP":%d}`, past, future), 401},
		"exp twice":              {fmt.Sprintf(`{"org_id":"acme","sub":"op","exp":%d,"exp":%d}`, past, future), 401},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := verify(t, now, tc.claims); (err == nil) != (tc.want == 200) {
				t.Errorf("Verify of %s = %v, want good: %v", tc.claims, err, tc.want == 200)
			}
		})
	}

	acmes := fmt.Sprintf(`{"org_id":"acme","sub":"op","exp":%d,"Org_Id":"globex"}`, future)
	who, err := verify(t, now, acmes)
	if err != nil || who.Organization != "acme" {
		t.Errorf("Verify(%s) = %q, %v, want acme", acmes, who.Organization, err)
	}
}

func TestVerifier_AcceptsWhatSignMakes(t *testing.T) {
	now := time.Now()
	v, err := Open(t.Context(), Config{Alg: algHS256, Secret: []byte(secret)}, time.Now, slog.New(slog.DiscardHandler))
	must(t, err)
	token, err := Sign([]byte(secret), "acme", "op", now, time.Hour)
	must(t, err)
	if who, err := v.Verify(t.Context(), token); err != nil || who.Organization != "acme" || who.Subject != "op" || v.Generation() != 0 {
		t.Errorf("Verify = %+v, %v, want op of acme", who, err)
	}
}

// TestVerifier_FollowsTheKeysOfAURL checks that an unknown key id causes a read of the keys. A
// withdrawn key must verify nothing.
func TestVerifier_FollowsTheKeysOfAURL(t *testing.T) {
	var served atomic.Pointer[[]byte]
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(*served.Load()) }))
	t.Cleanup(issuer.Close)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	serve := func(kid string) {
		data := jwksOf(t, map[string]crypto.Signer{kid: private})
		served.Store(&data)
	}
	serve("old")
	var late atomic.Int64
	now := func() time.Time { return time.Unix(1_800_000_000+late.Load(), 0) }
	v, err := Open(t.Context(), Config{Alg: algEdDSA, JWKS: issuer.URL}, now, slog.New(slog.DiscardHandler))
	must(t, err)
	go v.Run(t.Context())
	signed := func(kid string) string {
		headers := jws.NewHeaders()
		must(t, headers.Set(jws.KeyIDKey, kid))
		payload := fmt.Appendf(nil, `{"org_id":"acme","sub":"op","exp":%d}`, now().Add(time.Hour).Unix())
		token, err := jws.Sign(payload, jws.WithKey(jwa.EdDSA(), private, jws.WithProtectedHeaders(headers)))
		must(t, err)
		return string(token)
	}
	for _, step := range []struct {
		serve, kid string
		good       bool
	}{{"old", "old", true}, {"old", "new", false}, {"new", "new", true}, {"new", "old", false}} {
		late.Add(int64(jwksPause / time.Second))
		serve(step.serve)
		if _, err := v.Verify(t.Context(), signed(step.kid)); (err == nil) != step.good {
			t.Errorf("Verify by %s where %s is served = %v, want good: %v", step.kid, step.serve, err, step.good)
		}
	}
	if g := v.Generation(); g != 2 {
		t.Errorf("Generation = %d, want 2: of the old key and of the new one", g)
	}
}
