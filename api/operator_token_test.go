package api

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"writ.example/writ/api/operator"
)

// sign makes an HS256 token with claims.
func (h *harness) sign(t testing.TB, claims obj) string {
	return signJWT(t, jwa.HS256(), []byte(testSecret), "", claims)
}

func signJWT(t testing.TB, alg jwa.SignatureAlgorithm, key any, kid string, claims obj) string {
	t.Helper()
	headers := jws.NewHeaders()
	if kid != "" {
		must(t, headers.Set(jws.KeyIDKey, kid))
	}
	with := jws.WithInsecureNoSignature(jws.WithProtectedHeaders(headers))
	if alg != jwa.NoSignature() {
		with = jws.WithKey(alg, key, jws.WithProtectedHeaders(headers))
	}
	payload, err := json.Marshal(claims)
	must(t, err)
	token, err := jws.Sign(payload, with)
	must(t, err)
	return string(token)
}

func (h *harness) claims(changes ...obj) obj {
	now := h.clock.Now()
	c := obj{"org_id": acme, "sub": "op", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix()}
	for _, change := range changes {
		maps.Copy(c, change)
	}
	return c
}

func TestAuth_AVerifiedTokenIsCachedUntilItExpires(t *testing.T) {
	h := start(t)
	token := h.sign(t, h.claims())
	for range 5 {
		h.do("GET", "/v1/rules", token, nil).wantStatus(http.StatusOK)
	}
	if loads := h.server.auth.jwts.Stats().Loads; loads != 1 {
		t.Errorf("%d verifications of one token, want 1", loads)
	}
	h.clock.advance(time.Hour + 30*time.Second)
	h.do("GET", "/v1/rules", token, nil).wantStatus(http.StatusUnauthorized)
}

type keyPair struct {
	method  jwa.SignatureAlgorithm
	private crypto.Signer
}

func keyPairs(t testing.TB) map[string]keyPair {
	t.Helper()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	return map[string]keyPair{
		"RS256": {jwa.RS256(), rsaKey},
		"ES256": {jwa.ES256(), ecKey},
		"EdDSA": {jwa.EdDSA(), edKey},
	}
}

// jwksOf returns a JSON Web Key Set with the public halves of keys. keys is a map by key id.
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

func TestDecision_Credentials_AlgIsPinnedByConfiguration(t *testing.T) {
	pairs := keyPairs(t)
	keys := make(map[string]crypto.Signer)
	for alg, pair := range pairs {
		keys[alg] = pair.private
	}
	file := filepath.Join(t.TempDir(), "jwks.json")
	must(t, os.WriteFile(file, jwksOf(t, keys), 0o600))
	for pinned := range pairs {
		t.Run(pinned, func(t *testing.T) {
			h := start(t, func(c *setup) { c.Operators = operator.Config{Alg: pinned, JWKS: file} })
			for alg, pair := range pairs {
				want := http.StatusUnauthorized
				if alg == pinned {
					want = http.StatusOK
				}
				for _, kid := range []string{alg, pinned} {
					if token := signJWT(t, pair.method, pair.private, kid, h.claims()); alg == kid {
						h.do("GET", "/v1/rules", token, nil).wantStatus(want)
					} else {
						h.do("GET", "/v1/rules", token, nil).wantStatus(http.StatusUnauthorized)
					}
				}
			}
			h.wantConfusionRefused(pairs[pinned], pinned)
		})
	}
}

// wantConfusionRefused checks that three kinds of forged token are refused. The first uses the
// public key as an HMAC secret, the second has no signature, and the third has a changed bit in its
// signature.
func (h *harness) wantConfusionRefused(pair keyPair, kid string) {
	h.t.Helper()
	der, err := x509.MarshalPKIXPublicKey(pair.private.Public())
	must(h.t, err)
	pemBytes := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for _, secret := range [][]byte{der, pemBytes, []byte(testSecret)} {
		h.do("GET", "/v1/rules", signJWT(h.t, jwa.HS256(), secret, kid, h.claims()), nil).wantStatus(http.StatusUnauthorized)
	}
	h.do("GET", "/v1/rules", signJWT(h.t, jwa.NoSignature(), nil, kid, h.claims()), nil).wantStatus(http.StatusUnauthorized)
	good := signJWT(h.t, pair.method, pair.private, kid, h.claims())
	dot := strings.LastIndexByte(good, '.') + 1
	h.do("GET", "/v1/rules", good[:dot]+flip(good[dot:dot+1])+good[dot+1:], nil).wantStatus(http.StatusUnauthorized)
	h.do("GET", "/v1/rules", good[:dot], nil).wantStatus(http.StatusUnauthorized)
	h.do("GET", "/v1/rules", good, nil).wantStatus(http.StatusOK)
}

func TestDecision_Credentials_HS256TakesNoOther(t *testing.T) {
	h := start(t)
	for alg, pair := range keyPairs(t) {
		h.do("GET", "/v1/rules", signJWT(t, pair.method, pair.private, alg, h.claims()), nil).wantStatus(http.StatusUnauthorized)
	}
	h.do("GET", "/v1/rules", signJWT(t, jwa.NoSignature(), nil, "", h.claims()), nil).wantStatus(http.StatusUnauthorized)
	h.do("GET", "/v1/rules", signJWT(t, jwa.HS512(), []byte(testSecret), "", h.claims()), nil).wantStatus(http.StatusUnauthorized)
	h.do("GET", "/v1/rules", signJWT(t, jwa.HS256(), []byte(strings.Repeat("x", 32)), "", h.claims()), nil).wantStatus(http.StatusUnauthorized)
	claims, err := json.Marshal(h.claims())
	must(t, err)
	for _, header := range []string{
		`{"alg":"HS256","crit":["x"],"x":1}`, `{"alg":"HS256","crit":[]}`, `{"alg":"HS256","b64":false}`, `{"alg":"HS256","alg":"HS256"}`,
		`{"alg":"HS256","ALG":"none","alg":"none"}`, `{"Alg":"HS256"}`, `{}`,
	} {
		h.do("GET", "/v1/rules", signHS256(header, string(claims)), nil).wantStatus(http.StatusUnauthorized)
	}
	good := signHS256(`{"alg":"HS256","typ":"JWT","cty":"x"}`, string(claims))
	h.do("GET", "/v1/rules", good, nil).wantStatus(http.StatusOK)
	for _, bad := range []string{good + "=", good + ".", good + ".x", strings.Replace(good, ".", "=.", 1), respell(good)} {
		if who, err := h.server.auth.operators.Verify(t.Context(), bad); err == nil {
			t.Errorf("verify(%s) = %v, want an error", bad, who)
		}
	}
	h.do("GET", "/v1/rules", h.sign(t, h.claims()), nil).wantStatus(http.StatusOK)
}

// signHS256 signs a token with exactly this header and these claims.
func signHS256(header, claims string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, []byte(testSecret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// respell changes only those bits of token's last character that base64 ignores.
func respell(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(token) - 1
	return token[:last] + string(alphabet[strings.IndexByte(alphabet, token[last])^1])
}

func TestDecision_Credentials_JWKSByURLRotates(t *testing.T) {
	oldKey, newKey := keyPairs(t)["EdDSA"], keyPairs(t)["EdDSA"]
	var served atomic.Pointer[[]byte]
	var fetches atomic.Int64
	set := func(data []byte) { served.Store(&data) }
	set(jwksOf(t, map[string]crypto.Signer{"old": oldKey.private}))
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetches.Add(1)
		data := *served.Load()
		if data == nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(data) // the client may have disconnected
	}))
	t.Cleanup(issuer.Close)
	h := start(t, func(c *setup) { c.Operators = operator.Config{Alg: "EdDSA", JWKS: issuer.URL} })
	withOld := signJWT(t, oldKey.method, oldKey.private, "old", h.claims())
	withNew := signJWT(t, newKey.method, newKey.private, "new", h.claims())
	h.do("GET", "/v1/rules", withOld, nil).wantStatus(http.StatusOK)

	t.Run("a failing refresh keeps the keys", func(t *testing.T) {
		set(nil)
		h.do("GET", "/v1/rules", withNew, nil).wantStatus(http.StatusUnauthorized)
		h.do("GET", "/v1/rules", withOld, nil).wantStatus(http.StatusOK)
		if n := fetches.Load(); n != 2 {
			t.Errorf("%d fetches, want 2: at the start and for the unknown key id", n)
		}
	})
	t.Run("unknown key ids are asked for at most every ten seconds", func(t *testing.T) {
		set(jwksOf(t, map[string]crypto.Signer{"old": oldKey.private, "new": newKey.private}))
		for range 5 {
			h.do("GET", "/v1/rules", withNew, nil).wantStatus(http.StatusUnauthorized)
		}
		if n := fetches.Load(); n != 2 {
			t.Errorf("%d fetches, want still 2", n)
		}
	})
	t.Run("an unknown key id is fetched", func(t *testing.T) {
		h.clock.advance(10 * time.Second)
		h.do("GET", "/v1/rules", withNew, nil).wantStatus(http.StatusOK)
		h.do("GET", "/v1/rules", withOld, nil).wantStatus(http.StatusOK)
	})
	t.Run("a withdrawn key verifies nothing any more, cached or not", func(t *testing.T) {
		set(jwksOf(t, map[string]crypto.Signer{"new": newKey.private}))
		h.clock.advance(10 * time.Second)
		unknown := signJWT(t, newKey.method, newKey.private, "unheard-of", h.claims())
		h.do("GET", "/v1/rules", unknown, nil).wantStatus(http.StatusUnauthorized)
		h.do("GET", "/v1/rules", withOld, nil).wantStatus(http.StatusUnauthorized)
		h.do("GET", "/v1/rules", withNew, nil).wantStatus(http.StatusOK)
	})
}

func TestAuth_AnIssuerThatIsDownAtTheStartDelaysOperatorsOnly(t *testing.T) {
	h := start(t, func(c *setup) { c.Operators = operator.Config{Alg: "EdDSA", JWKS: "http://127.0.0.1:1/jwks"} })
	pair := keyPairs(t)["EdDSA"]
	h.do("GET", "/v1/rules", signJWT(t, pair.method, pair.private, "k", h.claims()), nil).wantStatus(http.StatusUnauthorized)
	if !strings.Contains(h.log.String(), "cannot be read yet") {
		t.Errorf("log = %s, want a warning", h.log)
	}
	h.do("GET", "/health", "", nil).wantStatus(http.StatusOK)
}

func TestAuth_ATokenWithoutKeyIdNeedsASetOfOne(t *testing.T) {
	a, b := keyPairs(t)["EdDSA"], keyPairs(t)["EdDSA"]
	file := filepath.Join(t.TempDir(), "jwks.json")
	for name, tc := range map[string]struct {
		keys map[string]crypto.Signer
		want int
	}{
		"one": {map[string]crypto.Signer{"a": a.private}, http.StatusOK},
		"two": {map[string]crypto.Signer{"a": a.private, "b": b.private}, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(file, jwksOf(t, tc.keys), 0o600))
			h := start(t, func(c *setup) { c.Operators = operator.Config{Alg: "EdDSA", JWKS: file} })
			h.do("GET", "/v1/rules", signJWT(t, a.method, a.private, "", h.claims()), nil).wantStatus(tc.want)
		})
	}
}
